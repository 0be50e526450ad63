//! Which effects under way wait for a person, so that nothing has to be held for them.

use outrigger_agent::Seq;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The effects of one session that are subagents and wait for people.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitingOnPeople(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    waiting: Mutex<BTreeSet<Seq>>,
    begun: Notify,
}

const LOCK: &str = "nobody panics while they hold the set";

impl WaitingOnPeople {
    /// The effect waits until what this gives is dropped.
    pub(crate) fn begin(&self, effect: Seq) -> WaitGuard {
        self.0.waiting.lock().expect(LOCK).insert(effect);
        self.0.begun.notify_one();
        WaitGuard { of: self.clone(), effect }
    }

    /// Whether so many wait as are under way, and there are any.
    pub(crate) fn are_all(&self, under_way: usize) -> bool {
        under_way > 0 && under_way == self.0.waiting.lock().expect(LOCK).len()
    }

    /// Ends when another effect begins to wait.
    pub(crate) async fn begun(&self) {
        self.0.begun.notified().await;
    }
}

/// An effect waits.
#[derive(Debug)]
pub(crate) struct WaitGuard {
    of: WaitingOnPeople,
    effect: Seq,
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.of.0.waiting.lock().expect(LOCK).remove(&self.effect);
    }
}
