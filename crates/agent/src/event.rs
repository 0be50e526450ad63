//! The ledger's events: what happened, in the past tense, never changed.
//!
//! New variants and fields are added, with defaults; none is renamed or removed.
//! `FORMAT` counts such additions, so that an older program can tell that a
//! journal is newer than itself.

mod cut;
mod outcome;
mod reached;
mod shared;
mod touched;
mod work;

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use outrigger_policy::{RuleSetHash, Verdict};

use crate::{
    Amounts, Answer, Digest, Limit, Loss, Message, ModelSpec, Seq, Shortfall, SnapshotRef, Spec,
    TurnLimits,
};

pub use cut::{Cut, CutSandbox};
pub use outcome::{CallFault, Failure, ModelFault, Outcome, Product, ToolOutput, TurnEnd};
pub use reached::{EgressFlow, EgressReport};
pub use shared::SharedAccess;
pub use touched::{EntryChange, EntryRefused, Touched};
pub use work::{Place, ToolCall, Work};

/// Version of the event format that this program writes.
pub const FORMAT: u32 = 10;

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
        kept: SnapshotRef,
        /// Snapshots that were kept before and are not any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped: Vec<String>,
    },
    /// A person stopped the current turn; the session stays.
    Interrupted {
        /// Who.
        by: String,
    },
    /// The session is shared with somebody, or not any more.
    Shared {
        /// With whom, by principal name: `person:bob`, `group:ops`, `org:acme`.
        with: String,
        /// What they may do in it from now on.
        access: SharedAccess,
        /// Who.
        by: String,
    },
    /// The conversation is to be summarised before the model is asked again.
    CompactionRequested {
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
        /// The model that is asked from now on, if it is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Box<ModelSpec>>,
        /// What its first sandbox may reach from now on, if that is otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<Vec<String>>,
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
    /// Commands in a sandbox reached something outside, or tried to.
    Reached(Arc<EgressReport>),
}
