//! The seeded world: everything around the engine is simulated, and everything
//! that can happen to it happens.
//!
//! Owns the simulated model, the journal that dies at a chosen write, the virtual
//! clock, and the invariants that are checked after every run. The engine, the
//! turn machine, the rules and the tools in it are the real ones. A seed says
//! everything: the same seed gives the same run. Must never touch the machine.
//!
//! Read first: [`Sim::check`].

#![forbid(unsafe_code)]

mod accounts;
mod backend;
mod concurrency;
mod crash;
mod disk;
mod family;
mod invariants;
mod ledger;
pub mod limits;
mod model;
mod outside_tools;
mod people;
mod rules;
mod scenario;
mod seed;
mod session_facts;
mod shape;
mod spec;
mod stopped;
mod store;
mod subagents;
mod tally;
mod tool_server;
mod violation;
mod witness;
mod world;

pub use scenario::{Plans, SeedFailure, SeedReport, Sim};
pub use store::Without;
pub use tally::{Happening, Tally};
pub use violation::Violation;
