//! Suspends the sandboxes of a session that waits, after snapshots of their disks, and
//! destroys those of a session that was ended.
//!
//! Off the path to the answer: whoever drives calls it when the answer was given.
//! Must never fail a turn, and never touch what runs.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outrigger_agent::{Event, Next, Park, Record, SessionId, State};
use outrigger_sandbox::{Error as SandboxError, Suspend};
use outrigger_store::Error as StoreError;

use super::handle::SandboxHandle;
use super::snapshot::{prune, remove};
use crate::driver::journal;
use crate::sandbox::handle;
use crate::{Engine, Error, Notice, SnapshotPolicy, Warning, limits};

/// Suspends the sandboxes of a session that waits, after snapshots of their disks;
/// destroys them if it was ended. A session that does not wait is left alone. Safe at
/// any moment, beside a driver as well: what runs is busy, and the journal's fence
/// refuses what is out of date. What went wrong is told to listeners too.
///
/// # Errors
/// No such session, or the journal's.
pub async fn suspend(engine: &Engine, session: &SessionId) -> Result<Vec<Warning>, Error> {
    let mut state = engine.state(session).await?;
    let mut warnings = match current_park(engine, session, &state).await? {
        Some(Park::Cancelled) => discard(engine, session, &state).await,
        Some(Park::Message | Park::Answers(_)) => Vec::new(),
        Some(Park::Unopened) | None => return Ok(Vec::new()),
    };
    let names = state.spec().map(|spec| spec.sandbox_names()).unwrap_or_default();
    let is_living = |name: &str| state.sandboxes().any(|(living, _)| living == name);
    // What was set back has one where somebody looked at it.
    let there = names.into_iter().filter(|name| is_living(name) || state.is_set_back(name));
    let there = there.filter(|_| !state.is_cancelled());
    let names: Vec<String> = there.map(str::to_owned).collect();
    for name in names {
        let Ok(handle) = handle::of(engine, session, &state, &name) else { continue };
        warnings.extend(snapshot_disk(engine, session, &mut state, &name, &handle).await?);
        if current_park(engine, session, &state).await?.is_some() {
            warnings.extend(suspend_sandbox(engine, &name, &handle).await);
        }
    }
    let below = matches!(current_park(engine, session, &state).await?, Some(Park::Answers(_)));
    if below && state.status() != State::WAITS {
        journal::record_status(engine, session, state.seq(), State::WAITS).await?;
    }
    for warning in &warnings {
        engine.feed().tell(session, || Notice::Warning(warning.clone()));
    }
    Ok(warnings)
}

/// Destroys the sandboxes that are a session's alone, with what was kept of them.
/// Repeating it is harmless.
pub async fn discard(engine: &Engine, session: &SessionId, state: &State) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let Some(spec) = state.spec() else { return warnings };
    for name in spec.sandbox_names() {
        let Ok(handle) = handle::of(engine, session, state, name) else { continue };
        if handle.shared {
            continue;
        }
        if let Some(memory) = &engine.parts.memory {
            memory.served.forget(&handle.id);
        }
        if let Some(egress) = &engine.parts.egress {
            egress.close(&handle.id).await;
        }
        if let Err(source) = handle.backend.destroy(&handle.id).await {
            warnings.push(Warning::NotRemoved { name: handle.id.to_string(), source });
        }
        let Ok(snapshots) = handle.backend.snapshots() else { continue };
        warnings.extend(prune(snapshots, &handle.id, 0).await);
    }
    warnings
}

