//! The one door into a sandbox.
//!
//! Owns the types that cross it ([`Execute`], [`FileOp`] and their results), the
//! ports that a backend implements ([`Backend`], [`Sandbox`]), an in-memory fake
//! and the conformance suite that every backend passes. It knows nothing of
//! agents, users, models or policy, and depends on no other crate of the
//! project, so it can be used on its own.
//!
//! Read first: [`Execute`], [`FileOp`], [`Sandbox`].

#![forbid(unsafe_code)]

mod capabilities;
#[cfg(feature = "port")]
pub mod client;
#[cfg(feature = "port")]
pub mod conformance;
#[cfg(feature = "port")]
pub mod cpu;
mod error;
mod exec;
#[cfg(feature = "port")]
pub mod fake;
mod files;
mod ids;
mod life;
pub mod limits;
#[cfg(feature = "port")]
mod memory_tree;
mod pieces;
#[cfg(feature = "port")]
mod port;
mod request;
pub mod text;
mod tree;
pub mod wire;

pub use capabilities::{Capabilities, DiskLimit, Isolation, Layer, NetworkMode};
pub use error::{Error, FileError, FileErrorKind};
pub use exec::{Command, End, Execute, Executed, Input, Output, Streams, TerminalSize};
pub use files::{
    Digest, EditReport, EntryKind, FileOp, FileReply, GrepMatch, GrepPattern, Lines, ListEntry,
    ManifestEntry, Occurrences, Precondition, WriteMode,
};
pub use ids::{ExecId, Generation, SandboxId, SnapshotId};
pub use life::{CreateOutcome, Lifetime, ListedSandbox, Origin, Snapshot, Spec, State, Suspend};
#[cfg(feature = "port")]
pub use memory_tree::{MemoryTree, MemoryTrees};
pub use pieces::each_piece;
#[cfg(feature = "port")]
pub use port::{Backend, OutputSink, Sandbox, Snapshots};
pub use tree::{ExpectedRevision, Node, TreeEntry, TreeOp, TreeReply};
#[cfg(feature = "port")]
pub use tree::{Tree, Trees};
