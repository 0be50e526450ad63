//! What an effect does, and where.

use serde::{Deserialize, Serialize};

use crate::{Digest, Seq};

/// What an effect does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Ask the model for its next reply.
    AskModel,
    /// Ask the model for a summary that takes the place of the conversation.
    Compact,
    /// Make the sandbox of that name, with its starting content.
    Provision {
        /// Name in the session, for example `work`.
        sandbox: String,
    },
    /// Perform a tool call of a reply.
    CallTool(ToolCall),
}

/// Names a tool call by the reply that wished for it: nothing else can propose one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model effect whose reply contains the call.
    pub reply: Seq,
    /// Which of its calls, from 0.
    pub index: u32,
    /// The provider's id of the call.
    pub call: String,
    /// Name of the tool.
    pub tool: String,
    /// Digest of the raw text of the arguments, which stands in the reply.
    pub arguments: Digest,
    /// The effect in whose place it came, because a person changed its arguments: they
    /// stand in the answer about that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<Seq>,
}

/// Where work in a sandbox runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Name of the sandbox in the session.
    pub sandbox: String,
    /// Which life of it.
    pub generation: String,
    /// The exec id, by which it is found again.
    pub exec: String,
}
