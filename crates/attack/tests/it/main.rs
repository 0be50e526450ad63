//! The table of attacks, and a fast run of all of it against the native backend.

#![expect(clippy::unwrap_used, reason = "what a test can not do without fails it")]

mod native;
mod table;
