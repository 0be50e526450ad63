//! The time that sandboxes are kept.
//!
//! Owns when an idle one goes cold and an old one is deleted. An age is written on its
//! disk, so it passes whether a spawner runs or not; the next one sees to it.

use std::time::{Duration, Instant};

use outrigger_sandbox::SandboxId;

use super::Lifecycle;
use super::disk_record::now_ms;
use super::event::{DesiredState, SandboxRequest};
use super::sandboxes::Sandboxes;

/// When the next sandbox is to go cold or to be deleted.
pub(crate) fn next(lifecycle: &Lifecycle, sandboxes: &Sandboxes, now: Instant) -> Option<Instant> {
    let idle = sandboxes
        .running
        .iter()
        .filter(|(id, _)| !lifecycle.is_changing(id))
        .filter_map(|(_, running)| running.idle_at());
    let clock = now_ms();
    let old = sandboxes
        .disks
        .iter()
        .filter(|(id, _)| !lifecycle.is_changing(id))
        .filter_map(|(_, disk)| disk.old_at_ms())
        .min()
        .map(|at| now + Duration::from_millis(at.saturating_sub(clock)));
    idle.chain(old).min()
}

/// Has idle sandboxes go cold and old ones deleted.
pub(crate) fn expire(lifecycle: &mut Lifecycle, sandboxes: &mut Sandboxes, now: Instant) {
    let clock = now_ms();
    let rests = |id: &&SandboxId| !lifecycle.is_changing(id);
    let old = |id: &&SandboxId| {
        let disk = sandboxes.disks.get(*id);
        disk.and_then(|disk| disk.old_at_ms()).is_some_and(|at| at <= clock)
    };
    let idle = |id: &&SandboxId| {
        let running = sandboxes.running.get(*id);
        running.and_then(|running| running.idle_at()).is_some_and(|at| at <= now)
    };
    let gone: Vec<SandboxId> = sandboxes.disks.keys().filter(rests).filter(old).cloned().collect();
    let cold: Vec<SandboxId> = sandboxes
        .running
        .keys()
        .filter(rests)
        .filter(idle)
        .filter(|id| !gone.contains(id))
        .cloned()
        .collect();
    for id in gone {
        lifecycle.ask(sandboxes, &id, SandboxRequest::Become(DesiredState::Gone), None);
    }
    for id in cold {
        if let Some(running) = sandboxes.running.get_mut(&id) {
            // One that is busy, or can't hand over, has its time again.
            running.active = now;
        }
        lifecycle.ask(sandboxes, &id, SandboxRequest::Become(DesiredState::Cold), None);
    }
}
