//! The life of a sandbox: where its disk begins, the states it is in, and what is kept of it.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::{Generation, SandboxId, SnapshotId};

/// Where the disk of a new sandbox begins. Ignored for one that has a disk already.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskOrigin {
    /// A root filesystem by name, known to the backend, with an empty workspace.
    Template(String),
    /// A snapshot: all that it holds, and the template that it stands on.
    Snapshot(SnapshotId),
}

impl Default for DiskOrigin {
    fn default() -> Self {
        Self::Template("host-tools".to_owned())
    }
}

/// How deeply a sandbox is suspended. Ordered: a later one holds less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspend {
    /// Its processes stop and stay in memory; it thaws at the next command.
    Frozen,
    /// Nothing of it runs; its disk and the outcomes of its commands are kept.
    /// Processes that commands left behind end.
    Cold,
}

/// Its name, as it is serialised.
impl fmt::Display for Suspend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Frozen => "frozen",
            Self::Cold => "cold",
        })
    }
}

/// What a call that gives a sandbox found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreateOutcome {
    /// It had no disk, and was made from its origin. Another generation.
    Made,
    /// It lived.
    Attached,
    /// It was cold. The same generation.
    Resumed,
    /// It had died and was started again over its disk, which is as it was left, to
    /// the last write or not. Another generation.
    Restarted,
}

/// The state of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleState {
    /// Its guest runs.
    Running,
    /// Suspended, processes kept.
    Frozen,
    /// Suspended, nothing runs.
    Cold,
    /// It ended without being asked to; its disk is there.
    Dead,
}

/// Its name, as it is serialised.
impl fmt::Display for LifecycleState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Running => "running",
            Self::Frozen => "frozen",
            Self::Cold => "cold",
            Self::Dead => "dead",
        })
    }
}

/// A sandbox in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSandbox {
    /// Its name.
    pub id: SandboxId,
    /// What it is doing.
    pub state: LifecycleState,
    /// The life that goes on or is suspended.
    pub generation: Option<Generation>,
    /// Where its disk began.
    pub origin: DiskOrigin,
    /// When its disk was made, in milliseconds since 1970.
    pub made_at_ms: u64,
    /// When it was last made, attached to, suspended or restarted, in milliseconds
    /// since 1970. For what has not been used for long, not for what happens now.
    pub used_at_ms: u64,
}

/// A disk that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name.
    pub name: SnapshotId,
    /// The sandbox that it was taken of.
    pub sandbox: SandboxId,
    /// When, in milliseconds since 1970.
    pub taken_at_ms: u64,
    /// Layers that it stands on, itself included; a backend without layers says 1.
    pub layers: u32,
}
