//! A consistent cut through a session: its conversation, the disks of its sandboxes,
//! what was spent and what waits for a person, all of the same moment.
//!
//! Must never carry what is under way, nor an answer that a person gave: what is open is
//! decided anew.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Amounts, Item, SandboxReady, Seq, SessionId, SnapshotRef, ToolResult, TurnEnd};

/// A cut through a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The session that was cut.
    pub session: SessionId,
    /// The last event that belongs to it.
    pub at: Seq,
    /// The conversation as the model saw it.
    pub conversation: Vec<Item>,
    /// What the model is to be told next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<Item>,
    /// Results of the last reply's calls, by index, while others of them wait for a
    /// person. Nothing where no turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<BTreeMap<u32, Arc<ToolResult>>>,
    /// How the last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TurnEnd>,
    /// What was spent. A fork has spent it too; a rewind takes nothing back.
    pub spent: Amounts,
    /// What the conversation was made of, as far as that came from outside.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// Tokens of the conversation, as the provider counted them at the last reply.
    pub counted_tokens: u64,
    /// Bytes that came since and were not counted.
    pub uncounted_bytes: u64,
    /// Replies since the last compaction.
    pub replies: u64,
    /// The sandboxes that are the session's alone, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sandboxes: BTreeMap<String, CutSandbox>,
}

/// A sandbox in a cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutSandbox {
    /// As it was ready last.
    pub ready: SandboxReady,
    /// What is kept of its disk; without, it begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<SnapshotRef>,
}
