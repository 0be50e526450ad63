//! `one_step`: decide, append, perform, append. The loop is written once, here.

use futures_util::future::FusedFuture;
use futures_util::{FutureExt, StreamExt};
use outrigger_agent::{
    Event, Failure, Next, Outcome, Park, Phase, Recover, Seq, SessionId, State, Work,
};
use outrigger_policy::{Granted, Refused, RuleSet};
use outrigger_store::{Cover, Error as StoreError, SessionSummary};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

use super::session::{AttemptKind, Completion, FlushOutcome, SandboxLoss, SessionRun};
use crate::policy_facts::with_facts;
use crate::{Engine, Error, limits};

/// The attempt that a start is of; further ones are found again.
const FIRST: u32 = 1;

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is more to do.
    Again,
    /// The session waits.
    Parked(Park),
}

impl Engine {
    /// Drives a session until it waits for something. Safe to call again at any
    /// time, after any crash, and beside another driver: the journal's fence lets
    /// only one of them start an effect.
    ///
    /// # Errors
    /// What stops a driver; see [`Error`].
    pub async fn drive(&self, session: &SessionId, poke: &Notify) -> Result<Park, Error> {
        let engine = self.waiting_for_store();
        engine.drive_on(session, poke).await
    }

    pub(crate) async fn drive_on(&self, session: &SessionId, poke: &Notify) -> Result<Park, Error> {
        let mut run = self.load(session).await?;
        self.note_left_over(&mut run).await;
        if run.state.subagents(session).next().is_some() {
            // It may have stood as waiting, as they did.
            self.record_status(session, run.state.seq(), run.state.status()).await?;
        }
        loop {
            match self.one_step(&mut run, poke).await {
                Ok(Step::Again) => {}
                Ok(Step::Parked(park)) => return Ok(park),
                Err(error) => {
                    self.leave(&mut run).await;
                    return Err(error);
                }
            }
        }
    }

    /// What has to stop an engine does not undo what happened: what is under way comes to
    /// its end, unless it waits for people, and is settled. Nothing further is decided.
    async fn leave(&self, run: &mut SessionRun) {
        let waiting = run.waiting.clone();
        loop {
            if self.fold_anew(run).await.is_err() {
                return;
            }
            match self.flush(run).await {
                Ok(FlushOutcome::Durable) => {}
                Ok(FlushOutcome::Overtaken) => continue,
                Err(_) => return,
            }
            // People may take days: whatever waits for them goes on with the next driver.
            if waiting.are_all(run.under_way.len()) {
                return;
            }
            tokio::select! {
                biased;
                done = run.under_way.next() => match done {
                    Some(Ok(done)) => self.settle(run, done),
                    // What an effect could not come to is found again by the next driver.
                    Some(Err(_)) => {}
                    None => return,
                },
                () = waiting.begun() => {}
            }
        }
    }

    /// One step: everything that can be decided without the world goes into one
    /// durable batch; then the world is touched once.
    async fn one_step(&self, run: &mut SessionRun, poke: &Notify) -> Result<Step, Error> {
        let at_ms = run.at_ms(self.parts.clock.now_ms());
        loop {
            let next = run.state.decide(&run.session, at_ms);
            match next {
                Next::Record(event) => run.push(at_ms, event),
                Next::Judge(id) => self.judge(run, id, at_ms)?,
                Next::Start(id, _) if run.withhold(id, at_ms) => {}
                Next::Start(id, started) => {
                    self.start(run, id, started, at_ms)?;
                    if run.refusals.singly {
                        self.flush(run).await?;
                        return Ok(Step::Again);
                    }
                }
                Next::Perform(ids) => {
                    run.refusals.singly = false;
                    if self.flush(run).await? == FlushOutcome::Durable {
                        self.begin_all(run, &ids, at_ms).await?;
                        if self.wait(run, poke).await? == WaitOutcome::OnPeople {
                            let seq = run.state.seq();
                            self.record_status(&run.session, seq, State::WAITS).await?;
                            return Ok(Step::Parked(Park::Answers(ids)));
                        }
                    }
                    return Ok(Step::Again);
                }
                Next::Stop(ids) => {
                    if self.flush(run).await? == FlushOutcome::Durable {
                        self.stop_all(run, &ids).await?;
                    }
                    return Ok(Step::Again);
                }
                Next::Park(park) => {
                    let parked = self.flush(run).await? == FlushOutcome::Durable;
                    return Ok(if parked { Step::Parked(park) } else { Step::Again });
                }
            }
            if run.is_batch_full() {
                self.flush(run).await?;
                return Ok(Step::Again);
            }
        }
    }

