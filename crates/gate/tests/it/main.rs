//! A gate as a process of its own, between hostile insides and hostile outsides.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod budget;
mod callers;
mod captured;
mod flood;
mod grants;
mod hostile;
mod names;
mod opaque;
mod places;
mod process;
mod questions;
mod secrets;
mod smuggling;
mod support;
mod upstream;
mod websockets;
