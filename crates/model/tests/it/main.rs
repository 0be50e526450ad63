//! Integration tests of the model crate: whole calls against servers on loopback,
//! its own and one that is not ours, and the scripted model.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails that test")]

mod aimock;
mod bodies;
mod fake;
mod faults;
mod kit;
mod npm;
mod roundtrip;
mod scripted;
