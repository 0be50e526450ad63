//! A session's sandboxes as events name them: how each was asked for, and how one was lost
//! and replaced.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A sandbox of a session, as it was asked for when the session was opened. The
/// first one of a session is where its tools act; each further one has tools of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Its name in the session, for example `work`.
    pub name: String,
    /// The backend that it is made in. Another one does not have its disk.
    pub backend: String,
    /// The least isolation that the session accepts, for example `rootless_single`.
    pub isolation_min: String,
    /// Whether it is filled with the session's workspace.
    pub workspace: bool,
    /// The template that it begins with, where the session has one of its own; otherwise the
    /// one that is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// What it may reach, in the words of `--net`; nothing where it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "SandboxScope::is_thread")]
    pub scope: SandboxScope,
}

/// Whose a sandbox is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxScope {
    /// The session's alone, and destroyed with it.
    #[default]
    Thread,
    /// Shared by the sessions of an assistant, and not destroyed with one of them.
    Assistant(String),
}

impl SandboxScope {
    /// Whether it is the session's alone.
    #[must_use]
    pub fn is_thread(&self) -> bool {
        *self == Self::Thread
    }
}

/// How a sandbox was lost, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// It was not there any more.
    #[default]
    Gone,
    /// It was started anew by somebody else.
    Replaced,
    /// It ended while something ran in it, with what its backend said.
    Died(String),
    /// Its disk was changed while nothing ran in it, with what differs.
    Altered(String),
    /// The session stands on an earlier moment, to which its disk goes back.
    SetBack,
}

/// In the middle of a sentence.
impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("it is gone"),
            Self::Replaced => formatter.write_str("it was started anew meanwhile"),
            Self::SetBack => formatter.write_str("it was set back"),
            Self::Died(detail) => formatter.write_str(detail),
            Self::Altered(detail) => {
                write!(formatter, "its disk was changed while nothing ran in it, {detail}")
            }
        }
    }
}

/// What stands where a sandbox was lost. Processes are gone in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// The same disk: files are as they were left, to the last write or not.
    Disk,
    /// A disk as it was when this was kept.
    Snapshot(SnapshotRef),
    /// A new disk, with the starting content if the sandbox has one.
    Start,
}

/// A disk that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRef {
    /// The snapshot's name at its backend.
    pub snapshot: String,
    /// When it was taken, milliseconds since 1970.
    pub at_ms: u64,
}

/// A sandbox that is ready for use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReady {
    /// Its id at its backend.
    pub id: String,
    /// Which life of it.
    pub generation: String,
    /// Name of the backend.
    pub backend: String,
    /// How it is isolated, for example `root_range`.
    pub isolation: String,
    /// Which disk it has, by when that was made, in milliseconds since 1970 by its
    /// backend's clock. Nothing where the backend does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_made_at_ms: Option<u64>,
    /// What of the life before it has, if there was one in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Replacement>,
}
