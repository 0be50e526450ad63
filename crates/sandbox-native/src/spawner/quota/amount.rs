//! An amount of disk, in bytes and in inodes.

use serde::{Deserialize, Serialize};

/// An amount of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl Amount {
    /// Whether either is more than that of another.
    pub(crate) fn exceeds(self, most: Self) -> bool {
        self.bytes > most.bytes || self.inodes > most.inodes
    }

    /// With so much more.
    pub(crate) fn plus(self, bytes: u64, inodes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), inodes: self.inodes.saturating_add(inodes) }
    }
}
