//! The process that deletes what is in the trash and nobody waits for.
//!
//! Owns that there is one at most. What it can't delete stays for the next spawner.

use super::Store;
use crate::spawner::event_loop::poll::{Key, Poller, Source};
use crate::spawner::event_loop::task::Task;

/// Who empties the trash.
#[derive(Debug, Default)]
pub(crate) struct TrashCleaner {
    running: Option<(Task, Key)>,
    /// Something was put there since it was started.
    again: bool,
}

impl TrashCleaner {
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Has the trash emptied in the background.
    pub(crate) fn clean(&mut self, store: &Store, poller: &mut Poller) {
        if self.running.is_some() {
            self.again = true;
            return;
        }
        let Ok(task) = Task::start(|| store.empty_trash().map(|()| Vec::new())) else { return };
        if let Ok(key) = poller.add(task.ended(), Source::Cleaner) {
            self.running = Some((task, key));
        }
    }

    /// The process ended.
    pub(crate) fn ended(&mut self, store: &Store, poller: &mut Poller) {
        let Some((task, key)) = self.running.take() else { return };
        poller.remove(key, task.ended());
        let _ = task.finish();
        if std::mem::take(&mut self.again) {
            self.clean(store, poller);
        }
    }
}
