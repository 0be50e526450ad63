//! The fold of a journal: everything that a decision may look at, and nothing else.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outrigger_policy::{Approved, RuleSetHash};

use crate::round::Round;
use crate::sandboxes::Known;
use crate::{
    Amounts, Asked, Call, Item, Kept, Limit, Loss, OutsideTool, Place, SandboxReady, Seen, Seq,
    Spec, ToolCall, ToolKind, ToolSpec, TurnEnd, TurnLimits, Work, limits,
};

/// Version of the fold. A snapshot of another version is ignored and the journal folded anew.
pub const FOLD: u32 = 8;

/// The state of a session. Made by [`State::apply`], read by [`State::decide`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    pub(crate) seq: Seq,
    pub(crate) spec: Option<Arc<Spec>>,
    pub(crate) conversation: Vec<Item>,
    /// Said, or to be told, before the next model call.
    pub(crate) queued: Vec<Item>,
    /// Effects that are not settled.
    pub(crate) effects: BTreeMap<Seq, Effect>,
    /// The tool calls of the last reply, until the last of them has its result.
    pub(crate) round: Option<Round>,
    pub(crate) turn: Option<Turn>,
    /// How the last turn ended, if none runs.
    pub(crate) ended: Option<TurnEnd>,
    /// Why the running turn can't go on.
    pub(crate) stuck: Option<TurnEnd>,
    pub(crate) cancelled: bool,
    pub(crate) limits: Option<TurnLimits>,
    pub(crate) budget: Limit,
    /// Levels whose soft limit a person let the session go beyond, and when, in milliseconds.
    #[serde(default)]
    pub(crate) soft_lifted: BTreeMap<String, u64>,
    pub(crate) spent: Amounts,
    /// What of that was spent by the session that this one is a fork of.
    #[serde(default)]
    pub(crate) inherited: Amounts,
    /// Sandboxes that were ready once, whether they live or not.
    pub(crate) sandboxes: BTreeMap<String, Known>,
    pub(crate) context: Context,
    /// The last tool call, by tool and arguments, and how often it came in a row.
    pub(crate) repeated: Option<(String, u32)>,
    /// Where what reached the conversation came from, summaries or not. Only grows.
    pub(crate) labels: BTreeSet<String>,
    /// The last version of the store that the journal names.
    #[serde(default)]
    pub(crate) noted: u64,
}

/// The running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub(crate) since_ms: u64,
    pub(crate) steps: u64,
    /// Until when a subagent was waited for last.
    pub(crate) awaited_ms: u64,
    /// Since when nothing is left to do but what people were asked about, in milliseconds.
    #[serde(default)]
    pub(crate) idle_since_ms: Option<u64>,
    /// Something was said when the turn could not go on any more: another follows.
    pub(crate) followed: bool,
}

/// How full the model's context is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Context {
    /// As the provider counted it at the last reply.
    pub(crate) tokens: u64,
    /// Added since then and not counted yet.
    pub(crate) bytes: u64,
    /// Replies since the last compaction: without one there is nothing to compact.
    pub(crate) replies: u64,
    /// The provider said that it is too long.
    pub(crate) overflowed: bool,
    /// How often in a row it was to be made shorter, in vain.
    #[serde(default)]
    pub(crate) attempts: u32,
}

impl Context {
    /// So many bytes more that nobody counted.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// An effect that is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What it does.
    pub work: Work,
    /// How far it is.
    pub phase: Phase,
    /// Which rules judged it last.
    #[serde(default)]
    pub judged: Option<RuleSetHash>,
    /// What the rules ask, if they do.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// Who approved it, under the rules that ask now.
    #[serde(default)]
    pub approved: Vec<Approved>,
    /// What the file that it changes was when it was approved.
    #[serde(default)]
    pub seen: Option<Seen>,
}

