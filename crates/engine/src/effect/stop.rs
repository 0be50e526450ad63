//! Stops what is under way, on a person's wish.
//!
//! Must never call something stopped that may still run.

use futures_util::StreamExt;
use outrigger_agent::{Outcome, Phase, Place, Seq, Work};
use outrigger_sandbox::{Error as SandboxError, ExecId};
use std::collections::BTreeMap;
use std::time::Duration;

use super::outside::execs;
use super::subagent;
use crate::driver::flush;
use crate::driver::session::{Completion, SessionRun};
use crate::driver::tasks::detached;
use crate::sandbox::attach::AttachError;
use crate::sandbox::handle::{self, SandboxHandle};
use crate::{Engine, Error, limits};

/// Kills running commands, stops waiting for the model, and settles each as
/// cancelled; what came to its end first is settled as what it came to. Each is charged
/// with what it took, or with what it can have taken until now.
///
/// # Errors
/// What stops the driver of a subagent. It is not known to be ended then, and nobody
/// would look for it again if this session went on: whoever drives next stops it again.
pub(crate) async fn stop_all(
    engine: &Engine,
    run: &mut SessionRun,
    ids: &[Seq],
) -> Result<(), Error> {
    let placed = ids.iter().filter_map(|id| Some((*id, runs_of(run, *id)?)));
    let policy = Duration::from_millis(limits::STOP_MS_MAX);
    let killing = placed.map(|(id, (place, names))| {
        let handle = handle::of(engine, &run.session, &run.state, &place.sandbox);
        async move {
            // A sandbox that does not answer must not keep a person waiting.
            let killed = match handle {
                Ok(handle) => tokio::time::timeout(policy, kill(handle, place, names)).await,
                Err(error) => Ok(Err(error.to_string())),
            };
            (id, killed.unwrap_or_else(|_| Err("it did not answer in time".to_owned())))
        }
    });
    let killing: Vec<_> = killing.collect();
    let deep = run.state.spec().map_or(1, |spec| spec.role.deep.max(1));
    let patience_below = Duration::from_millis(limits::STOP_BELOW_MS_MAX) * deep;
    let ending = ids.iter().filter(|id| run.state.is_subagent(**id)).map(|id| {
        // It goes on to its end also if nobody waits so long.
        let ending = detached(subagent::stop(engine, run, *id));
        async move { (*id, tokio::time::timeout(patience_below, ending).await) }
    });
    let ending: Vec<_> = ending.collect();
    let (killed, ended) = futures_util::future::join(
        futures_util::future::join_all(killing),
        futures_util::future::join_all(ending),
    )
    .await;
    // What is done to memory ends by itself, and is not undone.
    let on_trees: Vec<Seq> = ids.iter().copied().filter(|id| is_on_trees(run, *id)).collect();
    // A model call ends at once, and says what it came to until now.
    let asking = ids.iter().filter(|id| asks_model(run, **id)).count();
    run.stopping.send_replace(true);
    settle_what_ended(engine, run, killed.len() + on_trees.len() + asking).await;
    run.stopping.send_replace(false);
    // What is left did not end in time: nobody waits for it any more.
    run.under_way.clear();
    run.running.clear();
    let mut missed: BTreeMap<Seq, String> = BTreeMap::new();
    missed.extend(killed.into_iter().filter_map(|(id, killed)| Some((id, killed.err()?))));
    missed.extend(on_trees.iter().map(|id| (*id, "it did not end in time".to_owned())));
    let mut spent_below = BTreeMap::new();
    for (id, ended) in ended {
        match ended {
            Ok(Some(Ok(spent))) => drop(spent_below.insert(id, spent)),
            Ok(Some(Err(error))) => return Err(error),
            Ok(None) | Err(_) => drop(missed.insert(id, "it did not end in time".to_owned())),
        }
    }
    let now_ms = engine.parts.clock.now_ms();
    for id in ids {
        let below = spent_below.remove(id);
        let estimated = below.is_none();
        let spent = below.unwrap_or_else(|| run.state.spent_at_most(*id, now_ms));
        let outcome = match missed.remove(id) {
            None => Outcome::Cancelled,
            // Nobody may be told that it was stopped.
            Some(reason) => Outcome::Unknown {
                evidence: format!(
                    "Outcome unknown: a person stopped the turn, and what ran could not be told ({reason}). It may have run fully, partly or not at all, and may still run."
                ),
            },
        };
        flush::settle(
            engine,
            run,
            Completion { estimated, ..Completion::new(*id, outcome, spent) },
        );
    }
    Ok(())
}

