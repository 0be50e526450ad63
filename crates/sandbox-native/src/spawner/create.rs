//! How a sandbox comes to live.
//!
//! Owns the five types that carry a creation, in this order: a
//! [`CreateRequest`](request::CreateRequest) becomes a [`SandboxSpec`](spec::SandboxSpec), for
//! which a [`PreforkedGuest`](prefork::PreforkedGuest) is taken; that is a
//! [`StartingGuest`](starting::StartingGuest) until it serves, and then a
//! [`RunningGuest`](running::RunningGuest).

pub(crate) mod pool;
pub(crate) mod prefork;
pub(crate) mod request;
pub(crate) mod running;
pub(crate) mod spec;
pub(crate) mod starting;
mod worker;
mod zygote;