    fn judge(&self, run: &mut SessionRun, id: Seq, at_ms: u64) -> Result<(), Error> {
        let Some(effect) = run.state.effect(id) else { return Ok(()) };
        let rules = self.rules()?;
        let verdict =
            with_facts(&run.state, &effect.work, at_ms, rules.looks(), |facts| rules.judge(facts));
        run.push(at_ms, Event::Decided { effect: id, verdict, rule_set: rules.hash() });
        Ok(())
    }

    /// Decides once more, and only then lets the effect start.
    fn start(&self, run: &mut SessionRun, id: Seq, event: Event, at_ms: u64) -> Result<(), Error> {
        let rules = self.rules()?;
        match grant(&rules, &run.state, id, at_ms) {
            Ok(granted) => {
                run.grants.put(id, FIRST, granted);
                run.push(at_ms, event);
            }
            Err(Refused { verdict }) => {
                let rule_set = rules.hash();
                run.push(at_ms, Event::Decided { effect: id, verdict, rule_set });
            }
        }
        Ok(())
    }

    async fn begin_all(&self, run: &mut SessionRun, ids: &[Seq], at_ms: u64) -> Result<(), Error> {
        for id in ids {
            if run.running.contains(id) {
                continue;
            }
            let (granted, kind) = match run.grants.take(*id, &run.state) {
                Some(granted) => (granted, AttemptKind::Fresh),
                None => match self.recover(run, *id, at_ms).await? {
                    Some(granted) => (granted, AttemptKind::Interrupted),
                    None => continue,
                },
            };
            run.running.insert(*id);
            let performing = self.perform(run, *id, granted, kind);
            run.under_way.push(performing);
        }
        Ok(())
    }

    /// An effect that an earlier driver started. Nothing if it could be settled at once.
    async fn recover(
        &self,
        run: &mut SessionRun,
        id: Seq,
        at_ms: u64,
    ) -> Result<Option<Granted<Work>>, Error> {
        let Some(how) = run.state.recover(id, at_ms) else { return Ok(None) };
        // An account has no room for it a second time: it is begun anew when there is some.
        if matches!(how, Recover::Again(_)) && run.withhold(id, at_ms) {
            self.flush(run).await?;
            return Ok(None);
        }
        let granted = match (grant(&self.rules()?, &run.state, id, at_ms), how) {
            (Ok(granted), Recover::Again(started)) => {
                run.push(at_ms, started);
                Some(granted)
            }
            (Ok(granted), Recover::Reattach) => Some(granted),
            (_, Recover::Over(settled)) => {
                self.end_left_behind(run, id).await;
                run.push(at_ms, settled);
                None
            }
            (Err(_), how) => {
                let reason = "The rules no longer permit it.".to_owned();
                let below = match run.state.is_subagent(id) {
                    true => Some(self.stop_subagent(&run.session, &run.state, id).await?),
                    false => None,
                };
                let outcome = match how {
                    // It may have run before they changed; what a subagent did is in its journal.
                    Recover::Reattach if below.is_none() => Outcome::Unknown { evidence: reason },
                    Recover::Again(_) if run.state.may_have_acted(id) => {
                        Outcome::Unknown { evidence: reason }
                    }
                    Recover::Again(_) | Recover::Over(_) | Recover::Reattach => {
                        Outcome::Failed(Failure::Denied { reason })
                    }
                };
                let estimated = below.is_none();
                let spent = below.unwrap_or_else(|| run.state.spent_at_most(id, at_ms));
                run.push(at_ms, Event::Settled { effect: id, outcome, spent, estimated });
                None
            }
        };
        let durable = self.flush(run).await? == FlushOutcome::Durable;
        Ok(granted.filter(|_| durable))
    }

