//! Outside tools: a client of the Model Context Protocol.
//!
//! Owns the way to a server, over HTTP or over the pipes of a program in a sandbox, in the
//! newest revision of the protocol, which keeps no session, and in the older ones. Must
//! never believe what a server says of its tools, follow it to another address, or do for
//! it what it asks of its client: sampling, elicitation and roots are not offered.
//!
//! Read first: [`Http`], [`outrigger_tools::outside::Outside`].

#![forbid(unsafe_code)]

mod answer;
mod bounded;
mod connection;
mod fault;
mod http;
pub mod limits;
mod listing;
mod routed;
mod stdio;

pub use http::{Error, Header, Http, ServerUrl};
pub use stdio::Stdio;
