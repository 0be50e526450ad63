//! Tests of the real binary: processes are started, watched, killed and resumed.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod bad_input;
mod canary;
mod config;
mod demo;
mod faults;
mod kill;
mod provider;
mod run;
mod sandboxes;
mod sessions;
mod support;
mod terminal;
