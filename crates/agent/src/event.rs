//! The ledger's events: what happened, in the past tense, never changed.
//!
//! New variants and fields are added, with defaults; none is renamed or removed.
//! `FORMAT` counts such additions, so that an older program can tell that a
//! journal is newer than itself.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

use outrigger_policy::{RuleSetHash, Verdict};

use crate::{
    Amounts, Cut, Digest, Kept, Limit, Loss, Message, Reply, SandboxReady, Seen, Seq, Shortfall,
    Spec, Status, Touched, TurnLimits,
};

/// Version of the event format that this program writes.
pub const FORMAT: u32 = 5;

/// An event with its place and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its place in the session.
    pub seq: Seq,
    /// When it was appended, milliseconds since 1970.
    pub at_ms: u64,
    /// What happened.
    pub event: Event,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The session was opened. Always the first event.
    Opened(Arc<Spec>),
    /// Something was said to the agent: it begins a turn, or steers the running one.
    Said(Arc<Message>),
    /// An effect was proposed; its id is the place of this event.
    Proposed(Work),
    /// The rules were asked about it.
    Decided {
        /// The effect.
        effect: Seq,
        /// What they said, with the rules that said so.
        verdict: Verdict,
        /// Which rules were in force.
        rule_set: RuleSetHash,
    },
    /// A person answered a verdict of `ask`.
    Answered {
        /// The effect.
        effect: Seq,
        /// Who answered.
        by: String,
        /// Digest of the arguments that they looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Digest>,
        /// What they said.
        answer: Answer,
    },
    /// Budget is reserved and the effect is about to be performed. A second one
    /// for the same effect means that the attempt before was lost in a crash and
    /// stays charged as an estimate.
    Started {
        /// The effect.
        effect: Seq,
        /// Which attempt, from 1.
        attempt: u32,
        /// What it may cost at most.
        reserved: Amounts,
        /// Where it runs, for work in a sandbox.
        place: Option<Place>,
    },
    /// The effect was about to be started, and was not, because of what it may cost. If it
    /// was started before, that attempt was lost in a crash and stays charged as an estimate.
    Withheld {
        /// The effect.
        effect: Seq,
        /// What stands against it.
        shortfall: Shortfall,
    },
    /// The effect is over, once and for all.
    Settled {
        /// The effect.
        effect: Seq,
        /// What became of it.
        outcome: Outcome,
        /// What it cost; takes the place of the reservation.
        spent: Amounts,
        /// Whether nobody counted that, or not all of it: then it is an estimate.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A sandbox of the session is gone.
    SandboxLost {
        /// Its name in the session.
        sandbox: String,
        /// The life that ended.
        generation: String,
        /// How. The model is told when another takes its place.
        #[serde(default)]
        loss: Loss,
    },
    /// The disk of a sandbox was kept, as it is at this place of the session.
    SandboxKept {
        /// Its name in the session.
        sandbox: String,
        /// What is kept.
        kept: Kept,
        /// Snapshots that were kept before and are not any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<String>,
    },
    /// A person stopped the current turn; the session stays.
    Interrupted {
        /// Who.
        by: String,
    },
    /// The session was ended for good.
    Cancelled {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// A turn that had stopped before its answer goes on, perhaps with other limits.
    Resumed {
        /// Who.
        by: String,
        /// The session's new budget, if it changed.
        budget: Option<Limit>,
        /// The turn's new limits, if they changed; its steps and time count anew.
        turn: Option<TurnLimits>,
    },
    /// The turn is over.
    TurnEnded(TurnEnd),
    /// The session begins as another one stood. Always the second event.
    Forked {
        /// Who.
        by: String,
        /// Where the other one was cut.
        cut: Arc<Cut>,
    },
    /// The session went back to where it stood before; what was spent stays spent.
    Rewound {
        /// Who.
        by: String,
        /// The cut of its own.
        cut: Arc<Cut>,
    },
    /// Files of memory or of skills were changed, read where that labels the session, or
    /// reached for in vain, by a tool or by a program in a sandbox.
    Touched(Arc<Touched>),
}

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

/// A person's answer to a verdict of `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It may be done, once, if the rules still only ask.
    Approved {
        /// The rules that were in force when the person looked.
        rule_set: RuleSetHash,
        /// What the file that it changes was then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<Seen>,
    },
    /// It may not as it is: a new effect with other arguments takes its place, which the
    /// rules are asked about like any other.
    Amended {
        /// The arguments, a JSON object.
        arguments: String,
    },
    /// It may not; the model is told why.
    Denied {
        /// The reason.
        reason: String,
    },
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
    /// Too many requests, also after every attempt.
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
