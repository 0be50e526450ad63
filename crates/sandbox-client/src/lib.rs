//! A sandbox on the other end of a byte stream.
//!
//! Owns the host's side of [`outrigger_sandbox::wire`]: one [`Link`] to a guest, shared by
//! all who use its sandbox, and [`RemoteSandbox`], the port over it. A backend brings the
//! stream (a socket, a container's standard streams) and nothing else. Whatever comes from
//! a guest is hostile and checked here.

#![forbid(unsafe_code)]

pub mod limits;
mod link;
mod outbox;
mod relay;
mod remote;
mod socket_poller;
mod task;
mod tree_server;

pub use link::{Link, PendingRequest};
pub use relay::{CarriedConnections, carry};
pub use remote::RemoteSandbox;
pub use tree_server::TreeServer;
