//! How a store is opened.

use crate::entries::Quotas;
use crate::limits;

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The size that the database may grow to; beyond it appends fail with
    /// [`crate::Error::NoSpace`]. Not counted: the write-ahead log and blobs.
    pub database_bytes_max: Option<u64>,
    /// How long a commit waits for another process before it gives [`crate::Error::Busy`].
    pub busy_wait_ms: u64,
    /// How much entries may take; without, as much as there is.
    pub quotas: Quotas,
}

impl Default for Settings {
    fn default() -> Self {
        let (database_bytes_max, quotas) = (None, Quotas::default());
        Self { database_bytes_max, busy_wait_ms: limits::BUSY_WAIT_MS, quotas }
    }
}
