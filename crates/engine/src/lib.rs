//! Drives sessions: append, decide, reserve, act, settle.
//!
//! Owns the one place where effects are performed, the life of a session's
//! sandboxes, and the embedded host that decides who drives which session in this
//! process. Only this crate appends to a journal, and it appends before it
//! performs. Must never decide what should happen (that is `agent`) or whether it
//! may (that is `policy`).
//!
//! Read first: [`Engine`], [`drive`], [`EmbeddedHost`].

#![forbid(unsafe_code)]

mod accounts;
mod clock;
mod driver;
mod effect;
mod egress;
mod engine;
mod error;
mod feed;
mod host_rules;
mod judged;
pub mod limits;
mod memory;
mod people;
mod picture;
mod policy_facts;
mod rules;
mod sandbox;
mod warning;
pub mod workspace;

pub use accounts::{is_under_way, recharge, release};
pub use clock::{Clock, SystemClock};
pub use driver::{EmbeddedHost, Host, TaskKind, Tasks, drive};
pub use egress::{
    Egress, EgressAnswer, EgressError, EgressFlows, EgressQuestion, NO_NETWORK, keeping,
};
pub use engine::{AccountDefaults, Engine, OutsideServer, Parts};
pub use error::Error;
pub use feed::{Feed, LiveOutput, Notice};
pub use host_rules::HostRules;
pub use judged::{JudgedEffect, judged};
pub use memory::{MemoryService, ServedTrees, path_of, place_of};
pub use people::{AnswerRequest, ResumeChange, SessionCheckpoint, ensure_shown};
pub use picture::{PictureFault, media_type, picture};
pub use rules::{RuleSource, RuleSourceError};
pub use sandbox::{GcReport, ReattachedSandbox, SandboxOwner};
pub use sandbox::{RetentionPolicy, SandboxConfig, SnapshotPolicy};
pub use sandbox::{discard, gc, gc_dry_run, reattach, sandbox_id, suspend};
pub use warning::Warning;