/// How far an effect is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The rules were not asked yet.
    Proposed,
    /// A person has to answer.
    Asked,
    /// It may start.
    Permitted,
    /// It may not be done.
    Refused {
        /// Why.
        reason: String,
    },
    /// It is being performed, or was when the harness died.
    Started {
        /// Which attempt.
        attempt: u32,
        /// What is reserved for it.
        reserved: Amounts,
        /// Where it runs.
        place: Option<Place>,
        /// Since when, in milliseconds.
        since_ms: u64,
    },
}

impl State {
    /// Place of the last event that was folded in.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// What the session was opened with.
    #[must_use]
    pub fn spec(&self) -> Option<&Arc<Spec>> {
        self.spec.as_ref()
    }

    /// The conversation as the model sees it.
    #[must_use]
    pub fn conversation(&self) -> &[Item] {
        &self.conversation
    }

    /// An effect that is not settled.
    #[must_use]
    pub fn effect(&self, id: Seq) -> Option<&Effect> {
        self.effects.get(&id)
    }

    /// A living sandbox of the session, by its name there.
    #[must_use]
    pub fn sandbox(&self, name: &str) -> Option<&SandboxReady> {
        self.sandboxes.get(name).filter(|known| known.lost.is_none()).map(|known| &known.ready)
    }

    /// A sandbox as it was ready last, whether it lives or not: what its disk holds is
    /// then work, and not something that was left half done.
    #[must_use]
    pub fn last_ready(&self, name: &str) -> Option<&SandboxReady> {
        self.sandboxes.get(name).map(|known| &known.ready)
    }

    /// Whether a sandbox is still to go back to what was kept of it.
    #[must_use]
    pub fn is_set_back(&self, name: &str) -> bool {
        self.sandboxes.get(name).is_some_and(|known| known.lost == Some(Loss::SetBack))
    }

    /// The session's living sandboxes.
    pub fn sandboxes(&self) -> impl Iterator<Item = (&str, &SandboxReady)> {
        let living = self.sandboxes.iter().filter(|(_, known)| known.lost.is_none());
        living.map(|(name, known)| (name.as_str(), &known.ready))
    }

    /// The last version of the store that the journal names as made by this session.
    #[must_use]
    pub fn noted(&self) -> u64 {
        self.noted
    }

    /// What is kept of a sandbox, the oldest first.
    #[must_use]
    pub fn kept(&self, name: &str) -> &[Kept] {
        self.sandboxes.get(name).map_or(&[], |known| &known.kept)
    }

    /// The last event that let something change a living sandbox after it was kept.
    #[must_use]
    pub fn unkept(&self, name: &str) -> Option<Seq> {
        self.sandboxes.get(name).filter(|known| known.lost.is_none())?.changed
    }

    /// How the last turn ended; `None` while one runs or before the first.
    #[must_use]
    pub fn ended(&self) -> Option<&TurnEnd> {
        self.ended.as_ref()
    }

    /// Whether the session was ended for good.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Whether a turn runs.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// How a session stands in which a person is asked.
    pub const WAITS: &str = "waits for approval";

