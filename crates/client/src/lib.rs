//! A client of the server, for programs on other machines.
//!
//! Owns how requests are sent, how much of an answer is taken, and how what went wrong is told
//! apart. Must never know what an answer means: that is for who asks.
//!
//! Read first: [`ServerClient`], [`StreamFrame`], [`Error`].

#![forbid(unsafe_code)]

mod client;
mod error;
mod follow;
pub mod limits;
mod terminal;

pub use client::{SeenRevision, ServerClient, with_query};
pub use error::Error;
pub use follow::{CommandFrame, StreamFrame};
pub use terminal::{TerminalFrame, TerminalInput};
