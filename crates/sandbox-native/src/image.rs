//! Templates from images: archives and registries on one side, layers on the other.
//!
//! The engine's side finds out what an image is made of and hands each layer to the
//! spawner as an open file; it never unpacks one. What both sides read an image with
//! ([`tar`], [`stream`], digests) is here too. All of it takes hostile bytes: it is
//! bounded, has no unsafe code, and writes nothing but files without a name.
//!
//! Of an image only its files, its environment and its working directory are taken.
//! Entry points, users, volumes, health checks and labels are never looked at.

mod archive;
mod digest;
mod fetch;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod hosts;
mod install;
mod manifest;
mod project;
mod registry;
pub(crate) mod request;
mod route;
mod scratch;
pub(crate) mod stream;
pub(crate) mod tar;

pub use archive::Archive;
pub(crate) use digest::HashingReader;
pub use digest::ImageDigest;
pub use install::Progress;
pub use project::ProjectTemplate;
pub use registry::{Registry, Transport};
pub use request::{HostPaths, Template, is_of_project};
pub use reqwest::{Request as RegistryRequest, Response as RegistryResponse};
pub use route::{HostReach, RegistryRoute, RouteError};
