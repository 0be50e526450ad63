//! The rules as a whole: how they combine, what the default ones say, and that no
//! detour leads past one that forbids.

mod approve;
mod combine;
mod default;
mod detours;
mod problems;
mod property;
mod world;
