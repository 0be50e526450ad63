//! The engine's side: the [`outrigger_sandbox::Backend`] port on a spawner and its guests.
//!
//! Owns nothing that outlives the process. Never forks from it: the spawner is
//! started as a fresh program, without environment and descriptors.

mod connect;
mod native;
mod network;
mod snapshots;

pub use connect::{Launch, SpawnerLauncher, prepare};
pub use native::{Config, Native};
pub(crate) use native::{astray, blocking};
