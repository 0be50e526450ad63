//! The native backend: sandboxes of Linux namespaces, without a daemon.
//!
//! Three processes. The *engine* is whatever process opens [`Native`]; it may hold
//! secrets and is never forked from. The *spawner* ([`spawner::main`]) is started on
//! demand as a fresh program with an empty environment, has one thread, owns the
//! privileges and the state directory, and outlives the engine. Each sandbox has a
//! *guest*, process 1 of its namespaces, which runs commands and keeps their output
//! while engines come and go. The engine talks to guests directly, over sockets that
//! the spawner hands out.
//!
//! It must never pass anything of the engine's environment or memory on, and never
//! run or interpret a file that a sandbox wrote.
//!
//! Read first: [`Native::open`], [`spawner`].

#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper; each block says why it holds"
)]

mod backend;
mod clock;
mod image;
pub mod limits;
mod passing;
mod probe;
mod protocol;
pub mod spawner;

/// Doors for fuzz targets to what is private here. Compiled for them alone.
#[cfg(fuzzing)]
pub mod fuzz {
    pub use crate::image::fuzz::document;
    pub use crate::protocol::fuzz as message;
    pub use crate::spawner::fuzz::layer;
}

pub use backend::{Config, Launch, Native, SpawnerLauncher, prepare};
pub use image::{
    Archive, HostPaths, HostReach, ImageDigest, Progress, ProjectTemplate, Registry,
    RegistryRequest, RegistryResponse, RegistryRoute, RouteError, Template, Transport,
    is_of_project,
};
pub use probe::probe;
