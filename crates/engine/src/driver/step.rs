//! `one_step`: decide, append, perform, append. The loop is written once, here.

use futures_util::future::{BoxFuture, FusedFuture};
use futures_util::{FutureExt, StreamExt};
use outrigger_agent::{Event, Failure, Next, Outcome, Park, Recover, Seq, SessionId, State, Work};
use outrigger_policy::{Granted, Refused, RuleSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

use super::flush::{self, FlushOutcome};
use super::journal;
use super::session::{AttemptKind, SessionRun};
use crate::effect::{self, stop, subagent};
use crate::memory;
use crate::policy_facts::with_facts;
use crate::sandbox::freeze;
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

/// Drives a session until it waits for something. Safe to call again at any
/// time, after any crash, and beside another driver: the journal's fence lets
/// only one of them start an effect.
///
/// # Errors
/// What stops a driver; see [`Error`].
pub async fn drive(engine: &Engine, session: &SessionId, poke: &Notify) -> Result<Park, Error> {
    let engine = engine.waiting_for_store();
    drive_on(&engine, session, poke).await
}

async fn drive_on(engine: &Engine, session: &SessionId, poke: &Notify) -> Result<Park, Error> {
    let mut run = load(engine, session).await?;
    memory::note_left_over(engine, &mut run).await;
    if run.state.subagents(session).next().is_some() {
        // It may have stood as waiting, as they did.
        journal::record_status(engine, session, run.state.seq(), run.state.status()).await?;
    }
    loop {
        match one_step(engine, &mut run, poke).await {
            Ok(Step::Again) => {}
            Ok(Step::Parked(park)) => return Ok(park),
            Err(error) => {
                leave(engine, &mut run).await;
                return Err(error);
            }
        }
    }
}

fn drive_below<'a>(
    engine: &'a Engine,
    session: &'a SessionId,
) -> BoxFuture<'a, Result<Park, Error>> {
    async move { drive_on(engine, session, &Notify::new()).await }.boxed()
}

/// Loads a session: the kept fold, and what came after it.
async fn load(engine: &Engine, session: &SessionId) -> Result<SessionRun, Error> {
    let (state, kept) = journal::fold(engine, session).await?;
    if state.seq() == Seq::default() {
        return Err(Error::NotFound(session.clone()));
    }
    let tree = memory::tree_of(engine, session, &state).map(Arc::new);
    Ok(SessionRun::new(session.clone(), state, kept, tree, drive_below))
}

