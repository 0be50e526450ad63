//! What sandboxes reached, over all sessions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{HostFlow, VerdictKind};

/// What passed, or did not, between a sandbox and a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EgressInfo {
    /// The session.
    pub session: String,
    /// The place in its journal at which it was noted.
    pub seq: u64,
    /// When it was noted, milliseconds since 1970: the command that did it was over then.
    pub at_ms: u64,
    /// Whose session it is.
    pub person: String,
    /// The sandbox, by its name in the session.
    pub sandbox: String,
    /// The effect at whose end it was noted.
    pub effect: u64,
    /// Whether it passed: `permit` or `forbid`.
    pub verdict: VerdictKind,
    /// Host, port, what let it pass or refused it, how much.
    #[serde(flatten)]
    pub flow: HostFlow,
}

/// Some of it, of the newest sessions first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EgressList {
    /// Of each session the newest first. There may be none, and yet more that continues the list.
    pub data: Vec<EgressInfo>,
    /// What continues the list, given as `cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