/// Ends a program outside that a crash left behind, whose outcome nobody waits for.
pub(crate) fn end_left_behind(
    engine: &Engine,
    run: &SessionRun,
    id: Seq,
) -> impl Future<Output = ()> + Send + use<> {
    let outside = run.state.effect(id).and_then(|effect| run.state.outside(&effect.work));
    let runs = outside.and_then(|_| runs_of(run, id));
    let handle = runs.and_then(|(place, names)| {
        Some((handle::of(engine, &run.session, &run.state, &place.sandbox).ok()?, place, names))
    });
    async move {
        if let Some((handle, place, names)) = handle {
            let policy = Duration::from_millis(limits::STOP_MS_MAX);
            // One that can't be told ends by its own deadline.
            drop(tokio::time::timeout(policy, kill(handle, place, names)).await);
        }
    }
}

async fn settle_what_ended(engine: &Engine, run: &mut SessionRun, commands: usize) {
    for _ in 0..commands {
        let policy = Duration::from_millis(limits::STOP_MS_MAX);
        match tokio::time::timeout(policy, run.under_way.next()).await {
            Ok(Some(Ok(done))) => flush::settle(engine, run, done),
            // A driver's error: what it was about is settled as stopped.
            Ok(Some(Err(_))) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// Kills the commands of one effect, and none of others that share its sandbox. A sandbox
/// that is gone has no commands. A cold one is resumed to be told: a driver that others believe dead
/// may be about to begin the command there, and must be refused.
async fn kill(handle: SandboxHandle, place: Place, names: Vec<ExecId>) -> Result<(), String> {
    for _ in 0..limits::ATTACHES_MAX {
        let sandbox = match handle.attach(&place.generation).await {
            Ok(sandbox) => sandbox,
            Err(AttachError::Lost(_)) => return Ok(()),
            Err(AttachError::Unreachable(error)) => return Err(error.to_string()),
        };
        let killing = names.iter().map(|name| sandbox.kill(name));
        match futures_util::future::try_join_all(killing).await {
            // Suspended by somebody else meanwhile, or gone: reaching it says which.
            Err(SandboxError::Lost { .. }) => {}
            killed => return killed.map(drop).map_err(|error| error.to_string()),
        }
    }
    Err("it was suspended again and again".to_owned())
}

fn asks_model(run: &SessionRun, id: Seq) -> bool {
    let work = run.state.effect(id).map(|effect| &effect.work);
    run.running.contains(&id) && matches!(work, Some(Work::AskModel | Work::Compact))
}

/// Whether an effect runs without the sandbox in which its tool acts otherwise.
fn is_on_trees(run: &SessionRun, id: Seq) -> bool {
    let Some(effect) = run.state.effect(id) else { return false };
    match (&effect.work, &effect.phase) {
        (Work::CallTool(call), Phase::Started { place: None, .. }) => {
            run.state.tool(&call.tool).is_some_and(|tool| tool.sandbox.is_some())
        }
        _ => false,
    }
}

/// Where an effect runs, and by which names: a program outside is begun anew by each
/// attempt, and those before may run as well.
fn runs_of(run: &SessionRun, id: Seq) -> Option<(Place, Vec<ExecId>)> {
    let effect = run.state.effect(id)?;
    let Phase::Started { place: Some(place), attempt, .. } = &effect.phase else { return None };
    let names: Vec<ExecId> = match run.state.outside(&effect.work) {
        Some(_) => (1..=*attempt).flat_map(|attempt| execs(&place.exec, attempt)).collect(),
        None => ExecId::new(&*place.exec).into_iter().collect(),
    };
    Some((place.clone(), names))
}
