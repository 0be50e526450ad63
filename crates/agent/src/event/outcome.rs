//! What became of an effect, and of a turn.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{Reply, SandboxReady, Shortfall, Status};

/// What became of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done(Product),
    /// It was tried, or refused, and did not come about.
    Failed(Failure),
    /// It was stopped on a person's wish, or never started because of one.
    Cancelled,
    /// It may have happened fully, partly or not at all.
    Unknown {
        /// What is known, for the model and for people.
        evidence: String,
    },
}

impl Outcome {
    /// Where what it gave to read came from.
    pub(crate) fn labels(&self) -> BTreeSet<String> {
        match self {
            Self::Done(Product::Output(output)) => output.labels.clone(),
            Self::Done(_) | Self::Failed(_) | Self::Cancelled | Self::Unknown { .. } => {
                BTreeSet::new()
            }
        }
    }
}

/// What an effect produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Product {
    /// A model's reply, or its summary.
    Reply(Arc<Reply>),
    /// A sandbox.
    Sandbox(SandboxReady),
    /// A tool's output.
    Output(ToolOutput),
}

/// A tool's output as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// `Ok` or `Error`.
    pub status: Status,
    /// What the model sees.
    pub text: String,
    /// The exit code, for a command that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Bytes of output that the model does not see.
    #[serde(default)]
    pub hidden_bytes: u64,
    /// Where its content came from, if that was outside; see [`crate::labels_of`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
}

impl ToolOutput {
    /// Text of ours, all of which the model sees.
    #[must_use]
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        let (text, labels) = (text.into(), BTreeSet::new());
        Self { status, text, exit_code: None, hidden_bytes: 0, labels }
    }
}

/// Why an effect did not come about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The model could not be asked.
    Model {
        /// What kind of fault.
        fault: ModelFault,
        /// What the provider said, and what to do.
        detail: String,
        /// When the turn asks it again by itself, in milliseconds since 1970. If absent, the
        /// turn ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<u64>,
    },
    /// The tool call is malformed; it was never performed.
    Call(CallFault),
    /// The rules forbid it, or a person denied it.
    Denied {
        /// Why.
        reason: String,
    },
    /// No sandbox could be made.
    Sandbox {
        /// What is missing and what to do.
        detail: String,
    },
    /// Doing it again after a crash does not fit into the budget.
    Budget,
}

/// Why a model could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// The key is missing or refused.
    Auth,
    /// The request is wrong, and would be again.
    Invalid,
    /// The conversation does not fit into the model's context.
    ContextTooLong,
    /// Too many requests, of the account or of everybody, also after every attempt.
    RateLimited,
    /// Not reachable, or failing, also after every attempt.
    Unavailable,
    /// Its answers were broken, also after every attempt.
    Garbled,
    /// The script has no turn for this.
    Script,
}

/// What is wrong with a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFault {
    /// The arguments are no JSON object.
    Malformed {
        /// Where and why.
        detail: String,
    },
    /// The model's output ended within it, at its limit.
    Cut,
    /// Another call of the reply has the same id.
    Duplicated,
    /// There is no such tool.
    Unknown {
        /// The tools that there are.
        available: Vec<String>,
    },
    /// The arguments are larger than [`crate::limits::ARGUMENT_BYTES_MAX`].
    Oversized {
        /// How large.
        bytes: u64,
    },
    /// The same call was made [`crate::limits::SAME_CALL_MAX`] times in a row.
    Cyclic {
        /// How often.
        times: u32,
    },
    /// The reply had more than [`crate::limits::CALLS_PER_REPLY_MAX`] calls.
    TooMany,
}

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model said that it is done.
    Answered,
    /// The model or its provider refused.
    Refused {
        /// The reason, if one was given.
        reason: String,
    },
    /// The model's answer was cut at its output limit and asked for no tool.
    OutputLimit,
    /// The model said nothing and called no tool, also when it was asked once more. It can
    /// be resumed.
    Empty,
    /// The turn has no steps left. It can be resumed.
    StepsExhausted,
    /// The turn has no time left. It can be resumed.
    TimeExhausted,
    /// What comes next does not fit into the budget. It can be resumed when the budget is raised.
    BudgetExhausted,
    /// What it may cost stands against what comes next. It can be resumed when that is
    /// changed.
    OutOfBudget(Shortfall),
    /// The model could not be asked. It can be resumed.
    ModelFailed {
        /// What kind of fault.
        fault: ModelFault,
        /// What to do.
        detail: String,
    },
    /// No sandbox could be made. It can be resumed.
    SandboxFailed {
        /// What to do.
        detail: String,
    },
    /// A person stopped it.
    Interrupted,
    /// The session was ended.
    Cancelled,
}
