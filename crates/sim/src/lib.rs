//! The seeded world: everything around the engine is simulated, and everything
//! that can happen to it happens.
//!
//! Owns the simulated model, the journal that dies at a chosen write, the virtual
//! clock, and the invariants that are checked after every run. The engine, the
//! turn machine, the rules and the tools in it are the real ones. A seed says
//! everything: the same seed gives the same run. Must never touch the machine.
//!
//! Read first: [`check_seed`].

#![forbid(unsafe_code)]

mod crash;
mod invariants;
pub mod limits;
mod model;
mod scenario;
mod shape;
mod stopped;
mod world;

pub use invariants::Violation;
pub use scenario::{Report, check_seed};
