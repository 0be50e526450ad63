//! Where programs of a sandbox get to that know of no proxy.
//!
//! Owns the place: one address of the sandbox's own loopback, to which every name leads, and
//! the ports that are listened on there. All of 127.0.0.0/8 is local wherever there is a
//! loopback, so that neither a route nor a right is needed for it; `127.0.0.1`, where programs
//! have servers of their own, is left to them.

use std::net::Ipv4Addr;

/// What every name leads to, and where names are asked for, by UDP.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);
/// Where names are asked for.
pub const NAMES_PORT: u16 = 53;
/// What is connected to there goes where the [`crate::Listener`] goes: TLS, and HTTP. Whoever asks
/// for the listener may name more ports ([`crate::limits::CAPTURED_PORTS_MAX`]).
pub const PORTS: [u16; 2] = [443, 80];
