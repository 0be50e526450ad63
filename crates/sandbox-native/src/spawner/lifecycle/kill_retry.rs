//! Guests that were told to end.
//!
//! Owns that they do. In version 1 of cgroups what is stopped does not die, and a guest
//! that turned against its spawner can stop itself and all of its own, at any moment. So
//! it is told again until it ended, or until nobody is to be kept waiting any longer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use outrigger_sandbox::SandboxId;

use crate::limits;
use crate::spawner::create::running::RunningGuest;

/// The end of one guest.
#[derive(Debug)]
struct KillRetry {
    /// When it is told again.
    again: Instant,
    /// When who waits is told that it does not end.
    until: Instant,
}

/// The guests that were told to end and did not yet.
#[derive(Debug, Default)]
pub(crate) struct KillRetries(BTreeMap<SandboxId, KillRetry>);

impl KillRetries {
    /// Tells a guest to end.
    pub(crate) fn kill(&mut self, id: &SandboxId, running: &RunningGuest) {
        running.kill();
        let now = Instant::now();
        let retry = KillRetry {
            again: now + Duration::from_millis(limits::KILL_AGAIN_MS),
            until: now + Duration::from_millis(limits::KILL_MS_MAX),
        };
        self.0.insert(id.clone(), retry);
    }

    /// It ended.
    pub(crate) fn forget(&mut self, id: &SandboxId) {
        self.0.remove(id);
    }

    /// When the next one is to be told again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.values().map(|retry| retry.again).min()
    }

    /// Tells those again that did not end. Gives those that nobody waits for any longer.
    pub(crate) fn retry(
        &mut self,
        running: &BTreeMap<SandboxId, RunningGuest>,
        now: Instant,
    ) -> Vec<SandboxId> {
        let mut unkillable = Vec::new();
        for (id, retry) in &mut self.0 {
            if retry.again > now {
                continue;
            }
            retry.again = now + Duration::from_millis(limits::KILL_AGAIN_MS);
            if let Some(running) = running.get(id) {
                running.kill_again();
            }
            if retry.until <= now {
                unkillable.push(id.clone());
            }
        }
        for id in &unkillable {
            self.0.remove(id);
        }
        unkillable
    }
}
