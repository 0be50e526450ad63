//! When something last moved on a connection.
//!
//! Owns the three deadlines that no request has a timer for: one look every few seconds at
//! what bytes and requests wrote down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::limits;

/// What moved on a connection, in milliseconds since it began.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    still_ms_max: u64,
    moved_ms: AtomicU64,
    /// When the head began that is not whole yet, plus one. 0: none.
    head_ms: AtomicU64,
    /// When the last request ended.
    idle_ms: AtomicU64,
    requests: AtomicU64,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl Activity {
    pub(super) fn new(still_ms_max: u64) -> Self {
        Self {
            begun: Instant::now(),
            still_ms_max,
            moved_ms: AtomicU64::new(0),
            head_ms: AtomicU64::new(0),
            idle_ms: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Bytes went or came.
    pub(super) fn moved(&self) {
        self.moved_ms.store(self.now(), Relaxed);
    }

    pub(super) fn head_began(&self) {
        let _ = self.head_ms.compare_exchange(0, self.now() + 1, Relaxed, Relaxed);
    }

    pub(super) fn head_ended(&self) {
        self.head_ms.store(0, Relaxed);
    }

    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Relaxed);
        UnderWay(Arc::clone(self))
    }

    fn is_overdue(&self) -> bool {
        let now = self.now();
        let since = |then: &AtomicU64| now.saturating_sub(then.load(Relaxed));
        let head = self.head_ms.load(Relaxed) != 0 && since(&self.head_ms) > limits::HEAD_MS_MAX;
        let still = if self.requests.load(Relaxed) > 0 {
            since(&self.moved_ms) > self.still_ms_max
        } else {
            since(&self.idle_ms) > limits::IDLE_MS_MAX
        };
        head || still
    }

    /// Until nothing moved for longer than it may.
    pub(super) async fn overdue(&self) {
        while !self.is_overdue() {
            tokio::time::sleep(Duration::from_millis(limits::LOOK_MS)).await;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.idle_ms.store(self.0.now(), Relaxed);
        self.0.requests.fetch_sub(1, Relaxed);
    }
}
