//! A session in the hands of its driver: its state, what it may perform, and what
//! is under way.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger_agent::{
    Amounts, EgressReport, Event, Loss, Outcome, Park, Record, Seq, SessionId, SnapshotRef, State,
    Touched, Work, shrunk,
};
use outrigger_sandbox::Sandbox;
use outrigger_tools::ParsedCall;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

use super::grants::GrantTable;
use super::wait::WaitingOnPeople;
use crate::accounts::BudgetRefusals;
use crate::memory::MemoryTree;
use crate::{Engine, Error, limits, policy_facts};

/// An effect that came to its end.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) effect: Seq,
    pub(crate) outcome: Outcome,
    pub(crate) spent: Amounts,
    /// Whether nobody counted that.
    pub(crate) estimated: bool,
    /// The sandbox that turned out to be gone.
    pub(crate) lost: Option<SandboxLoss>,
    /// What was kept of the sandbox that was made, and its name.
    pub(crate) kept: Option<(String, SnapshotRef)>,
    /// The sandbox that it was done in, and its name.
    pub(crate) attached: Option<(String, Arc<dyn Sandbox>)>,
    /// What was done to entries of memory and skills meanwhile.
    pub(crate) touched: Touched,
    /// What its sandbox reached outside.
    pub(crate) reached: Option<EgressReport>,
    /// How long a provider that takes no more requests wants to be left alone, in milliseconds.
    pub(crate) retry_after_ms: Option<u64>,
}

impl Completion {
    /// An end in which no sandbox had a part.
    pub(crate) fn new(effect: Seq, outcome: Outcome, spent: Amounts) -> Self {
        let (lost, kept, attached, touched) = (None, None, None, Touched::default());
        let (estimated, reached, retry_after_ms) = (false, None, None);
        Self {
            effect,
            outcome,
            spent,
            estimated,
            lost,
            kept,
            attached,
            touched,
            reached,
            retry_after_ms,
        }
    }

    /// An end of which not all that it cost was counted.
    pub(crate) fn estimated(self) -> Self {
        Self { estimated: true, ..self }
    }
}

/// An effect under way. An error is the driver's: nothing came of it that could be settled.
pub(crate) type EffectFuture = BoxFuture<'static, Result<Completion, Error>>;

/// Whether an effect was started by this driver or by one that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptKind {
    /// Just now.
    Fresh,
    /// By one that is gone: it may have happened.
    Interrupted,
}

/// A sandbox that turned out to be gone.
#[derive(Debug, Clone)]
pub(crate) struct SandboxLoss {
    /// Its name in the session.
    pub(crate) sandbox: String,
    /// The life that ended.
    pub(crate) generation: String,
    pub(crate) loss: Loss,
}

/// Drives the session of a subagent, as its parent is driven. A pointer, because `step` begins
/// effects, and an effect may be a session.
pub(crate) type DriveBelow =
    for<'a> fn(&'a Engine, &'a SessionId) -> BoxFuture<'a, Result<Park, Error>>;

/// A session in the hands of its driver. Dropping it stops the waiting for what
/// is under way, not what is under way: that is found again.
pub(crate) struct SessionRun {
    pub(crate) session: SessionId,
    pub(crate) state: State,
    /// Authority to perform effects whose `Started` this driver appended.
    pub(crate) grants: GrantTable,
    pub(crate) running: BTreeSet<Seq>,
    pub(crate) under_way: FuturesUnordered<EffectFuture>,
    /// Those that only wait for a person.
    pub(crate) waiting: WaitingOnPeople,
    /// Set when a person stops what is under way: model calls hear of it.
    pub(crate) stopping: watch::Sender<bool>,
    /// Kept from call to call, so that each need not look for its sandbox again.
    pub(crate) sandboxes: BTreeMap<String, Arc<dyn Sandbox>>,
    /// How its subagents are driven.
    pub(crate) drive_below: DriveBelow,
    /// Calls of built-in tools that are not settled, each read once.
    calls: BTreeMap<Seq, (Work, Arc<ParsedCall>)>,
    /// Memory and skills as the session sees them, if it does.
    pub(crate) tree: Option<Arc<MemoryTree>>,
    /// What `pending` settles: to be settled again if it does not become durable.
    pub(crate) outcomes: Vec<Completion>,
    /// Applied to `state` but not durable yet.
    pub(super) pending: Vec<Event>,
    pub(super) pending_at_ms: u64,
    /// Up to where the fold is kept.
    pub(super) kept: Seq,
    /// What an account refused.
    pub(crate) refusals: BudgetRefusals,
    /// How often somebody else appended first, in a row.
    pub(super) overtaken: u32,
}

