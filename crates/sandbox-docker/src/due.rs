//! When something is due for a sandbox.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_sandbox::SandboxId;
use tokio::sync::Notify;

use crate::clock::now_ms;

/// When something is due for a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// When it is to be destroyed, in milliseconds since 1970.
    pub(crate) old_at_ms: Option<u64>,
    /// How long it may be idle, in milliseconds.
    pub(crate) idle_ms_max: Option<u64>,
    /// When it was seen last, in milliseconds since 1970.
    pub(crate) since_ms: u64,
}

/// What is due for which sandbox, those alone for which something is.
#[derive(Debug, Default)]
pub(crate) struct DueTable {
    all: Mutex<HashMap<SandboxId, Due>>,
    /// That something new is due, or that the backend is gone.
    news: Arc<Notify>,
}

impl DueTable {
    fn all(&self) -> MutexGuard<'_, HashMap<SandboxId, Due>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is due, as of now.
    pub(crate) fn snapshot(&self) -> Vec<(SandboxId, Due)> {
        self.all().iter().map(|(id, due)| (id.clone(), *due)).collect()
    }

    /// Notes what is due for a sandbox, if anything is, and says whether it is.
    pub(crate) fn insert(&self, id: &SandboxId, due: Due) -> bool {
        if due.is_any() {
            self.all().insert(id.clone(), due);
        }
        due.is_any()
    }

    /// Notes that somebody else may be using a sandbox.
    pub(crate) fn seen_now(&self, id: &SandboxId) {
        if let Some(due) = self.all().get_mut(id) {
            due.since_ms = now_ms();
        }
    }

    /// Forgets a sandbox, which is no more.
    pub(crate) fn remove(&self, id: &SandboxId) {
        self.all().remove(id);
    }

    /// Has the keeper look at all of it again, or end with its backend.
    pub(crate) fn wake_keeper(&self) {
        self.news.notify_one();
    }

    /// By what the keeper is woken.
    pub(crate) fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.news)
    }
}

impl Due {
    /// Whether anything is.
    pub(crate) fn is_any(&self) -> bool {
        self.old_at_ms.is_some() || self.idle_ms_max.is_some()
    }

    /// Whether it is to be destroyed now.
    pub(crate) fn is_old(&self, now_ms: u64) -> bool {
        self.old_at_ms.is_some_and(|at| at <= now_ms)
    }

    /// When to look again at one that was last used then.
    pub(crate) fn next_ms(&self, used_ms: u64) -> u64 {
        let seen_ms = used_ms.max(self.since_ms);
        let idle = self.idle_ms_max.map(|max| seen_ms.saturating_add(max));
        [self.old_at_ms, idle].into_iter().flatten().min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_first_is_looked_at_first() {
        let due = Due { old_at_ms: Some(5_000), idle_ms_max: Some(300), since_ms: 1_000 };
        assert_eq!(due.next_ms(2_000), 2_300);
        assert_eq!(due.next_ms(0), 1_300);
        assert_eq!(due.next_ms(9_000), 5_000);
        assert!(!due.is_old(4_999) && due.is_old(5_000));
        let never = Due { old_at_ms: None, idle_ms_max: None, since_ms: 0 };
        assert_eq!(never.next_ms(0), u64::MAX);
        assert!(!never.is_any() && !never.is_old(u64::MAX));
    }
}
