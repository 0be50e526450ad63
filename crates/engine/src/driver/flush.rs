//! What a driver holds becomes durable, or is decided again.
//!
//! Owns that nothing is performed of which the intent is not in the journal, and that what
//! happened is settled although somebody else appended first.

use outrigger_agent::{Event, FOLD, Failure, Outcome, Phase, Seq};
use outrigger_store::{Error as StoreError, SessionSnapshot};
use std::sync::Arc;

use super::journal;
use super::session::{Completion, SandboxLoss, SessionRun};
use crate::memory::note;
use crate::{Engine, Error, Notice, limits};

/// What became of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushOutcome {
    /// Everything is durable.
    Durable,
    /// Somebody else appended first: nothing of it is durable, and the state was
    /// folded anew. Decide again; what was settled is pending again.
    Overtaken,
}

/// Takes in what others appended.
pub(crate) async fn refresh(engine: &Engine, run: &mut SessionRun) -> Result<(), Error> {
    debug_assert!(run.pending.is_empty(), "a refresh never overtakes pending events");
    let session = run.session.clone();
    journal::catch_up(engine, &session, &mut run.state, |record| {
        engine.feed().tell(&session, || Notice::Appended(Arc::new(record)));
    })
    .await
}

/// Makes pending events durable, in one transaction, fenced by their place.
pub(crate) async fn flush(engine: &Engine, run: &mut SessionRun) -> Result<FlushOutcome, Error> {
    if run.pending.is_empty() {
        return Ok(FlushOutcome::Durable);
    }
    let events = std::mem::take(&mut run.pending);
    let after = Seq(run.state.seq().0 - events.len() as u64);
    let at_ms = run.pending_at_ms;
    match journal::append(engine, &run.session, after, at_ms, events, &run.state).await {
        Ok(()) => {
            run.outcomes.clear();
            run.grants.commit();
            run.refusals.forget_starts();
            run.overtaken = 0;
            cache_fold(engine, run).await;
            Ok(FlushOutcome::Durable)
        }
        // Whether it was stored is read in the journal; what happened is settled again.
        Err(Error::Journal {
            source: StoreError::Conflict { .. } | StoreError::Uncertain { .. },
            ..
        }) => {
            run.refusals.forget_starts();
            fall_back(engine, run).await?;
            Ok(FlushOutcome::Overtaken)
        }
        Err(Error::Journal { source: StoreError::Budget(refusal), .. }) => {
            run.refusals.add(*refusal);
            fold_anew(engine, run).await?;
            Ok(FlushOutcome::Overtaken)
        }
        Err(error) => Err(error),
    }
}

/// Folds anew after somebody else appended first.
async fn fall_back(engine: &Engine, run: &mut SessionRun) -> Result<(), Error> {
    run.overtaken += 1;
    if run.overtaken > limits::CONFLICTS_MAX {
        return Err(Error::Contended(run.session.clone()));
    }
    fold_anew(engine, run).await
}

/// Goes back to what is durable. What was decided since is void, what happened is not.
pub(crate) async fn fold_anew(engine: &Engine, run: &mut SessionRun) -> Result<(), Error> {
    run.pending.clear();
    (run.state, run.kept) = journal::fold(engine, &run.session).await?;
    run.grants.roll_back(&run.state);
    for done in std::mem::take(&mut run.outcomes) {
        settle(engine, run, done);
    }
    Ok(())
}

/// Keeps the fold once in a while. Failing to is no failure: it is a cache.
async fn cache_fold(engine: &Engine, run: &mut SessionRun) {
    let seq = run.state.seq();
    if seq.0 - run.kept.0 < limits::SNAPSHOT_EVENTS {
        return;
    }
    if let Ok(state) = serde_json::to_vec(&run.state) {
        let snapshot = SessionSnapshot { seq, version: FOLD, state };
        drop(engine.parts.journal.keep_snapshot(&run.session, snapshot).await);
    }
    run.kept = seq;
}

/// Takes in what became of an effect. It becomes durable together with what is
/// decided from it, before anything further is performed; if somebody else
/// appends first it is taken in again, because an outcome is a fact; but only once.
pub(crate) fn settle(engine: &Engine, run: &mut SessionRun, done: Completion) {
    run.running.remove(&done.effect);
    // One that another driver withheld is charged as lost, and begins anew when there is
    // room: charged a second time, with nothing reserved, it would pass every limit.
    let phase = run.state.effect(done.effect).map(|effect| &effect.phase);
    if !matches!(phase, Some(Phase::Started { .. })) {
        return;
    }
    let at_ms = engine.parts.clock.now_ms();
    if let Some((name, sandbox)) = &done.attached {
        run.sandboxes.insert(name.clone(), Arc::clone(sandbox));
    }
    if let Some(SandboxLoss { sandbox, generation, loss }) = done.lost.clone()
        && run.state.sandbox(&sandbox).is_some_and(|ready| ready.generation == generation)
    {
        run.sandboxes.remove(&sandbox);
        run.push(at_ms, Event::SandboxLost { sandbox, generation, loss });
    }
    note(run, done.touched.clone(), at_ms);
    if let Some(report) = done.reached.clone() {
        for part in report.parts(limits::EGRESS_FLOWS_PER_EVENT) {
            run.push(at_ms, Event::Reached(Arc::new(part)));
        }
    }
    let (effect, mut outcome) = (done.effect, done.outcome.clone());
    if let Outcome::Failed(Failure::Model { retry_at_ms, .. }) = &mut outcome {
        *retry_at_ms = done.retry_after_ms.and_then(|wait| run.state.retry_at_ms(wait, at_ms));
    }
    let (spent, estimated) = (done.spent, done.estimated);
    run.push(at_ms, Event::Settled { effect, outcome, spent, estimated });
    if let Some((sandbox, kept)) = done.kept.clone() {
        run.push(at_ms, Event::SandboxKept { sandbox, kept, dropped: Vec::new() });
    }
    run.outcomes.push(done);
}
