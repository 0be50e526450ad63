//! Looking again for a while instead of sleeping.
//!
//! Owns when that is worth a core: right after something came that seldom comes alone, for
//! less time than it takes to be woken on another core, only as long as nobody else wants
//! the core, and only as long as something does come in that time.

use std::time::{Duration, Instant};

use crate::limits;

/// A wait that looks again for a while before it sleeps.
#[derive(Debug, Default)]
pub struct SpinWait {
    /// Times that it is not tried, because it was of no use.
    skipped: u32,
}

impl SpinWait {
    /// Looks until something is there. Nothing: it is time to sleep.
    pub fn look<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        if self.skipped > 0 {
            self.skipped -= 1;
            return None;
        }
        let begun = Instant::now();
        let mut last = begun;
        while last - begun < Duration::from_micros(limits::SPIN_US_MAX) {
            if let Some(found) = look() {
                return Some(found);
            }
            std::thread::yield_now();
            let now = Instant::now();
            // Somebody else had the core: it is busy, and sleeping costs little.
            if now - last > Duration::from_micros(limits::SPIN_LOST_US) {
                return look();
            }
            last = now;
        }
        self.skipped = limits::SPINS_SKIPPED_MAX;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_found_and_what_never_comes_is_soon_not_waited_for() {
        let mut spin = SpinWait::default();
        let mut looks = 0;
        let found = spin.look(|| {
            looks += 1;
            (looks == 3).then_some("it")
        });
        // Who loses the core in between looks once more and sleeps.
        assert!(found == Some("it") || looks < 3, "{looks}");

        let mut looks = 0;
        for _ in 0..10 * (limits::SPINS_SKIPPED_MAX + 1) {
            let mut looked = 0;
            assert_eq!(
                spin.look(|| -> Option<()> {
                    looked += 1;
                    None
                }),
                None
            );
            looks += u32::from(looked > 0);
        }
        assert!(looks >= 10, "it is tried now and then");
    }
}
