//! A session in the hands of its driver: its state, what it may perform, and what
//! is under way.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger_agent::{
    Amounts, Author, Event, FOLD, Item, Kept, Loss, Message, Outcome, Record, Seq, SessionId,
    State, Touched,
};
use outrigger_sandbox::Sandbox;
use outrigger_store::{Cover, Error as StoreError, SessionSnapshot, SessionSummary};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

use super::grants::GrantTable;
use super::wait::WaitingOnPeople;
use crate::accounts::BudgetRefusals;
use crate::memory::MemoryTree;
use crate::{Engine, Error, Notice, limits};

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
    pub(crate) kept: Option<(String, Kept)>,
    /// The sandbox that it was done in, and its name.
    pub(crate) attached: Option<(String, Arc<dyn Sandbox>)>,
    /// What was done to entries of memory and skills meanwhile.
    pub(crate) touched: Touched,
}

impl Completion {
    /// An end in which no sandbox had a part.
    pub(crate) fn new(effect: Seq, outcome: Outcome, spent: Amounts) -> Self {
        let (lost, kept, attached, touched) = (None, None, None, Touched::default());
        Self { effect, outcome, spent, estimated: false, lost, kept, attached, touched }
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
    /// Memory and skills as the session sees them, if it does.
    pub(crate) tree: Option<Arc<MemoryTree>>,
    /// What `pending` settles: to be settled again if it does not become durable.
    pub(crate) outcomes: Vec<Completion>,
    /// Applied to `state` but not durable yet.
    pending: Vec<Event>,
    pending_at_ms: u64,
    kept: Seq,
    /// What an account refused.
    pub(crate) refusals: BudgetRefusals,
    /// How often somebody else appended first, in a row.
    overtaken: u32,
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

    /// Writes down that an effect is not started, if an account refused this very one.
    pub(crate) fn withhold(&mut self, id: Seq, at_ms: u64) -> bool {
        let Some(shortfall) = self.refusals.shortfalls.remove(&id) else { return false };
        self.push(at_ms, Event::Withheld { effect: id, shortfall });
        true
    }

    pub(crate) fn is_batch_full(&self) -> bool {
        self.pending.len() >= limits::BATCH_EVENTS_MAX
    }
}

/// What became of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushOutcome {
    /// Everything is durable.
    Durable,
    /// Somebody else appended first: nothing of it is durable, and the state was
    /// folded anew. Decide again; what was settled is pending again.
    Overtaken,
}

impl Engine {
    /// Loads a session: the kept fold, and what came after it.
    pub(crate) async fn load(&self, session: &SessionId) -> Result<SessionRun, Error> {
        let (state, kept) = self.fold(session).await?;
        if state.seq() == Seq::default() {
            return Err(Error::NotFound(session.clone()));
        }
        let tree = self.memory_tree(session, &state).map(Arc::new);
        Ok(SessionRun {
            session: session.clone(),
            tree,
            state,
            grants: GrantTable::default(),
            running: BTreeSet::new(),
            under_way: FuturesUnordered::new(),
            waiting: WaitingOnPeople::default(),
            stopping: watch::Sender::default(),
            sandboxes: BTreeMap::new(),
            outcomes: Vec::new(),
            pending: Vec::new(),
            pending_at_ms: 0,
            kept,
            refusals: BudgetRefusals::default(),
            overtaken: 0,
        })
    }

    /// The state of a session, and the place up to which its fold is kept.
    pub(crate) async fn fold(&self, session: &SessionId) -> Result<(State, Seq), Error> {
        let journal = &self.parts.journal;
        let failed = |source| Self::journal_error(session, source);
        let cached = journal.snapshot(session, FOLD).await.map_err(failed)?;
        let kept = cached.usable().and_then(|snapshot| {
            // It is only a cache: one that can't be read is folded anew.
            serde_json::from_slice::<State>(&snapshot.state).ok()
        });
        let mut state = kept.unwrap_or_default();
        let from = state.seq();
        self.catch_up(session, &mut state, |_| ()).await?;
        Ok((state, from))
    }

    async fn catch_up(
        &self,
        session: &SessionId,
        state: &mut State,
        mut each: impl FnMut(Record) + Send,
    ) -> Result<(), Error> {
        let after = state.seq();
        let mut folded = std::mem::take(state);
        let read = outrigger_store::load_all(&*self.parts.journal, session, after, |record| {
            folded = std::mem::take(&mut folded).apply(&record);
            each(record);
        });
        let read = read.await;
        *state = folded;
        match read {
            Ok(()) => Ok(()),
            Err(StoreError::NotFound { .. }) => Err(Error::NotFound(session.clone())),
            Err(error) => Err(Self::journal_error(session, error)),
        }
    }

