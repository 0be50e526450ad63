//! The gate: the one process that reaches the outside for sandboxes.
//!
//! A sandbox has an empty network namespace. Its guest opens a TCP listener on its own
//! loopback and hands out the descriptor; the gate accepts on it. Programs inside use it as
//! their HTTP proxy. Which socket a flow arrives on says which sandbox it is, and nothing
//! inside identifies anything.
//!
//! Owns what may be reached ([`Network`], [`grant_of`], [`ready`]), the process itself
//! ([`serve`]) and its caller's side ([`NetworkClient`]). It must never know the engine, and never
//! dial an address that it did not look at. Values of secrets are in clear here and nowhere
//! else.

#![forbid(unsafe_code)]

mod address;
mod client;
mod error;
mod flow;
mod host;
mod inside;
mod limits;
mod network;
mod outside;
pub mod passing;
mod protocol;
pub mod ready;
mod rule;
mod rules;
mod sandbox;
pub mod seccomp;
mod secret;
mod secrets;
mod server;
mod task;
mod words;

pub use client::{CallerSocket, MASTER_KEY, NetworkClient, ServerLaunch, ServerLauncher};
pub use error::Error;
pub use flow::{Flow, Flows, Refusal};
pub use network::{Destination, Grant, Network, Proxy, Scheme};
pub use protocol::OpenedNetwork;
pub use secret::{SealedSecret, SecretPlace, SecretTerms, SecretValue};
pub use server::serve;
pub use words::grant_of;
