//! Lifetimes: what is idle is suspended, and what is old is destroyed.
//!
//! The daemon does nothing of this kind by itself, so it is seen to by every process that
//! has the backend open: it knows the ages of all sandboxes of its owner, and when those
//! that it used were used last.

use std::sync::{Arc, Weak};
use std::time::Duration;

use outrigger_sandbox::{CreateSpec, Error, SandboxId};
use tokio::sync::Notify;

use crate::clock::now_ms;
use crate::context::DockerContext;
use crate::due::{Due, DueTable};
use crate::engine::Engine;
use crate::limits;
use crate::live;
use crate::names::{self, Part};
use crate::store::Disk;

/// Sees to it for as long as the backend is there.
#[expect(
    clippy::disallowed_methods,
    reason = "a backend stands below the engine and its registry of tasks; this one ends with its backend"
)]
pub(crate) fn start(context: &Arc<DockerContext>) {
    let (context, news) = (Arc::downgrade(context), context.dues.news());
    tokio::spawn(keep(context, news));
}

async fn keep(context: Weak<DockerContext>, news: Arc<Notify>) {
    loop {
        let wait_ms = match context.upgrade() {
            Some(context) => tend(&context).await,
            None => return,
        };
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            () = news.notified() => {}
        }
    }
}

/// Learns the lifetimes of what is there.
pub(crate) async fn learn_dues(engine: &Engine, dues: &DueTable) -> Result<(), Error> {
    let kind = (names::KIND, "disk");
    let part = |part: Part| (names::PART, part.as_str());
    let records = engine.volumes(&[kind, part(Part::Record)]).await?;
    let containers = engine.containers(&[kind, part(Part::Container)]).await?;
    let containers = containers.into_iter().filter_map(|container| container.labels);
    for labels in records.into_iter().map(|record| record.labels).chain(containers) {
        let id = labels.get(names::ID).cloned().map(SandboxId::new);
        let Some(Ok(id)) = id else { continue };
        let disk: Option<Disk> = live::said(&labels, names::RECORD);
        let spec: Option<CreateSpec> = live::said(&labels, names::SPEC);
        let due = Due {
            old_at_ms: disk.and_then(|disk| disk.old_at_ms()),
            idle_ms_max: spec.and_then(|spec| spec.lifetime.idle_ms_max),
            since_ms: now_ms(),
        };
        dues.insert(&id, due);
    }
    Ok(())
}

/// Suspends one that is idle.
async fn suspend_as_deep_as_it_goes(context: &DockerContext, id: &SandboxId) -> Result<(), Error> {
    match context.capabilities.suspend.iter().max() {
        Some(how) => context.suspend(id, *how).await,
        None => Ok(()),
    }
}

/// Does what is due; says how many milliseconds there are until the next.
async fn tend(context: &DockerContext) -> u64 {
    let mut next_ms = u64::MAX;
    for (id, due) in context.dues.snapshot() {
        if due.is_old(now_ms()) {
            // One that can't be ended now is tried again soon.
            let ended = context.end(&id).await.is_ok();
            next_ms = next_ms.min(if ended { u64::MAX } else { now_ms() });
            continue;
        }
        let Some(max) = due.idle_ms_max else {
            next_ms = next_ms.min(due.next_ms(u64::MAX));
            continue;
        };
        let gate = context.used.gate(&id);
        let idle = match &gate {
            Some(gate) => gate.is_idle_for(max),
            None => now_ms().saturating_sub(due.since_ms) >= max,
        };
        if idle && suspend_as_deep_as_it_goes(context, &id).await.is_err() {
            // A command runs, or it is gone, or the daemon does not answer: later.
            gate.iter().for_each(|gate| gate.touch());
        }
        // One that rests, or is asked for something, is looked at again by then.
        let used_ms = match &gate {
            Some(gate) if gate.is_quiet() => gate.used_ms(),
            Some(_) | None => now_ms(),
        };
        if idle && gate.is_none() {
            context.dues.seen_now(&id);
        }
        next_ms = next_ms.min(due.next_ms(used_ms));
    }
    let wait_ms = next_ms.saturating_sub(now_ms());
    wait_ms.clamp(limits::KEEPER_PAUSE_MS, limits::KEEPER_PAUSE_MS_MAX)
}
