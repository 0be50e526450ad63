//! The turn that runs, and what of the time since it began is its own.

use serde::{Deserialize, Serialize};

/// The running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub(crate) since_ms: u64,
    pub(crate) steps: u64,
    /// Until when a subagent was waited for last.
    pub(crate) awaited_ms: u64,
    /// Since when nothing is left to do but what people were asked about, in milliseconds.
    #[serde(default)]
    pub(crate) idle_since_ms: Option<u64>,
    /// Something was said when the turn could not go on any more: another follows.
    pub(crate) followed: bool,
}

impl Turn {
    /// A turn that begins.
    pub(crate) fn begin(at_ms: u64) -> Self {
        let (since_ms, awaited_ms, idle_since_ms) = (at_ms, at_ms, None);
        Self { since_ms, steps: 0, awaited_ms, idle_since_ms, followed: false }
    }

    /// Waiting for people is not the turn's time, as long as nothing else goes on.
    pub(crate) fn note_waiting(&mut self, waits: bool, at_ms: u64) {
        match (self.idle_since_ms, waits) {
            (None, true) => self.idle_since_ms = Some(at_ms),
            (Some(since_ms), false) => {
                self.leave_out(at_ms.saturating_sub(since_ms), at_ms);
                self.idle_since_ms = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// What a subagent that was started at `started_ms` did not use of the time in which it
    /// was waited for, it waited for a person, or for its model's provider: that is not the
    /// turn's time.
    pub(crate) fn note_awaited(&mut self, started_ms: u64, used_ms: u64, now_ms: u64) {
        let from = self.awaited_ms.max(started_ms);
        self.leave_out(now_ms.saturating_sub(from).saturating_sub(used_ms), now_ms);
        self.awaited_ms = now_ms;
    }

    fn leave_out(&mut self, passed_ms: u64, now_ms: u64) {
        self.since_ms = self.since_ms.saturating_add(passed_ms).min(now_ms);
    }
}
