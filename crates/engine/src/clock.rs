//! Where the time of events comes from: a value that is handed in, so that a
//! simulation can turn it.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970, UTC.
    fn now_ms(&self) -> u64;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
