//! Freezes what has nothing to do while the model thinks.

use outrigger_agent::{Seq, State, Work};
use outrigger_sandbox::{Error, Suspend};
use std::time::Duration;
use tokio::time::Instant;

use super::handle::SandboxHandle;
use crate::driver::session::SessionRun;
use crate::sandbox::handle;
use crate::{Engine, Notice, Warning};

/// Freezes the session's sandboxes, each after its time, if nothing is under way
/// but the model. Ends when there is nothing left to freeze. Dropping it in the
/// middle is fine: a frozen sandbox thaws at its next command.
pub(crate) fn freezing(
    engine: &Engine,
    run: &SessionRun,
) -> impl Future<Output = ()> + Send + use<> {
    let mut idle: Vec<(u64, String, SandboxHandle)> = Vec::new();
    if thinks(&run.state, run) {
        for (name, _) in run.state.sandboxes() {
            let Ok(handle) = handle::of(engine, &run.session, &run.state, name) else {
                continue;
            };
            let offered = &handle.backend.capabilities().suspend;
            // Others may be at work in one that is shared.
            if let Some(after_ms) = handle.retention.freeze_after_ms
                && !handle.shared
                && offered.contains(&Suspend::Frozen)
            {
                idle.push((after_ms, name.to_owned(), handle));
            }
        }
    }
    idle.sort_by_key(|(after_ms, ..)| *after_ms);
    let (feed, session, began) = (engine.feed().clone(), run.session.clone(), Instant::now());
    async move {
        for (after_ms, sandbox, handle) in idle {
            tokio::time::sleep_until(began + Duration::from_millis(after_ms)).await;
            match handle.backend.suspend(&handle.id, Suspend::Frozen).await {
                // Busy with what a command left behind, or gone: the next call sees to it.
                Ok(()) | Err(Error::Busy { .. } | Error::Absent { .. }) => {}
                Err(source) => {
                    let warning = Warning::NotSuspended { sandbox, source };
                    feed.tell(&session, || Notice::Warning(warning));
                }
            }
        }
    }
}

/// Whether nothing is under way but the model and subagents, which have sandboxes of
/// their own.
fn thinks(state: &State, run: &SessionRun) -> bool {
    let elsewhere = |id: &Seq| match state.effect(*id).map(|effect| &effect.work) {
        Some(Work::AskModel | Work::Compact) => true,
        Some(Work::CallTool(_)) => state.is_subagent(*id),
        Some(Work::Provision { .. }) | None => false,
    };
    run.running.iter().all(elsewhere)
}
