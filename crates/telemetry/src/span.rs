//! Something that took time in a session.

use outrigger_agent::{Seq, SessionId, Stop, Usage};
use std::sync::Arc;

use crate::{SpanId, TraceId};

/// Something that took time in a session, and is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The session.
    pub session: SessionId,
    /// The event that it began with; of an effect, its id.
    pub seq: Seq,
    /// Its trace.
    pub trace: TraceId,
    /// Its own id.
    pub id: SpanId,
    /// What it is a part of.
    pub parent: Option<SpanId>,
    /// When it began, milliseconds since 1970.
    pub begun_ms: u64,
    /// When it was over.
    pub ended_ms: u64,
    /// Who has the model, in the words of the conventions.
    pub provider: Arc<str>,
    /// The model of the session.
    pub model: Arc<str>,
    /// What was done.
    pub operation: Operation,
    /// What went wrong, in one of a few words.
    pub error: Option<&'static str>,
    /// What was said, by the names of attributes: empty unless it was asked for.
    pub content: Vec<(&'static str, String)>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A turn.
    InvokeAgent {
        /// The agent's name.
        agent: String,
        /// Tokens of all its model calls.
        usage: Usage,
    },
    /// A model was asked.
    Chat {
        /// Whether for a summary of the conversation.
        compaction: bool,
        /// What it answered, if it did.
        response: Option<ChatResponse>,
        /// What it cost, in billionths of a dollar.
        money_nanos: u64,
    },
    /// A tool was called.
    ExecuteTool {
        /// Its name.
        tool: String,
        /// The provider's id of the call.
        call: String,
        /// Where it ran, if in a sandbox.
        sandbox: Option<String>,
        /// By which id the sandbox knows it.
        exec: Option<String>,
        /// With what a command ended.
        exit_code: Option<i32>,
    },
    /// A person was asked, and answered.
    Approval {
        /// What they were asked about.
        tool: String,
        /// What they said.
        answer: &'static str,
    },
    /// A sandbox was made.
    ProvisionSandbox {
        /// Its name in the session.
        sandbox: String,
    },
}

/// What a model answered, without its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatResponse {
    /// The provider's id of it.
    pub id: Option<String>,
    /// The model that answered, as the provider named it.
    pub model: String,
    /// Why it ended.
    pub stop: Stop,
    /// What the provider counted.
    pub usage: Usage,
}

impl Operation {
    /// As the conventions call it, where they know it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::InvokeAgent { .. } => "invoke_agent",
            Self::Chat { .. } => "chat",
            Self::ExecuteTool { .. } => "execute_tool",
            Self::Approval { .. } => "approval",
            Self::ProvisionSandbox { .. } => "provision_sandbox",
        }
    }
}

impl Span {
    /// What people read in a list of spans.
    #[must_use]
    pub fn name(&self) -> String {
        let of = match &self.operation {
            Operation::InvokeAgent { agent, .. } => agent,
            Operation::Chat { .. } => &*self.model,
            Operation::ExecuteTool { tool, .. } | Operation::Approval { tool, .. } => tool,
            Operation::ProvisionSandbox { sandbox } => sandbox,
        };
        format!("{} {of}", self.operation.name())
    }

    /// How long it took, in milliseconds.
    #[must_use]
    pub fn took_ms(&self) -> u64 {
        self.ended_ms.saturating_sub(self.begun_ms)
    }
}
