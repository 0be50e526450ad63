//! The engine and the sandboxes of its sessions, in memory and on a paused clock.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod apart;
mod budgets;
mod collect;
mod escalate;
mod forks;
mod labels;
mod memory;
mod model;
mod refused;
mod replace;
mod shared;
mod spy;
mod stop;
mod store_away;
mod subagents;
mod suspend;
mod throttle;
mod world;
