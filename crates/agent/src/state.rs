//! The fold of a journal: everything that a decision may look at, and nothing else.

use outrigger_policy::Trigger;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::assignment::assignment;
use crate::context::Context;
use crate::effects::Effects;
use crate::heard::HeardRequests;
use crate::round::Round;
use crate::sandboxes::Sandboxes;
use crate::sharing::Sharing;
use crate::{
    AccountId, Amounts, Answer, ApprovalRequest, Approvals, Assignment, Call, Delegate, Digest,
    Effect, Item, Limit, Loss, ModelSpec, OutsideTool, Phase, Picture, SandboxReady, Seq,
    SessionId, SharedAccess, Shortfall, SnapshotRef, Spec, ToolCall, ToolKind, ToolSpec, Turn,
    TurnEnd, TurnLimits, Unanswerable, Work, pictures,
};

/// Version of the fold. A snapshot of another version is ignored and the journal folded anew.
pub const FOLD: u32 = 11;

/// The state of a session. Made by [`State::apply`], read by [`State::decide`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    pub(crate) seq: Seq,
    pub(crate) spec: Option<Arc<Spec>>,
    pub(crate) conversation: Vec<Item>,
    /// Said, or to be told, before the next model call.
    pub(crate) queued: Vec<Item>,
    /// Said while a turn runs, for one that begins when it is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) after_turn: Vec<Item>,
    /// Effects that are not settled.
    pub(crate) effects: Effects,
    /// The tool calls of the last reply, until the last of them has its result.
    pub(crate) round: Option<Round>,
    pub(crate) turn: Option<Turn>,
    /// What opened the session, until its first turn has ended.
    #[serde(default)]
    pub(crate) trigger: Option<Trigger>,
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
    pub(crate) sandboxes: Sandboxes,
    pub(crate) context: Context,
    /// The last tool call, by tool and arguments, and how often it came in a row.
    pub(crate) repeated: Option<(String, u32)>,
    /// Where what reached the conversation came from, summaries or not. Only grows.
    pub(crate) labels: BTreeSet<String>,
    /// The last version of the store that the journal names.
    #[serde(default)]
    pub(crate) noted: u64,
    #[serde(default)]
    pub(crate) sharing: Sharing,
    #[serde(default, skip_serializing_if = "HeardRequests::is_empty")]
    pub(crate) heard: HeardRequests,
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

    /// With whom it is shared, by principal name (`person:bob`, `group:ops`, `org:acme`).
    #[must_use]
    pub fn shares(&self) -> &BTreeMap<String, SharedAccess> {
        &self.sharing.shares
    }

    /// Who must be permitted what the turn does, beside the person whose the session is.
    #[must_use]
    pub fn speakers(&self) -> &BTreeSet<String> {
        &self.sharing.speakers
    }

    /// What set off the turn that runs, or the next one.
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        let usual = if self.is_child() { Trigger::Agent } else { Trigger::Person };
        self.trigger.unwrap_or(usual)
    }

    /// The conversation as the model sees it.
    #[must_use]
    pub fn conversation(&self) -> &[Item] {
        &self.conversation
    }

    /// The pictures that the model is shown, and those that it is to be shown next.
    pub fn pictures(&self) -> impl Iterator<Item = &Picture> {
        let waiting = pictures(&self.queued).chain(pictures(&self.after_turn));
        pictures(&self.conversation).chain(waiting)
    }

    /// An effect that is not settled.
    #[must_use]
    pub fn effect(&self, id: Seq) -> Option<&Effect> {
        self.effects.get(id)
    }

    /// A living sandbox of the session, by its name there.
    #[must_use]
    pub fn sandbox(&self, name: &str) -> Option<&SandboxReady> {
        self.sandboxes.living(name).map(|known| &known.ready)
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
        living.map(|(name, known)| (name, &known.ready))
    }

    /// The last version of the store that the journal names as made by this session.
    #[must_use]
    pub fn noted(&self) -> u64 {
        self.noted
    }

    /// What is kept of a sandbox, the oldest first.
    #[must_use]
    pub fn kept(&self, name: &str) -> &[SnapshotRef] {
        self.sandboxes.get(name).map_or(&[], |known| &known.kept)
    }

    /// The last event that let something change a living sandbox after it was kept.
    #[must_use]
    pub fn unkept(&self, name: &str) -> Option<Seq> {
        self.sandboxes.living(name)?.changed
    }

    /// How the last turn ended; `None` while one runs or before the first.
    #[must_use]
    pub fn ended(&self) -> Option<&TurnEnd> {
        self.ended.as_ref()
    }

    /// Whether something was said by a request of that name within the last two days
    /// ([`limits::REQUEST_KEPT_MS`](crate::limits::REQUEST_KEPT_MS)).
    #[must_use]
    pub fn has_heard(&self, request: &Digest) -> bool {
        self.heard.has(request)
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
            let asks = self.effects.iter().any(|(_, effect)| effect.phase == Phase::Asked);
            return if asks { Self::WAITS } else { "running" };
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
        self.context.input_tokens()
    }

    /// Another model is asked from now on, if one is said, and nothing is forgotten over it.
    pub(crate) fn change_model(&mut self, model: Option<&ModelSpec>) {
        if let (Some(spec), Some(model), false) = (&mut self.spec, model, self.cancelled) {
            Arc::make_mut(spec).model = model.clone();
        }
    }

    pub(crate) fn change_network(&mut self, network: Option<&[String]>) {
        if let (Some(spec), Some(network), false) = (&mut self.spec, network, self.cancelled)
            && spec.network() != network
            && let Some(first) = Arc::make_mut(spec).sandboxes.first_mut()
        {
            first.network = network.to_vec();
            let reach = if network.is_empty() { "nothing".to_owned() } else { network.join(", ") };
            let text = format!("From now on commands in the sandbox may reach: {reach}.");
            self.enqueue(Item::Notice(text.as_str().into()));
        }
    }

    /// What a sandbox may reach, in the words of `--net`.
    #[must_use]
    pub fn network(&self, sandbox: &str) -> &[String] {
        let spec = self.spec.as_deref().and_then(|spec| spec.sandbox(sandbox));
        spec.map_or(&[], |sandbox| &sandbox.network)
    }

    /// Whether a person stopped what runs: nothing further starts.
    pub(crate) fn is_stopping(&self) -> bool {
        self.cancelled || self.stuck == Some(TurnEnd::Interrupted)
    }

    /// What open effects may still cost.
    #[must_use]
    pub fn reserved(&self) -> Amounts {
        self.effects.reserved()
    }

    /// What open effects may still cost, without what is reserved for this very work.
    #[must_use]
    pub fn reserved_beside(&self, work: &Work) -> Amounts {
        let own = self.effects.of_work(work).map(Effect::reserved);
        self.reserved().minus(own.unwrap_or_default())
    }

    /// What is reserved for one effect.
    #[must_use]
    pub fn reserved_for(&self, id: Seq) -> Amounts {
        self.effect(id).map(Effect::reserved).unwrap_or_default()
    }

    /// What an effect that is under way is charged with if it ends now and nobody counted.
    #[must_use]
    pub fn spent_at_most(&self, id: Seq, now_ms: u64) -> Amounts {
        self.effect(id).map(|effect| effect.spent_at_most(now_ms)).unwrap_or_default()
    }

    /// Whether an amount still fits beside what is spent and reserved.
    pub(crate) fn affords(&self, amounts: Amounts) -> bool {
        self.spent.plus(self.reserved()).plus(amounts).fits(self.budget)
    }

    /// When a person let the session go on beyond the soft limit of a level, an account or
    /// `session`, in milliseconds since 1970. Nothing if nobody did.
    #[must_use]
    pub fn soft_lifted_ms(&self, level: &str) -> Option<u64> {
        self.soft_lifted.get(level).copied()
    }

    /// The soft limit of the session's own budget.
    #[must_use]
    pub fn soft(&self) -> Limit {
        self.spec.as_ref().map_or(Limit::NONE, |spec| spec.soft)
    }

    /// The accounts above the session that it is charged to.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountId> {
        let Some(spec) = &self.spec else { return Vec::new() };
        vec![AccountId::organisation(), AccountId::user(&spec.principal)]
    }

    /// What stands against the turn's going on, from the budget of the session itself or
    /// from an account.
    #[must_use]
    pub fn out_of_budget(&self) -> Option<&Shortfall> {
        match &self.ended {
            Some(TurnEnd::OutOfBudget(shortfall)) => Some(shortfall),
            _ => None,
        }
    }

    /// Where what the model was told came from.
    #[must_use]
    pub fn labels(&self) -> &BTreeSet<String> {
        &self.labels
    }

    /// How people are asked in this session.
    #[must_use]
    pub fn approvals(&self) -> Approvals {
        self.spec().map_or_else(Approvals::default, |spec| spec.approvals)
    }

    /// Effects that wait for an answer.
    pub fn asked(&self) -> impl Iterator<Item = (Seq, &Effect, &ApprovalRequest)> {
        self.effects.asked()
    }

    /// When the first of those that wait for an answer is denied without one.
    #[must_use]
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.effects.next_expiry_ms(self.approvals())
    }

    /// Whether an answer would change something now.
    ///
    /// # Errors
    /// Why not.
    pub fn answerable(
        &self,
        id: Seq,
        arguments: Option<&Digest>,
        answer: &Answer,
        now_ms: u64,
    ) -> Result<(), Unanswerable> {
        let effect = self.effect(id).ok_or(Unanswerable::Over)?;
        effect.answerable(self.approvals(), arguments, answer, now_ms)
    }

    /// Whether an effect is a subagent.
    #[must_use]
    pub fn is_subagent(&self, id: Seq) -> bool {
        self.effect(id).is_some_and(|effect| self.starts_subagent(&effect.work))
    }

    /// Whether work is to start a subagent.
    pub(crate) fn starts_subagent(&self, work: &Work) -> bool {
        let Work::CallTool(call) = work else { return false };
        self.tool(&call.tool).is_some_and(|tool| tool.kind == ToolKind::Subagent)
    }

    /// The subagents that were started and gave no result yet. One of them may not be
    /// opened yet.
    pub fn subagents(&self, session: &SessionId) -> impl Iterator<Item = SessionId> {
        let started = |(id, effect): (Seq, &Effect)| {
            let started = matches!(effect.phase, Phase::Started { .. });
            (started && self.starts_subagent(&effect.work)).then(|| session.child(id))
        };
        self.effects.iter().filter_map(started)
    }

    /// What the model asks of a subagent.
    ///
    /// # Errors
    /// What is wrong with it, for the model.
    pub fn assignment(&self, call: &ToolCall) -> Result<(Assignment, &Delegate), String> {
        let genuine = self.call(call).ok_or("no reply of the model contains this call")?;
        assignment(genuine, self.spec().map_or(&[], |spec| &spec.role.agents))
    }
}
