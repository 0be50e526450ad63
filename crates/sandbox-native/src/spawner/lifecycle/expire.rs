//! The time that sandboxes are kept.
//!
//! Owns when an idle one goes cold and an old one is deleted. An age is written on its
//! disk, so it passes whether a spawner runs or not; the next one sees to it.

use std::time::{Duration, Instant};

use outrigger_sandbox::SandboxId;

use super::disk_record::now_ms;
use super::{Change, DesiredState};
use crate::spawner::event_loop::Spawner;

impl Spawner {
    /// When the next sandbox is to go cold or to be deleted.
    pub(crate) fn next_expiry(&self, now: Instant) -> Option<Instant> {
        let idle = self
            .sandboxes
            .running
            .iter()
            .filter(|(id, _)| !self.changes.contains_key(*id))
            .filter_map(|(_, running)| running.idle_at());
        let clock = now_ms();
        let old = self
            .sandboxes
            .disks
            .iter()
            .filter(|(id, _)| !self.changes.contains_key(*id))
            .filter_map(|(_, disk)| disk.old_at_ms())
            .min()
            .map(|at| now + Duration::from_millis(at.saturating_sub(clock)));
        idle.chain(old).min()
    }

    /// Has idle sandboxes go cold and old ones deleted.
    pub(crate) fn expire(&mut self, now: Instant) {
        let clock = now_ms();
        let old = |id: &&SandboxId| {
            let disk = self.sandboxes.disks.get(*id);
            disk.and_then(|disk| disk.old_at_ms()).is_some_and(|at| at <= clock)
        };
        let idle = |id: &&SandboxId| {
            let running = self.sandboxes.running.get(*id);
            running.and_then(|running| running.idle_at()).is_some_and(|at| at <= now)
        };
        let rests = |id: &&SandboxId| !self.changes.contains_key(*id);
        let gone: Vec<SandboxId> =
            self.sandboxes.disks.keys().filter(rests).filter(old).cloned().collect();
        let cold: Vec<SandboxId> = self
            .sandboxes
            .running
            .keys()
            .filter(rests)
            .filter(idle)
            .filter(|id| !gone.contains(id))
            .cloned()
            .collect();
        for id in gone {
            self.begin(id, Change::new(DesiredState::Gone, None));
        }
        for id in cold {
            if let Some(running) = self.sandboxes.running.get_mut(&id) {
                // One that is busy, or can't hand over, has its time again.
                running.active = now;
            }
            self.begin(id, Change::new(DesiredState::Cold, None));
        }
    }
}
