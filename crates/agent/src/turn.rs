//! The turn that runs, and what of the time since it began is its own.

use serde::{Deserialize, Serialize};

use crate::limits;

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
    /// Until when its provider is not asked, in milliseconds, if it takes no more requests.
    #[serde(default)]
    pub(crate) throttled_until_ms: Option<u64>,
    /// How often in a row it took none.
    #[serde(default)]
    pub(crate) throttles: u32,
}

impl Turn {
    /// A turn that begins.
    pub(crate) fn begin(at_ms: u64) -> Self {
        Self {
            since_ms: at_ms,
            steps: 0,
            awaited_ms: at_ms,
            idle_since_ms: None,
            followed: false,
            throttled_until_ms: None,
            throttles: 0,
        }
    }

    /// When a provider is asked again that takes no more requests and wants to be left alone
    /// for `asked_ms`. `None` if the turn has no time left by then, or waited often enough.
    pub(crate) fn retry_at_ms(&self, asked_ms: u64, wall_ms_max: u64, now_ms: u64) -> Option<u64> {
        let doubled = limits::THROTTLE_MS_MIN.saturating_mul(1 << self.throttles.min(31));
        let wait_ms = asked_ms.max(doubled.min(limits::THROTTLE_MS_MAX));
        let at_ms = now_ms.saturating_add(wait_ms);
        let in_time = at_ms.saturating_sub(self.since_ms) <= wall_ms_max;
        (in_time && self.throttles < limits::THROTTLES_MAX).then_some(at_ms)
    }

    /// Takes in that the provider is not asked until then.
    pub(crate) fn throttle(&mut self, until_ms: u64) {
        self.throttled_until_ms = Some(until_ms);
        self.throttles = self.throttles.saturating_add(1);
    }

    /// Takes in that the provider replied.
    pub(crate) fn unthrottle(&mut self) {
        (self.throttled_until_ms, self.throttles) = (None, 0);
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
