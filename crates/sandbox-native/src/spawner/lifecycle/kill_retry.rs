//! Guests that were told to end.
//!
//! Owns that they do. In version 1 of cgroups what is stopped does not die, and a guest
//! that turned against its spawner can stop itself and all of its own, at any moment. So
//! it is told again until it ended, or until nobody is to be kept waiting any longer.

use std::time::{Duration, Instant};

use outrigger_sandbox::SandboxId;

use crate::limits;
use crate::spawner::event_loop::Spawner;

/// The end of one guest.
#[derive(Debug)]
pub(crate) struct KillRetry {
    /// When it is told again.
    again: Instant,
    /// When who waits is told that it does not end.
    until: Instant,
}

impl Spawner {
    /// Tells a guest to end.
    pub(crate) fn kill(&mut self, id: &SandboxId) {
        let Some(running) = self.sandboxes.running.get(id) else { return };
        running.kill();
        let now = Instant::now();
        let retry = KillRetry {
            again: now + Duration::from_millis(limits::KILL_AGAIN_MS),
            until: now + Duration::from_millis(limits::KILL_MS_MAX),
        };
        self.sandboxes.kill_retries.insert(id.clone(), retry);
    }

    /// When the next one is to be told again.
    pub(crate) fn next_kill_retry(&self) -> Option<Instant> {
        self.sandboxes.kill_retries.values().map(|retry| retry.again).min()
    }

    /// Tells those again that did not end.
    pub(crate) fn retry_kills(&mut self, now: Instant) {
        let mut unkillable = Vec::new();
        for (id, retry) in &mut self.sandboxes.kill_retries {
            if retry.again > now {
                continue;
            }
            retry.again = now + Duration::from_millis(limits::KILL_AGAIN_MS);
            if let Some(running) = self.sandboxes.running.get(id) {
                running.kill_again();
            }
            if retry.until <= now {
                unkillable.push(id.clone());
            }
        }
        for id in unkillable {
            self.sandboxes.kill_retries.remove(&id);
            self.does_not_end(&id);
        }
    }
}
