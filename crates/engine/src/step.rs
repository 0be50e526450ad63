//! `one_step`: decide, append, perform, append. The loop is written once, here.

use futures_util::future::FusedFuture;
use futures_util::{FutureExt, StreamExt};
use outrigger_agent::{
    Event, Failure, Next, Outcome, Park, Phase, Recover, Seq, SessionId, State, Work,
};
use outrigger_policy::{Granted, Refused, RuleSet};
use outrigger_store::{Cover, Error as StoreError, Summary};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

use crate::facts::with_facts;
use crate::live::{Completed, Flushed, Live, Lost};
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
        let mut live = self.load(session).await?;
        self.note_untold(&mut live).await;
        if live.state.subagents(session).next().is_some() {
            // It may have stood as waiting, as they did.
            self.record_status(session, live.state.seq(), live.state.status()).await?;
        }
        loop {
            match self.one_step(&mut live, poke).await {
                Ok(Step::Again) => {}
                Ok(Step::Parked(park)) => return Ok(park),
                Err(error) => {
                    self.leave(&mut live).await;
                    return Err(error);
                }
            }
        }
    }

    /// What has to stop an engine does not undo what happened: what is under way comes to
    /// its end, unless it waits for people, and is settled. Nothing further is decided.
    async fn leave(&self, live: &mut Live) {
        let lulls = live.lulls.clone();
        loop {
            if self.fold_anew(live).await.is_err() {
                return;
            }
            match self.flush(live).await {
                Ok(Flushed::Durable) => {}
                Ok(Flushed::Overtaken) => continue,
                Err(_) => return,
            }
            // People may take days: whatever waits for them goes on with the next driver.
            if lulls.cover(live.under_way.len()) {
                return;
            }
            tokio::select! {
                biased;
                done = live.under_way.next() => match done {
                    Some(Ok(done)) => self.settle(live, done),
                    // What an effect could not come to is found again by the next driver.
                    Some(Err(_)) => {}
                    None => return,
                },
                () = lulls.begun() => {}
            }
        }
    }

    /// One step: everything that can be decided without the world goes into one
    /// durable batch; then the world is touched once.
    pub(crate) async fn one_step(&self, live: &mut Live, poke: &Notify) -> Result<Step, Error> {
        let at_ms = live.at_ms(self.parts.clock.now_ms());
        loop {
            let next = live.state.decide(&live.session, at_ms);
            match next {
                Next::Record(event) => live.push(at_ms, event),
                Next::Judge(id) => self.judge(live, id, at_ms)?,
                Next::Start(id, _) if live.withhold(id, at_ms) => {}
                Next::Start(id, started) => {
                    self.start(live, id, started, at_ms)?;
                    if live.refused.singly {
                        self.flush(live).await?;
                        return Ok(Step::Again);
                    }
                }
                Next::Perform(ids) => {
                    live.refused.singly = false;
                    if self.flush(live).await? == Flushed::Durable {
                        self.perform_all(live, &ids, at_ms).await?;
                        if self.wait(live, poke).await? == Waited::OnPeople {
                            let seq = live.state.seq();
                            self.record_status(&live.session, seq, State::WAITS).await?;
                            return Ok(Step::Parked(Park::Answers(ids)));
                        }
                    }
                    return Ok(Step::Again);
                }
                Next::Stop(ids) => {
                    if self.flush(live).await? == Flushed::Durable {
                        self.stop_all(live, &ids).await?;
                    }
                    return Ok(Step::Again);
                }
                Next::Park(park) => {
                    let parked = self.flush(live).await? == Flushed::Durable;
                    return Ok(if parked { Step::Parked(park) } else { Step::Again });
                }
            }
            if live.is_batch_full() {
                self.flush(live).await?;
                return Ok(Step::Again);
            }
        }
    }

    fn judge(&self, live: &mut Live, id: Seq, at_ms: u64) -> Result<(), Error> {
        let Some(effect) = live.state.effect(id) else { return Ok(()) };
        let rules = self.rules()?;
        let verdict =
            with_facts(&live.state, &effect.work, at_ms, rules.looks(), |facts| rules.judge(facts));
        live.push(at_ms, Event::Decided { effect: id, verdict, rule_set: rules.hash() });
        Ok(())
    }

    /// Decides once more, and only then lets the effect start.
    fn start(&self, live: &mut Live, id: Seq, started: Event, at_ms: u64) -> Result<(), Error> {
        let rules = self.rules()?;
        match grant(&rules, &live.state, id, at_ms) {
            Ok(granted) => {
                live.held.put(id, FIRST, granted);
                live.push(at_ms, started);
            }
            Err(Refused { verdict }) => {
                let rule_set = rules.hash();
                live.push(at_ms, Event::Decided { effect: id, verdict, rule_set });
            }
        }
        Ok(())
    }

    async fn perform_all(&self, live: &mut Live, ids: &[Seq], at_ms: u64) -> Result<(), Error> {
        for id in ids {
            if live.running.contains(id) {
                continue;
            }
            let (granted, found) = match live.held.take(*id, &live.state) {
                Some(granted) => (granted, Found::Fresh),
                None => match self.recover(live, *id, at_ms).await? {
                    Some(granted) => (granted, Found::Interrupted),
                    None => continue,
                },
            };
            live.running.insert(*id);
            let performing = self.perform(live, *id, granted, found);
            live.under_way.push(performing);
        }
        Ok(())
    }

    /// An effect that an earlier driver started. Nothing if it could be settled at once.
    async fn recover(
        &self,
        live: &mut Live,
        id: Seq,
        at_ms: u64,
    ) -> Result<Option<Granted<Work>>, Error> {
        let Some(how) = live.state.recover(id, at_ms) else { return Ok(None) };
        // An account has no room for it a second time: it is begun anew when there is some.
        if matches!(how, Recover::Again(_)) && live.withhold(id, at_ms) {
            self.flush(live).await?;
            return Ok(None);
        }
        let granted = match (grant(&self.rules()?, &live.state, id, at_ms), how) {
            (Ok(granted), Recover::Again(started)) => {
                live.push(at_ms, started);
                Some(granted)
            }
            (Ok(granted), Recover::Reattach) => Some(granted),
            (_, Recover::Over(settled)) => {
                self.end_left_behind(live, id).await;
                live.push(at_ms, settled);
                None
            }
            (Err(_), how) => {
                let reason = "The rules no longer permit it.".to_owned();
                let below = match live.state.is_subagent(id) {
                    true => Some(self.stop_subagent(&live.session, &live.state, id).await?),
                    false => None,
                };
                let outcome = match how {
                    // It may have run before they changed; what a subagent did is in its journal.
                    Recover::Reattach if below.is_none() => Outcome::Unknown { evidence: reason },
                    Recover::Again(_) if live.state.may_have_acted(id) => {
                        Outcome::Unknown { evidence: reason }
                    }
                    Recover::Again(_) | Recover::Over(_) | Recover::Reattach => {
                        Outcome::Failed(Failure::Denied { reason })
                    }
                };
                let estimated = below.is_none();
                let spent = below.unwrap_or_else(|| live.state.spent_at_most(id, at_ms));
                live.push(at_ms, Event::Settled { effect: id, outcome, spent, estimated });
                None
            }
        };
        let durable = self.flush(live).await? == Flushed::Durable;
        Ok(granted.filter(|_| durable))
    }

    /// Waits until something under way is over, somebody pokes, another process appended,
    /// or nothing is under way but subagents that wait for a person.
    async fn wait(&self, live: &mut Live, poke: &Notify) -> Result<Waited, Error> {
        if live.under_way.is_empty() {
            return Ok(Waited::On);
        }
        let freezing = self.freezing(live).fuse();
        tokio::pin!(freezing);
        let lulls = live.lulls.clone();
        loop {
            if lulls.cover(live.under_way.len()) {
                return Ok(Waited::OnPeople);
            }
            let poll = Duration::from_millis(limits::FOREIGN_POLL_MS);
            tokio::select! {
                biased;
                Some(completed) = live.under_way.next() => {
                    self.settle(live, completed?);
                    return Ok(Waited::On);
                }
                () = lulls.begun() => {}
                () = &mut freezing, if !freezing.is_terminated() => {}
                () = poke.notified() => return self.refresh(live).await.map(|()| Waited::On),
                () = tokio::time::sleep(poll) => {
                    let head = self.parts.journal.head(&live.session).await;
                    let head = head.map_err(|e| Self::journal_error(&live.session, e))?;
                    if head != live.state.seq() {
                        return self.refresh(live).await.map(|()| Waited::On);
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
        let summary = Summary { status, cover: Cover::Now, ..Summary::default() };
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
    pub(crate) fn settle(&self, live: &mut Live, done: Completed) {
        live.running.remove(&done.effect);
        // One that another driver withheld is charged as lost, and begins anew when there is
        // room: charged a second time, with nothing reserved, it would pass every limit.
        let phase = live.state.effect(done.effect).map(|effect| &effect.phase);
        if !matches!(phase, Some(Phase::Started { .. })) {
            return;
        }
        let at_ms = self.parts.clock.now_ms();
        if let Some((name, sandbox)) = &done.attached {
            live.sandboxes.insert(name.clone(), Arc::clone(sandbox));
        }
        if let Some(Lost { sandbox, generation, loss }) = done.lost.clone()
            && live.state.sandbox(&sandbox).is_some_and(|ready| ready.generation == generation)
        {
            live.sandboxes.remove(&sandbox);
            live.push(at_ms, Event::SandboxLost { sandbox, generation, loss });
        }
        self.note(live, done.touched.clone(), at_ms);
        let (effect, outcome) = (done.effect, done.outcome.clone());
        let (spent, estimated) = (done.spent, done.estimated);
        live.push(at_ms, Event::Settled { effect, outcome, spent, estimated });
        if let Some((sandbox, kept)) = done.kept.clone() {
            live.push(at_ms, Event::SandboxKept { sandbox, kept, dropped: Vec::new() });
        }
        live.outcomes.push(done);
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
enum Waited {
    /// There may be something to decide.
    On,
    /// Whatever is under way waits for a person.
    OnPeople,
}

/// Whether an effect was started by this driver or by one that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Just now.
    Fresh,
    /// By one that is gone: it may have happened.
    Interrupted,
}