impl fmt::Debug for SessionRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRun")
            .field("session", &self.session)
            .field("seq", &self.state.seq())
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl SessionRun {
    /// Nothing is under way yet. `kept`: up to where the fold is kept.
    pub(crate) fn new(
        session: SessionId,
        state: State,
        kept: Seq,
        tree: Option<Arc<MemoryTree>>,
        drive_below: DriveBelow,
    ) -> Self {
        Self {
            session,
            drive_below,
            tree,
            state,
            grants: GrantTable::default(),
            running: BTreeSet::new(),
            under_way: FuturesUnordered::new(),
            waiting: WaitingOnPeople::default(),
            stopping: watch::Sender::default(),
            sandboxes: BTreeMap::new(),
            calls: BTreeMap::new(),
            outcomes: Vec::new(),
            pending: Vec::new(),
            pending_at_ms: 0,
            kept,
            refusals: BudgetRefusals::default(),
            overtaken: 0,
        }
    }

    /// The call of a built-in tool that an effect performs, if it does.
    pub(crate) fn parsed(&mut self, id: Seq) -> Option<Arc<ParsedCall>> {
        let state = &self.state;
        let work = &state.effect(id)?.work;
        // Where somebody else appended first, another effect may stand in its place.
        if let Some((_, parsed)) = self.calls.get(&id).filter(|(of, _)| of == work) {
            return Some(Arc::clone(parsed));
        }
        self.calls.retain(|id, _| state.effect(*id).is_some());
        let parsed = Arc::new(policy_facts::parse(state, work)?);
        self.calls.insert(id, (work.clone(), Arc::clone(&parsed)));
        Some(parsed)
    }

    /// Takes an event into the state; it becomes durable with the next flush.
    pub(crate) fn push(&mut self, at_ms: u64, event: Event) {
        self.pending_at_ms = self.at_ms(at_ms);
        if let Event::Started { effect, .. } = &event {
            self.refusals.starting.push(*effect);
        }
        let at_ms = self.pending_at_ms;
        let record = Record { seq: self.state.seq().next(), at_ms, event };
        self.state = std::mem::take(&mut self.state).apply(&record);
        self.pending.push(record.event);
    }

    /// The time that the next event carries.
    pub(crate) fn at_ms(&self, now_ms: u64) -> u64 {
        if self.pending.is_empty() { now_ms } else { self.pending_at_ms }
    }

    /// The start of an effect; if accounts refused this very one, with no more reserved than
    /// they leave. If even the least does not fit, or they refused that too, writes down that
    /// it is not started, and gives nothing.
    pub(crate) fn afford(&mut self, id: Seq, started: Event, at_ms: u64) -> Option<Event> {
        let Some(refusal) = self.refusals.refused.remove(&id) else { return Some(started) };
        let now_ms = self.at_ms(at_ms);
        let within = |charged_max| shrunk(&self.state, &started, charged_max, now_ms);
        if let Some(smaller) = refusal.charged_max.and_then(within) {
            (self.refusals.shrunk, self.refusals.singly) = (Some(id), true);
            return Some(smaller);
        }
        let shortfall = refusal.shortfall;
        self.push(at_ms, Event::Withheld { effect: id, shortfall });
        None
    }

    pub(crate) fn is_batch_full(&self) -> bool {
        self.pending.len() >= limits::BATCH_EVENTS_MAX
    }
}
