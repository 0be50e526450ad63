//! The pure turn machine: [`State::apply`] folds what happened, [`State::decide`]
//! says what should happen next.
//!
//! Owns the ledger's events and every decision of a turn: which tool calls are
//! sound, what runs beside what, when the context is compacted, when a limit is
//! reached. Both functions are total: malformed model output is an event, never
//! an error or a panic, and the same journal gives the same state, bit for bit.
//! Must never do I/O or read a clock; time, ids and randomness arrive inside events.
//!
//! Read first: [`Event`], [`State`], [`Next`].

#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod account;
mod apply;
mod approval;
mod assignment;
mod budget;
mod compaction;
mod context;
mod conversation;
mod decide;
mod effect;
mod effects;
mod event;
mod fork;
mod heard;
mod ids;
pub mod json;
mod labels;
pub mod limits;
mod picture;
mod price;
mod recover;
mod round;
mod sandbox;
mod sandboxes;
mod sharing;
mod spec;
mod spending;
mod state;
mod subagent;
mod turn;
mod visible;

pub use account::{AccountId, Cause, Shortfall};
pub use approval::{Answer, ApprovalRequest, Approvals, FileBaseline, Unanswerable};
pub use assignment::{Assignment, Files};
pub use budget::{Amounts, Limit, Measure};
pub use conversation::{
    Author, Call, Item, Message, Origin, Part, Raw, Reply, Status, Stop, Summary, ToolResult,
    TrustedFile, Usage, answer, pictures,
};
pub use decide::{Next, Park};
pub use effect::{Effect, Phase};
pub use event::{
    CallFault, Cut, CutSandbox, EgressFlow, EgressReport, EntryChange, EntryRefused, Event, FORMAT,
    Failure, ModelFault, Outcome, Place, Product, Record, SharedAccess, ToolCall, ToolOutput,
    Touched, TurnEnd, Work,
};
pub use ids::{Digest, Seq, SessionId};
pub use labels::{OTHERS, label_of, labels_of};
pub use picture::{MediaType, Picture};
pub use price::Price;
pub use recover::{LeftOpen, Recover};
pub use sandbox::{Loss, Replacement, SandboxReady, SandboxScope, SandboxSpec, SnapshotRef};
pub use spec::{
    Concurrency, DEFAULT_AGENT, Deadline, DefinitionRevision, Delegate, ModelSpec, OutsideTool,
    Parent, Recovery, Role, ServedPaths, Spec, ToolKind, ToolSpec, TurnLimits, WhenBusy, Workspace,
};
pub use spending::{Shortage, command_ms_max, egress_bytes, shrunk};
pub use state::{FOLD, State};
pub use subagent::Child;
pub use turn::Turn;
pub use visible::{HiddenCharPolicy, visible};
