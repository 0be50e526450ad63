//! Waiting for the next question of a program that asks one after the other.
//!
//! Owns when it is worth a core not to sleep: right after a question about a served file,
//! for less time than it takes to be woken on another core, and only as long as the next
//! one does come in that time.

use std::io;
use std::time::{Duration, Instant};

use crate::{limits, sys};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    /// Something was asked in this turn.
    pub(crate) wanted: bool,
    /// Turns left in which it is not tried, because it was of no use.
    skipped: u32,
}

impl Spin {
    /// Waits as poll(2) does, perhaps without sleeping at first.
    pub(crate) fn poll(&mut self, fds: &mut [libc::pollfd], timeout: i32) -> io::Result<()> {
        if !std::mem::take(&mut self.wanted) || timeout == 0 {
            return sys::poll(fds, timeout);
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return sys::poll(fds, timeout);
        }
        let until = Instant::now() + Duration::from_micros(limits::SPIN_US_MAX);
        while Instant::now() < until {
            sys::poll(fds, 0)?;
            if fds.iter().any(|fd| fd.revents != 0) {
                return Ok(());
            }
        }
        self.skipped = limits::SPINS_SKIPPED_MAX;
        sys::poll(fds, timeout)
    }
}