    /// Takes in what others appended.
    pub(crate) async fn refresh(&self, run: &mut SessionRun) -> Result<(), Error> {
        debug_assert!(run.pending.is_empty(), "a refresh never overtakes pending events");
        let session = run.session.clone();
        self.catch_up(&session, &mut run.state, |record| {
            self.feed().tell(&session, || Notice::Appended(Arc::new(record)));
        })
        .await
    }

    /// Makes pending events durable, in one transaction, fenced by their place.
    pub(crate) async fn flush(&self, run: &mut SessionRun) -> Result<FlushOutcome, Error> {
        if run.pending.is_empty() {
            return Ok(FlushOutcome::Durable);
        }
        let events = std::mem::take(&mut run.pending);
        let after = Seq(run.state.seq().0 - events.len() as u64);
        let at_ms = run.pending_at_ms;
        match self.append(&run.session, after, at_ms, events, &run.state).await {
            Ok(()) => {
                run.outcomes.clear();
                run.grants.commit();
                run.refusals.starting.clear();
                run.overtaken = 0;
                self.cache_fold(run).await;
                Ok(FlushOutcome::Durable)
            }
            // Whether it was stored is read in the journal; what happened is settled again.
            Err(Error::Journal {
                source: StoreError::Conflict { .. } | StoreError::Uncertain { .. },
                ..
            }) => {
                run.refusals.starting.clear();
                self.fall_back(run).await?;
                Ok(FlushOutcome::Overtaken)
            }
            Err(Error::Journal { source: StoreError::Budget(shortfall), .. }) => {
                run.refusals.add(shortfall);
                self.fold_anew(run).await?;
                Ok(FlushOutcome::Overtaken)
            }
            Err(error) => Err(error),
        }
    }

    /// Folds anew after somebody else appended first.
    async fn fall_back(&self, run: &mut SessionRun) -> Result<(), Error> {
        run.overtaken += 1;
        if run.overtaken > limits::CONFLICTS_MAX {
            return Err(Error::Contended(run.session.clone()));
        }
        self.fold_anew(run).await
    }

    /// Goes back to what is durable. What was decided since is void, what happened is not.
    pub(crate) async fn fold_anew(&self, run: &mut SessionRun) -> Result<(), Error> {
        run.pending.clear();
        (run.state, run.kept) = self.fold(&run.session).await?;
        run.grants.roll_back(&run.state);
        for done in std::mem::take(&mut run.outcomes) {
            self.settle(run, done);
        }
        Ok(())
    }

    /// Appends and tells. `state` is the one that the events lead to.
    pub(crate) async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: Vec<Event>,
        state: &State,
    ) -> Result<(), Error> {
        // What rests may rest for days, and this process may end.
        let cover = if state.status() == "running" { Cover::Soon } else { Cover::Now };
        let status = Some(state.status().to_owned());
        let charge = self.charge(&events, state);
        let title = title(&events);
        let summary = SessionSummary { title, status, cover, charge };
        let appended = self.parts.journal.append(session, after, at_ms, &events, summary).await;
        appended.map_err(|source| Self::journal_error(session, source))?;
        let told = if self.feed().is_heard() { events } else { Vec::new() };
        for (offset, event) in (1..).zip(told) {
            let seq = Seq(after.0 + offset);
            let record = Record { seq, at_ms, event };
            self.feed().tell(session, || Notice::Appended(Arc::new(record)));
        }
        Ok(())
    }

    /// Keeps the fold once in a while. Failing to is no failure: it is a cache.
    async fn cache_fold(&self, run: &mut SessionRun) {
        let seq = run.state.seq();
        if seq.0 - run.kept.0 < limits::SNAPSHOT_EVENTS {
            return;
        }
        if let Ok(state) = serde_json::to_vec(&run.state) {
            let snapshot = SessionSnapshot { seq, version: FOLD, state };
            drop(self.parts.journal.keep_snapshot(&run.session, snapshot).await);
        }
        run.kept = seq;
    }
}

/// What a session is about: the first thing that a person says when it is opened, or
/// what was said last in the one that it is a fork of.
fn title(events: &[Event]) -> Option<String> {
    let opened = matches!(events.first(), Some(Event::Opened(_)));
    let said = |event: &Event| match event {
        Event::Said(message) => headline(message),
        Event::Forked { cut, .. } => {
            last_said(&cut.conversation).map(|said| format!("{said} (fork)"))
        }
        _ => None,
    };
    if opened { events.iter().find_map(said) } else { None }
}

/// What a person said last, as a title.
pub(crate) fn last_said(conversation: &[Item]) -> Option<String> {
    conversation.iter().rev().find_map(|item| match item {
        Item::Message(message) => headline(message),
        Item::Reply(_) | Item::Result(_) | Item::Summary(_) | Item::Notice(_) => None,
    })
}

/// The first line of what a person or the agent above said.
fn headline(message: &Message) -> Option<String> {
    if let Author::Untrusted(_) = message.author {
        return None;
    }
    let line = message.text.lines().next().unwrap_or_default();
    Some(line.chars().take(limits::TITLE_CHARS_MAX).collect())
}