/// What a session waits for, also if only its subagents wait, and it for them.
pub(crate) fn current_park<'a>(
    engine: &'a Engine,
    session: &'a SessionId,
    state: &'a State,
) -> BoxFuture<'a, Result<Option<Park>, Error>> {
    async move {
        let Next::Perform(ids) = state.decide(session, engine.parts.clock.now_ms()) else {
            return Ok(own_park(engine, session, state));
        };
        for id in &ids {
            let child = session.child(*id);
            let below = match state.is_subagent(*id) {
                true => engine.state(&child).await,
                false => return Ok(None),
            };
            match below {
                Ok(below) => match current_park(engine, &child, &below).await? {
                    Some(Park::Answers(_)) => {}
                    Some(Park::Unopened | Park::Message | Park::Cancelled) | None => {
                        return Ok(None);
                    }
                },
                Err(Error::NotFound(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Park::Answers(ids)))
    }
    .boxed()
}

/// What a session waits for, as its own journal says.
pub(crate) fn own_park(engine: &Engine, session: &SessionId, state: &State) -> Option<Park> {
    match state.decide(session, engine.parts.clock.now_ms()) {
        Next::Park(park) => Some(park),
        Next::Record(_)
        | Next::Judge(_)
        | Next::Start(..)
        | Next::Perform(_)
        | Next::Stop(_)
        | Next::Wait(_) => None,
    }
}

/// Takes a snapshot of a disk that may have changed since the last one. `state` moves
/// on with what is journalled of it.
async fn snapshot_disk(
    engine: &Engine,
    session: &SessionId,
    state: &mut State,
    name: &str,
    handle: &SandboxHandle,
) -> Result<Vec<Warning>, Error> {
    let (SnapshotPolicy::Turn { kept_max }, Some(changed), Ok(snapshots)) =
        (handle.retention.snapshots, state.unkept(name), handle.backend.snapshots())
    else {
        return Ok(Vec::new());
    };
    let kept = match handle.take_snapshot(snapshots, session, changed).await {
        Ok(kept) => kept,
        Err(SandboxError::Busy { .. }) => return Ok(Vec::new()),
        Err(source) => {
            return Ok(vec![Warning::NotKept { sandbox: name.to_owned(), source }]);
        }
    };
    for _ in 0..limits::CONFLICTS_MAX {
        let park = current_park(engine, session, state).await?;
        let waits = matches!(park, Some(Park::Message | Park::Answers(_)));
        if !waits || state.unkept(name) != Some(changed) {
            // Somebody drives on: what was taken is nobody's, and is collected.
            return Ok(Vec::new());
        }
        let older = state.kept(name);
        let many = (older.len() + 1).saturating_sub(kept_max.max(1));
        let dropped: Vec<String> =
            older.iter().take(many).map(|old| old.snapshot.clone()).collect();
        let event = Event::SandboxKept {
            sandbox: name.to_owned(),
            kept: kept.clone(),
            dropped: dropped.clone(),
        };
        if append_one(engine, session, state, event).await? {
            return Ok(if handle.shared {
                // The other sessions know nothing of each other's.
                prune(snapshots, &handle.id, kept_max.max(1)).await
            } else {
                remove(snapshots, dropped).await
            });
        }
    }
    Err(Error::Contended(session.clone()))
}

/// Appends an event to a session that waits. False if somebody else was first;
/// the state is folded anew then.
async fn append_one(
    engine: &Engine,
    session: &SessionId,
    state: &mut State,
    event: Event,
) -> Result<bool, Error> {
    let (at_ms, after) = (engine.parts.clock.now_ms(), state.seq());
    let record = Record { seq: after.next(), at_ms, event };
    let next = state.clone().apply(&record);
    match journal::append(engine, session, after, at_ms, vec![record.event], &next).await {
        Ok(()) => {
            *state = next;
            Ok(true)
        }
        Err(Error::Journal { source: StoreError::Conflict { .. }, .. }) => {
            *state = engine.state(session).await?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// As deeply as is wanted and offered.
async fn suspend_sandbox(engine: &Engine, name: &str, handle: &SandboxHandle) -> Option<Warning> {
    let wanted = handle.retention.suspend.filter(|_| !handle.shared)?;
    let offered = handle.backend.capabilities().suspend.iter().copied();
    let how: Suspend = offered.filter(|offered| *offered <= wanted).max()?;
    match handle.backend.suspend(&handle.id, how).await {
        Ok(()) => {
            // Nothing runs that could reach anything.
            if let (Suspend::Cold, Some(egress)) = (how, &engine.parts.egress) {
                egress.close(&handle.id).await;
            }
            None
        }
        Err(
            SandboxError::Busy { .. }
            | SandboxError::Absent { .. }
            | SandboxError::Unsupported { .. },
        ) => None,
        Err(source) => Some(Warning::NotSuspended { sandbox: name.to_owned(), source }),
    }
}
