//! The Docker backend against a real daemon.
//!
//! Needs Docker: one that answers at the usual socket, or the program `dockerd` and
//! root, to start one that is these tests' alone. Without both they fail and say so.

#![expect(clippy::unwrap_used, reason = "what a test can not do without fails it")]
#![expect(clippy::print_stdout, reason = "whoever runs them reads which daemon they used")]

mod collect;
mod conformance;
mod daemon;
mod errors;
mod gateway;
mod hardening;
mod lives;
mod snapshots;
mod support;
