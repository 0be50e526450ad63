//! Guests that were told to end.
//!
//! Owns that they do. In version 1 of cgroups what is stopped does not die, and a guest
//! that turned against its spawner can stop itself and all of its own, at any moment. So
//! it is told again until it ended, or until nobody is to be kept waiting any longer.

use std::time::{Duration, Instant};

use outrigger_sandbox::SandboxId;

use super::serve::Spawner;
use crate::limits;

/// The end of one guest.
#[derive(Debug)]
pub(super) struct Doom {
    /// When it is told again.
    again: Instant,
    /// When who waits is told that it does not end.
    until: Instant,
}

impl Spawner {
    /// Tells a guest to end.
    pub(super) fn kill(&mut self, id: &SandboxId) {
        let Some(living) = self.sandboxes.living.get(id) else { return };
        living.kill();
        let now = Instant::now();
        let doom = Doom {
            again: now + Duration::from_millis(limits::KILL_AGAIN_MS),
            until: now + Duration::from_millis(limits::KILL_MS_MAX),
        };
        self.sandboxes.doomed.insert(id.clone(), doom);
    }

    /// When the next one is to be told again.
    pub(super) fn next_doom(&self) -> Option<Instant> {
        self.sandboxes.doomed.values().map(|doom| doom.again).min()
    }

    /// Tells those again that did not end.
    pub(super) fn doom(&mut self, now: Instant) {
        let mut undying = Vec::new();
        for (id, doom) in &mut self.sandboxes.doomed {
            if doom.again > now {
                continue;
            }
            doom.again = now + Duration::from_millis(limits::KILL_AGAIN_MS);
            if let Some(living) = self.sandboxes.living.get(id) {
                living.kill_again();
            }
            if doom.until <= now {
                undying.push(id.clone());
            }
        }
        for id in undying {
            self.sandboxes.doomed.remove(&id);
            self.does_not_end(&id);
        }
    }
}
