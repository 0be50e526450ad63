//! Drives sessions: append, decide, reserve, act, settle.
//!
//! Owns the one place where effects are performed, the life of a session's
//! sandboxes, and the embedded host that decides who drives which session in this
//! process. Only this crate appends to a journal, and it appends before it
//! performs. Must never decide what should happen (that is `agent`) or whether it
//! may (that is `policy`).
//!
//! Read first: [`Engine`], [`Engine::drive`], [`Embedded`].

#![forbid(unsafe_code)]

mod answer;
mod attach;
mod charge;
mod clock;
mod commands;
mod cut;
mod engine;
mod error;
mod facts;
mod feed;
mod freeze;
mod gc;
mod held;
mod host;
pub mod limits;
mod live;
mod lulls;
mod perform;
mod reattach;
mod retry;
mod rules;
mod sandbox;
mod shelves;
mod snapshot;
mod step;
mod suspend;
mod tasks;
mod warning;
pub mod workspace;

pub use answer::Answering;
pub use charge::Usual;
pub use clock::{Clock, SystemClock};
pub use cut::Moment;
pub use engine::{Engine, OutsideServer, Parts};
pub use error::Error;
pub use facts::situation;
pub use feed::{Feed, Live as LiveOutput, Notice};
pub use gc::GcReport;
pub use host::{Embedded, Host};
pub use reattach::ReattachedSandbox;
pub use rules::{RuleSource, RulesUnreadable};
pub use sandbox::{Owner, RetentionPolicy, SandboxConfig, SnapshotPolicy};
pub use shelves::{Served, Shelves, path_of, place_of};
pub use tasks::{TaskKind, Tasks};
pub use warning::Warning;