    /// Waits until something under way is over, somebody pokes, another process appended,
    /// or nothing is under way but subagents that wait for a person.
    async fn wait(&self, run: &mut SessionRun, poke: &Notify) -> Result<WaitOutcome, Error> {
        if run.under_way.is_empty() {
            return Ok(WaitOutcome::On);
        }
        let freezing = self.freezing(run).fuse();
        tokio::pin!(freezing);
        let waiting = run.waiting.clone();
        loop {
            if waiting.are_all(run.under_way.len()) {
                return Ok(WaitOutcome::OnPeople);
            }
            let poll = Duration::from_millis(limits::FOREIGN_POLL_MS);
            tokio::select! {
                biased;
                Some(completed) = run.under_way.next() => {
                    self.settle(run, completed?);
                    return Ok(WaitOutcome::On);
                }
                () = waiting.begun() => {}
                () = &mut freezing, if !freezing.is_terminated() => {}
                () = poke.notified() => return self.refresh(run).await.map(|()| WaitOutcome::On),
                () = tokio::time::sleep(poll) => {
                    let head = self.parts.journal.head(&run.session).await;
                    let head = head.map_err(|e| Self::journal_error(&run.session, e))?;
                    if head != run.state.seq() {
                        return self.refresh(run).await.map(|()| WaitOutcome::On);
                    }
                }
            }
        }
    }

    /// In listings the session stands as its subagents do: its own journal does not say.
    pub(crate) async fn record_status(
        &self,
        session: &SessionId,
        seq: Seq,
        status: &str,
    ) -> Result<(), Error> {
        let status = Some(status.to_owned());
        let summary = SessionSummary { status, cover: Cover::Now, ..SessionSummary::default() };
        let at_ms = self.parts.clock.now_ms();
        let told = self.parts.journal.append(session, seq, at_ms, &[], summary).await;
        match told {
            // Somebody else says how it stands.
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(Self::journal_error(session, error)),
        }
    }

    /// Takes in what became of an effect. It becomes durable together with what is
    /// decided from it, before anything further is performed; if somebody else
    /// appends first it is taken in again, because an outcome is a fact; but only once.
    pub(crate) fn settle(&self, run: &mut SessionRun, done: Completion) {
        run.running.remove(&done.effect);
        // One that another driver withheld is charged as lost, and begins anew when there is
        // room: charged a second time, with nothing reserved, it would pass every limit.
        let phase = run.state.effect(done.effect).map(|effect| &effect.phase);
        if !matches!(phase, Some(Phase::Started { .. })) {
            return;
        }
        let at_ms = self.parts.clock.now_ms();
        if let Some((name, sandbox)) = &done.attached {
            run.sandboxes.insert(name.clone(), Arc::clone(sandbox));
        }
        if let Some(SandboxLoss { sandbox, generation, loss }) = done.lost.clone()
            && run.state.sandbox(&sandbox).is_some_and(|ready| ready.generation == generation)
        {
            run.sandboxes.remove(&sandbox);
            run.push(at_ms, Event::SandboxLost { sandbox, generation, loss });
        }
        self.note(run, done.touched.clone(), at_ms);
        let (effect, outcome) = (done.effect, done.outcome.clone());
        let (spent, estimated) = (done.spent, done.estimated);
        run.push(at_ms, Event::Settled { effect, outcome, spent, estimated });
        if let Some((sandbox, kept)) = done.kept.clone() {
            run.push(at_ms, Event::SandboxKept { sandbox, kept, dropped: Vec::new() });
        }
        run.outcomes.push(done);
    }
}

fn grant(rules: &RuleSet, state: &State, id: Seq, at_ms: u64) -> Result<Granted<Work>, Refused> {
    let no_effect = Refused { verdict: outrigger_policy::Verdict::forbid(Vec::new()) };
    let effect = state.effect(id).ok_or(no_effect)?;
    with_facts(state, &effect.work, at_ms, rules.looks(), |facts| {
        rules.grant(facts, &effect.approved, effect.work.clone())
    })
}

/// What a wait came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitOutcome {
    /// There may be something to decide.
    On,
    /// Whatever is under way waits for a person.
    OnPeople,
}