/// What has to stop an engine does not undo what happened: what is under way comes to
/// its end, unless it waits for people, and is settled. Nothing further is decided.
async fn leave(engine: &Engine, run: &mut SessionRun) {
    let waiting = run.waiting.clone();
    loop {
        if flush::fold_anew(engine, run).await.is_err() {
            return;
        }
        match flush::flush(engine, run).await {
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
                Some(Ok(done)) => flush::settle(engine, run, done),
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
async fn one_step(engine: &Engine, run: &mut SessionRun, poke: &Notify) -> Result<Step, Error> {
    let at_ms = run.at_ms(engine.parts.clock.now_ms());
    loop {
        let next = run.state.decide(&run.session, at_ms);
        match next {
            Next::Record(event) => run.push(at_ms, event),
            Next::Judge(id) => judge(engine, run, id, at_ms)?,
            Next::Start(id, started) => {
                if let Some(started) = run.afford(id, started, at_ms) {
                    start(engine, run, id, started, at_ms)?;
                    if run.refusals.singly {
                        flush::flush(engine, run).await?;
                        return Ok(Step::Again);
                    }
                }
            }
            Next::Perform(ids) => {
                run.refusals.singly = false;
                if flush::flush(engine, run).await? == FlushOutcome::Durable {
                    begin_all(engine, run, &ids, at_ms).await?;
                    if wait(engine, run, poke, None).await? == WaitOutcome::OnPeople {
                        let seq = run.state.seq();
                        journal::record_status(engine, &run.session, seq, State::WAITS).await?;
                        return Ok(Step::Parked(Park::Answers(ids)));
                    }
                }
                return Ok(Step::Again);
            }
            Next::Stop(ids) => {
                if flush::flush(engine, run).await? == FlushOutcome::Durable {
                    stop::stop_all(engine, run, &ids).await?;
                }
                return Ok(Step::Again);
            }
            Next::Wait(until_ms) => {
                if flush::flush(engine, run).await? == FlushOutcome::Durable {
                    wait(engine, run, poke, Some(until_ms)).await?;
                }
                return Ok(Step::Again);
            }
            Next::Park(park) => {
                let parked = flush::flush(engine, run).await? == FlushOutcome::Durable;
                return Ok(if parked { Step::Parked(park) } else { Step::Again });
            }
        }
        if run.is_batch_full() {
            flush::flush(engine, run).await?;
            return Ok(Step::Again);
        }
    }
}

fn judge(engine: &Engine, run: &mut SessionRun, id: Seq, at_ms: u64) -> Result<(), Error> {
    let parsed = run.parsed(id);
    let Some(effect) = run.state.effect(id) else { return Ok(()) };
    let rules = engine.rules()?;
    let (work, parsed, looks) = (&effect.work, parsed.as_deref(), rules.looks());
    let verdict = with_facts(&run.state, work, parsed, at_ms, looks, |facts| rules.judge(facts));
    run.push(at_ms, Event::Decided { effect: id, verdict, rule_set: rules.hash() });
    Ok(())
}

/// Decides once more, and only then lets the effect start.
fn start(
    engine: &Engine,
    run: &mut SessionRun,
    id: Seq,
    event: Event,
    at_ms: u64,
) -> Result<(), Error> {
    let rules = engine.rules()?;
    match grant(&rules, run, id, at_ms) {
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

async fn begin_all(
    engine: &Engine,
    run: &mut SessionRun,
    ids: &[Seq],
    at_ms: u64,
) -> Result<(), Error> {
    for id in ids {
        if run.running.contains(id) {
            continue;
        }
        let (granted, kind) = match run.grants.take(*id, &run.state) {
            Some(granted) => (granted, AttemptKind::Fresh),
            None => match recover(engine, run, *id, at_ms).await? {
                Some(granted) => (granted, AttemptKind::Interrupted),
                None => continue,
            },
        };
        run.running.insert(*id);
        let performing = effect::perform(engine, run, *id, granted, kind);
        run.under_way.push(performing);
    }
    Ok(())
}

/// An effect that an earlier driver started. Nothing if it could be settled at once.
async fn recover(
    engine: &Engine,
    run: &mut SessionRun,
    id: Seq,
    at_ms: u64,
) -> Result<Option<Granted<Work>>, Error> {
    let Some(mut how) = Recover::of(&run.state, id, at_ms) else { return Ok(None) };
    if let Recover::Again(started) = how {
        let Some(started) = run.afford(id, started, at_ms) else {
            // An account has no room for it a second time: it is begun anew when there is some.
            flush::flush(engine, run).await?;
            return Ok(None);
        };
        how = Recover::Again(started);
    }
    let granted = match (grant(&engine.rules()?, run, id, at_ms), how) {
        (Ok(granted), Recover::Again(started)) => {
            run.push(at_ms, started);
            Some(granted)
        }
        (Ok(granted), Recover::Reattach) => Some(granted),
        (_, Recover::Over(settled)) => {
            stop::end_left_behind(engine, run, id).await;
            run.push(at_ms, settled);
            None
        }
        (Err(_), how) => {
            let reason = "The rules no longer permit it.".to_owned();
            let below = match run.state.is_subagent(id) {
                true => Some(subagent::stop(engine, run, id).await?),
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
    let durable = flush::flush(engine, run).await? == FlushOutcome::Durable;
    Ok(granted.filter(|_| durable))
}

/// Waits until something under way is over, somebody pokes, another process appended,
/// nothing is under way but subagents that wait for a person, or that time has come.
async fn wait(
    engine: &Engine,
    run: &mut SessionRun,
    poke: &Notify,
    until_ms: Option<u64>,
) -> Result<WaitOutcome, Error> {
    if run.under_way.is_empty() && until_ms.is_none() {
        return Ok(WaitOutcome::On);
    }
    let freezing = freeze::freezing(engine, run).fuse();
    tokio::pin!(freezing);
    let waiting = run.waiting.clone();
    loop {
        if waiting.are_all(run.under_way.len()) {
            return Ok(WaitOutcome::OnPeople);
        }
        // By the clock that it was set by, which goes on while a machine sleeps.
        if until_ms.is_some_and(|until_ms| until_ms <= engine.parts.clock.now_ms()) {
            return Ok(WaitOutcome::On);
        }
        // What is under way goes on meanwhile: it may have what the journal needs to answer.
        let (journal, session) = (&engine.parts.journal, run.session.clone());
        let head = async {
            tokio::time::sleep(Duration::from_millis(limits::FOREIGN_POLL_MS)).await;
            journal.head(&session).await
        };
        tokio::select! {
            biased;
            Some(completed) = run.under_way.next() => {
                flush::settle(engine, run, completed?);
                return Ok(WaitOutcome::On);
            }
            () = waiting.begun() => {}
            () = &mut freezing, if !freezing.is_terminated() => {}
            () = poke.notified() => return flush::refresh(engine, run).await.map(|()| WaitOutcome::On),
            head = head => {
                let head = head.map_err(|e| Error::journal(&run.session, e))?;
                if head != run.state.seq() {
                    return flush::refresh(engine, run).await.map(|()| WaitOutcome::On);
                }
            }
        }
    }
}

fn grant(
    rules: &RuleSet,
    run: &mut SessionRun,
    id: Seq,
    at_ms: u64,
) -> Result<Granted<Work>, Refused> {
    let parsed = run.parsed(id);
    let no_effect = Refused { verdict: outrigger_policy::Verdict::forbid(Vec::new()) };
    let effect = run.state.effect(id).ok_or(no_effect)?;
    with_facts(&run.state, &effect.work, parsed.as_deref(), at_ms, rules.looks(), |facts| {
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
