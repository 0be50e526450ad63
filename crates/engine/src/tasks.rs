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
