//! How fast a sandbox may begin something: its turns come one after another.
//!
//! Owns that what comes faster waits, and is not refused: how many can wait is limited by how
//! many connections and streams there are.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Turns at a steady pace. Those that nobody took are kept, up to a number.
#[derive(Debug)]
pub(crate) struct Pace {
    /// From a turn to the next.
    apart: Duration,
    /// As long ago as this a turn may be that is still there to be taken.
    kept: Duration,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    pub(crate) fn new(per_second: u32, at_once: u32) -> Self {
        let apart = Duration::from_secs(1) / per_second;
        Self { apart, kept: apart * at_once.saturating_sub(1), next: Mutex::default() }
    }

    /// Waits for a turn.
    pub(crate) async fn turn(&self) {
        let now = Instant::now();
        let turn = self.take(now);
        if turn > now {
            sleep_until(turn).await;
        }
    }

    /// Takes the next turn, and says when it is.
    fn take(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let first = now.checked_sub(self.kept).unwrap_or(now);
        let turn = next.map_or(first, |next| next.max(first));
        *next = Some(turn + self.apart);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_that_nobody_took_are_kept_up_to_a_number() {
        let pace = Pace::new(10, 3);
        let begun = Instant::now() + Duration::from_secs(60);
        let waits = |at_ms: u64, times: usize| -> Vec<u128> {
            let now = begun + Duration::from_millis(at_ms);
            let wait = |_| pace.take(now).saturating_duration_since(now).as_millis();
            (0..times).map(wait).collect()
        };
        assert_eq!(waits(0, 5), [0, 0, 0, 100, 200]);
        assert_eq!(waits(300, 2), [0, 100]);
        assert_eq!(waits(60_000, 4), [0, 0, 0, 100], "not one for each that was not taken");
    }
}
