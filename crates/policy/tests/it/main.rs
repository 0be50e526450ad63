//! The rules as a whole: how they combine, what the default ones say, and that no
//! detour leads past one that forbids.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod approve;
mod combine;
mod default;
mod detours;
mod problems;
mod property;
mod world;
