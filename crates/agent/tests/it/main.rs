//! The turn machine from outside: played worlds, properties, tables, a golden journal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod approvals;
mod bench;
mod budgets;
mod build;
mod calls;
mod context;
mod cuts;
mod garbage;
mod golden;
mod labels;
mod ledger;
mod limits;
mod properties;
mod provenance;
mod sandboxes;
mod sharing;
mod stops;
mod tape;
mod world;
