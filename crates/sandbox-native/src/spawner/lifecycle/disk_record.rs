//! What a disk is: what it began as, what it stands on, how long it is kept.
//!
//! Owns the record of it. Says nothing of the life in it, which is known to the
//! spawner while it goes on and to [`super::suspend_record`] while it is suspended.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_sandbox::{DiskOrigin, Lifetime};
use serde::{Deserialize, Serialize};

use crate::spawner::layers::layer::Layer;

/// What is recorded of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskRecord {
    /// Where it began.
    pub(crate) origin: DiskOrigin,
    /// The template at the bottom of it.
    pub(crate) template: String,
    /// What its own tree stands on, newest first, those of its template included.
    pub(crate) layers: Vec<Layer>,
    /// Its tree is about to become this layer, or has just become it: see [`crate::spawner::layers::seal`].
    pub(crate) sealing: Option<Layer>,
    /// When it was made, in milliseconds since 1970.
    pub(crate) made_at_ms: u64,
    /// How long it is kept.
    pub(crate) lifetime: Lifetime,
}

/// Milliseconds since 1970, as the clock said when this process first asked, and as many
/// as passed since: nothing gets old because somebody sets the clock.
pub(crate) fn now_ms() -> u64 {
    static FIRST: OnceLock<(u64, u64)> = OnceLock::new();
    let passed_ms = || {
        // Goes on while the machine sleeps; see clock_gettime(2).
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (seconds, nanoseconds) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
        seconds * 1_000 + nanoseconds / 1_000_000
    };
    let (clock, passed) = FIRST.get_or_init(|| {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (u64::try_from(clock.as_millis()).unwrap_or(u64::MAX), passed_ms())
    });
    clock.saturating_add(passed_ms().saturating_sub(*passed))
}
