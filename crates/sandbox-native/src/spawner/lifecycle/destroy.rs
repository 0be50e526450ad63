//! A sandbox ends for good.
//!
//! Owns its way out: its guest, its disk, and what nothing stands on any more.

use std::io;

use outrigger_sandbox::{Error, SandboxId};

use super::{Stage, Step, StepResult, done};
use crate::protocol::Answer;
use crate::spawner::backend;
use crate::spawner::event_loop::Spawner;
use crate::spawner::event_loop::task::Task;

impl Spawner {
    pub(super) fn end(&mut self, id: &SandboxId) -> Step {
        if self.is_running(id) {
            self.kill(id);
            return Ok(StepResult::Wait(Stage::Ending));
        }
        self.delete(id)
    }

    /// Takes a disk away and starts its deletion.
    pub(super) fn delete(&mut self, id: &SandboxId) -> Step {
        let failed = |error: io::Error| backend("cannot delete the disk", &error);
        let stood = self.sandboxes.disks.get(id).is_some_and(|disk| {
            disk.record.as_ref().is_none_or(|record| !record.layers.is_empty())
        });
        let Some(name) = self.sandboxes.discard(id).map_err(failed)? else {
            return done(Answer::Done);
        };
        if stood {
            self.collect();
        }
        let store = self.sandboxes.store.clone();
        if store.is_small(&name) {
            store.delete_from_trash(&name).map_err(left)?;
            return done(Answer::Done);
        }
        let task = Task::start(|| store.delete_from_trash(&name).map(|()| Vec::new()));
        let task = task.map_err(failed)?;
        let key = self.await_task(id, &task)?;
        Ok(StepResult::Wait(Stage::Deleting(task, key)))
    }
}

/// The sandbox is gone, and what it leaves is out of sight.
pub(super) fn left(error: impl std::fmt::Display) -> Error {
    let what = "the sandbox is gone, but its disk could not be deleted whole; what is left of \
                it is in `trash` of the state directory";
    Error::Backend(format!("{what}: {error}"))
}