    /// How the session stands, in a word or two.
    #[must_use]
    pub fn status(&self) -> &'static str {
        if self.cancelled && !self.is_closed() {
            return "cancelled";
        }
        if self.turn.is_some() {
            let asked = self.effects.values().any(|effect| effect.phase == Phase::Asked);
            return if asked { Self::WAITS } else { "running" };
        }
        match &self.ended {
            None => "new",
            Some(TurnEnd::Answered) if self.cancelled => "done",
            Some(TurnEnd::Answered) => "answered",
            Some(TurnEnd::Refused { .. }) => "refused",
            Some(TurnEnd::OutputLimit) => "answer cut",
            Some(TurnEnd::StepsExhausted) => "out of steps",
            Some(TurnEnd::TimeExhausted) => "out of time",
            Some(TurnEnd::BudgetExhausted | TurnEnd::OutOfBudget(_)) => "out of budget",
            Some(TurnEnd::ModelFailed { .. }) => "model failed",
            Some(TurnEnd::SandboxFailed { .. }) => "no sandbox",
            Some(TurnEnd::Interrupted) => "interrupted",
            Some(TurnEnd::Empty) => "said nothing",
            Some(TurnEnd::Cancelled) => "cancelled",
        }
    }

    /// Whether it is a subagent that had come to its end before it was ended for good.
    fn is_closed(&self) -> bool {
        self.is_child() && self.turn.is_none() && self.ended.is_some()
    }

    /// What was spent, settled effects only.
    #[must_use]
    pub fn spent(&self) -> Amounts {
        self.spent
    }

    /// What the accounts above it are charged: what it spent itself. Nothing for a
    /// subagent, whose parent is charged.
    #[must_use]
    pub fn charged(&self) -> Amounts {
        if self.is_child() { Amounts::default() } else { self.spent.minus(self.inherited) }
    }

    /// What the accounts above it keep free for it.
    #[must_use]
    pub fn charged_reserved(&self) -> Amounts {
        if self.is_child() { Amounts::default() } else { self.reserved() }
    }

    /// Whether it is a subagent.
    #[must_use]
    pub fn is_child(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.role.parent.is_some())
    }

    /// What may be spent in all.
    #[must_use]
    pub fn budget(&self) -> Limit {
        self.budget
    }

    /// The tool that a name stands for.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.spec.as_ref()?.tools.iter().find(|tool| tool.name == name)
    }

    /// The call that an effect performs, as the model wrote it. Nothing unless the
    /// last reply contains it with the same id, tool and arguments: nothing else
    /// can propose one.
    #[must_use]
    pub fn call(&self, work: &ToolCall) -> Option<&Call> {
        let round = self.round.as_ref().filter(|round| round.reply == work.reply)?;
        round.genuine(work)
    }

    /// The outside tool that an effect calls.
    #[must_use]
    pub fn outside(&self, work: &Work) -> Option<&OutsideTool> {
        let Work::CallTool(call) = work else { return None };
        let tool = self.tool(&call.tool).filter(|tool| tool.kind == ToolKind::Outside)?;
        tool.outside.as_ref()
    }

    /// Whether an effect that was started may have changed something that nobody here
    /// can look at again.
    #[must_use]
    pub fn may_have_acted(&self, id: Seq) -> bool {
        let outside = self.effect(id).and_then(|effect| self.outside(&effect.work));
        outside.is_some_and(|tool| !tool.read_only)
    }

    /// The sandbox that a call acts in. Nothing if it needs none.
    #[must_use]
    pub fn sandbox_for(&self, work: &ToolCall) -> Option<&str> {
        let tool = self.tool(&work.tool)?;
        match self.call(work) {
            Some(call) => tool.sandbox_for(call.given()),
            None => tool.sandbox.as_deref(),
        }
    }

    /// Tokens that the conversation will take as input: what the provider counted
    /// at the last reply, and an estimate on the safe side of what came since.
    #[must_use]
    pub fn input_tokens_estimate(&self) -> u64 {
        self.context.tokens.saturating_add(self.context.bytes.div_ceil(limits::BYTES_PER_TOKEN))
    }

    /// Whether a person stopped what runs: nothing further starts.
    pub(crate) fn is_stopping(&self) -> bool {
        self.cancelled || self.stuck == Some(TurnEnd::Interrupted)
    }

    /// What open effects may still cost.
    #[must_use]
    pub fn reserved(&self) -> Amounts {
        let sum = |sum: Amounts, effect: &Effect| match &effect.phase {
            Phase::Started { reserved, .. } => sum.plus(*reserved),
            Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. } => sum,
        };
        self.effects.values().fold(Amounts::default(), sum)
    }

    /// The same without what is reserved for this very work.
    #[must_use]
    pub fn reserved_beside(&self, work: &Work) -> Amounts {
        let own = self.effects.iter().find(|(_, effect)| effect.work == *work);
        self.reserved().minus(own.map_or_else(Amounts::default, |(id, _)| self.reserved_for(*id)))
    }

    /// Whether an amount still fits beside what is spent and reserved.
    pub(crate) fn affords(&self, amounts: Amounts) -> bool {
        self.spent.plus(self.reserved()).plus(amounts).fits(self.budget)
    }
}
