//! Whether a journal is as it was written.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an audit of a session found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditReport {
    /// Whether everything is as it was written.
    pub clean: bool,
    /// Events that were read.
    pub events: u64,
    /// Events at its end that no signed checkpoint covers yet.
    pub uncovered: u64,
    /// What is wrong, in words.
    pub faults: Vec<String>,
    /// The newest checkpoint whose signature and root fit, as a signed note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}
