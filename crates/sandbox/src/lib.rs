//! The one door into a sandbox.
//!
//! Owns the types that cross it ([`Execute`], [`FileOp`] and their results), the
//! ports that a backend implements ([`Backend`], [`Sandbox`]), and the frames that a
//! host and a guest speak in ([`wire`]). It knows nothing of agents, users, models or
//! policy, and depends on no other crate of the project and on no runtime, so that a
//! guest takes it as it is.
//!
//! Read first: [`Execute`], [`FileOp`], [`Sandbox`].

#![forbid(unsafe_code)]

mod capabilities;
pub mod capture;
pub mod cpu;
mod error;
mod exec;
mod files;
mod ids;
mod life;
pub mod limits;
mod path;
mod pieces;
mod port;
mod request;
mod spec;
mod spin;
pub mod text;
mod tree;
mod tree_listing;
pub mod wire;

pub use capabilities::{Capabilities, DiskLimit, Isolation, Layer, NetworkMode};
pub use error::{Error, FileError, FileErrorKind};
pub use exec::{Command, End, ExecOutcome, Execute, Input, Output, Streams, TerminalSize};
pub use files::{
    ContentDigest, EditReport, EntryKind, FileOp, FileReply, GrepMatch, GrepPattern, Lines,
    ListEntry, ManifestEntry, Occurrences, Precondition, WriteMode,
};
pub use ids::{ExecId, Generation, SandboxId, SnapshotId};
pub use life::{CreateOutcome, DiskOrigin, LifecycleState, ListedSandbox, Snapshot, Suspend};
pub use path::is_within;
pub use pieces::each_piece;
pub use port::{Backend, ConnectionSink, Listener, Networks, OutputSink, Sandbox, Snapshots};
pub use spec::{CreateSpec, Lifetime};
pub use spin::SpinWait;
pub use tree::{ExpectedRevision, Node, Tree, TreeEntry, TreeOp, TreeReply, Trees};
pub use tree_listing::list_tree;
