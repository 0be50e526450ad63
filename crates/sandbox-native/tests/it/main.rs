//! The native backend against the real kernel.
//!
//! Needs what the product needs: Linux with user namespaces. Tests that need root
//! say so by failing.

#![expect(clippy::unwrap_used, reason = "what a test can not do without fails it")]

mod commands;
mod conformance;
mod cores;
mod descriptors;
mod direct_route;
mod disk_limit;
mod hostile_registry;
mod images;
mod isolation;
mod landlock;
mod limits;
mod lives;
mod mounts;
mod projects;
mod registry;
mod rootless;
mod served;
mod snapshots;
mod support;
mod suspension;
