//! Drives sessions: append, decide, reserve, act, settle.
//!
//! Owns the one place where effects are performed, the life of a session's
//! sandboxes, and the embedded host that decides who drives which session in this
//! process. Only this crate appends to a journal, and it appends before it
//! performs. Must never decide what should happen (that is `agent`) or whether it
//! may (that is `policy`).
//!
//! Read first: [`Engine`], [`Engine::drive`], [`EmbeddedHost`].

#![forbid(unsafe_code)]

mod accounts;
mod answer;
mod attach;
mod clock;
mod command;
mod effect;
mod engine;
mod error;
mod feed;
mod fork;
mod freeze;
mod gc;
mod grants;
mod host;
pub mod limits;
mod memory;
mod policy_facts;
mod reattach;
mod retry;
mod rules;
mod sandbox;
mod session;
mod snapshot;
mod step;
mod suspend;
mod tasks;
mod wait;
mod warning;
pub mod workspace;

pub use accounts::AccountDefaults;
pub use answer::AnswerRequest;
pub use clock::{Clock, SystemClock};
pub use engine::{Engine, OutsideServer, Parts};
pub use error::Error;
pub use feed::{Feed, LiveOutput, Notice};
pub use fork::SessionCheckpoint;
pub use gc::GcReport;
pub use host::{EmbeddedHost, Host};
pub use memory::{MemoryService, ServedTrees, path_of, place_of};
pub use policy_facts::situation;
pub use reattach::ReattachedSandbox;
pub use rules::{RuleSource, RuleSourceError};
pub use sandbox::{Owner, RetentionPolicy, SandboxConfig, SnapshotPolicy};
pub use tasks::{TaskKind, Tasks};
pub use warning::Warning;
