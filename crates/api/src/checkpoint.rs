//! Where a session stood: another one can begin there, or it goes back.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A place at which a session waited and the disks of its sandboxes were kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointInfo {
    /// The last event that belongs to it.
    pub at: u64,
    /// When that was.
    pub at_ms: u64,
    /// How the session stood, in a word or two.
    pub status: String,
    /// What was said last, its first line; empty before anything was.
    pub said: String,
    /// Whether its disks are still kept.
    pub kept: bool,
}

/// The checkpoints of a session, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct CheckpointList {
    /// The checkpoints.
    pub data: Vec<CheckpointInfo>,
}

/// Begins another session where this one stood.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkSession {
    /// `at` of a checkpoint; the last one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// Takes a session back to where it stood. What was spent stays spent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RewindSession {
    /// `at` of a checkpoint; the one before its last turn if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}
