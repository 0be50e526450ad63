//! Whether a sandbox keeps to the limit of its disk.
//!
//! Owns what a look found and the judgement over one look after another.

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use crate::limits;

/// What came of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum QuotaVerdict {
    /// It is within its limit, or just went away.
    Within,
    /// It is not.
    Above(Amount),
    /// There was no time to tell.
    Unfinished,
}

/// What is known of a disk against its limit.
#[derive(Debug, Default)]
pub(crate) struct QuotaState {
    /// What the last look found, if it was above the limit.
    over: Option<Amount>,
    /// Looks in a row that found it above the limit and growing.
    strikes: u32,
}

impl QuotaState {
    /// Notes what a look found. Says whether the disk grows above its limit.
    pub(crate) fn note(&mut self, found: QuotaVerdict) -> bool {
        let grown = match found {
            QuotaVerdict::Within => {
                *self = Self::default();
                return false;
            }
            QuotaVerdict::Above(amount) => {
                let last = self.over.replace(amount);
                last.is_none_or(|last| {
                    let (bytes, inodes) =
                        (limits::DISK_USAGE_GROWTH_BYTES, limits::DISK_USAGE_GROWTH_INODES);
                    amount.exceeds(last.plus(bytes, inodes))
                })
            }
            // Nobody has so much in so few files, or on a disk so slow, without meaning to.
            QuotaVerdict::Unfinished => true,
        };
        self.strikes = if grown { self.strikes + 1 } else { 0 };
        grown
    }

    /// Whether it went on growing after it was told.
    pub(crate) fn is_lost(&self) -> bool {
        self.strikes >= limits::DISK_USAGE_STRIKES_MAX
    }
}
