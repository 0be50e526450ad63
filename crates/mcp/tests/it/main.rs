//! The client against a server that is not ours, and against servers that mean ill.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod everything;
mod hostile;
mod installed;
mod program;
mod server;
mod shell;
mod well;
