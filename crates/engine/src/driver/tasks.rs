//! The one registry of tasks: what is spawned has a kind, and the kind says what a
//! cancel and a panic do.

use std::future::Future;
use std::sync::Mutex;
use tokio::task::JoinSet;

/// The kinds of task in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// Drives one session. Aborted at shutdown, which loses nothing: what it did is
    /// journalled and what it began is found again. A panic ends this session's
    /// driver only and is reported to who waits for it.
    Driver,
}

/// Tasks of this process. Dropping it aborts them all.
#[derive(Debug, Default)]
pub struct Tasks {
    set: Mutex<JoinSet<()>>,
}

impl Tasks {
    /// Starts a task.
    pub fn spawn(&self, kind: TaskKind, future: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.set.lock().expect("no task panics while it holds the registry");
        match kind {
            TaskKind::Driver => {
                set.spawn(future);
            }
        }
        // Ended tasks leave the registry here, so that it holds only living ones.
        while set.try_join_next().is_some() {}
    }
}

/// Does something in a task of its own, which ends when nobody waits for this any more.
/// Nothing if it panicked.
pub(crate) async fn scoped<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let mut task = JoinSet::new();
    task.spawn(future);
    task.join_next().await?.ok()
}

/// Begins something that goes on to its end, whether anybody waits for it or not.
#[expect(clippy::disallowed_methods, reason = "it outlives whoever holds a registry of tasks")]
pub(crate) fn detached<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Option<T>> + Send {
    let task = tokio::spawn(future);
    async move { task.await.ok() }
}
