//! How a sandbox comes to live.
//!
//! Owns the five types that carry a creation, in this order: a
//! [`CreateRequest`](super::lifecycle::CreateRequest) becomes a
//! [`SandboxSpec`](super::lifecycle::sandboxes::SandboxSpec), for which a
//! [`PreforkedGuest`](prefork::PreforkedGuest) is taken; that is a
//! [`StartingGuest`](starting::StartingGuest) until it serves, and then a
//! [`RunningGuest`](starting::RunningGuest).

pub(crate) mod pool;
pub(crate) mod prefork;
pub(crate) mod running;
pub(crate) mod starting;
mod worker;
mod zygote;
