//! What one look at a disk may take.
//!
//! A sandbox can make its tree as slow to look at as it likes, so a look ends when its
//! budget does.

use std::time::{Duration, Instant};

use crate::limits;
use crate::spawner::quota::amount::Amount;

/// What a look may take.
#[derive(Debug)]
pub(super) struct Budget {
    /// Names and descriptors.
    pub(super) entries: u64,
    pub(super) until: Instant,
}

impl Budget {
    /// Of one disk among all: what is small is looked at quickly.
    pub(super) fn turn() -> Self {
        let turn = Duration::from_millis(limits::DISK_USAGE_TURN_MS);
        Self { entries: limits::DISK_USAGE_TURN_ENTRIES, until: Instant::now() + turn }
    }

    /// Of a disk with this limit that has a process of its own to look at it.
    pub(super) fn alone(most: Amount) -> Self {
        let names = most.inodes.saturating_mul(limits::DISK_USAGE_NAMES_PER_INODE);
        let long = Duration::from_millis(limits::DISK_USAGE_LOOK_MS_MAX);
        let entries = names.saturating_add(limits::DISK_USAGE_TURN_ENTRIES);
        Self { entries, until: Instant::now() + long }
    }

    /// Takes one entry. `false`: there is none left, or no time.
    pub(super) fn take(&mut self) -> bool {
        let left = self.entries.checked_sub(1);
        self.entries = left.unwrap_or(0);
        left.is_some() && Instant::now() < self.until
    }
}
