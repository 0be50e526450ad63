//! A sandbox ends for good.
//!
//! Owns the way out of its disk, and of what nothing stands on any more.

use std::io;

use outrigger_sandbox::{Error, SandboxId};

use super::disk_task::{DiskTask, TaskStart, undeleted};
use super::event::LifecycleEvent;
use super::sandboxes::Sandboxes;
use crate::spawner::error::backend;
use crate::spawner::event_loop::task::Task;

/// Takes a disk away that nothing ran on.
pub(super) fn discard(sandboxes: &mut Sandboxes, id: &SandboxId) {
    if let Ok(Some(_)) = sandboxes.discard(id) {
        sandboxes.clean();
    }
}

/// Takes a disk away and starts its deletion.
pub(super) fn delete(sandboxes: &mut Sandboxes, id: &SandboxId) -> TaskStart {
    try_delete(sandboxes, id)
        .unwrap_or_else(|error| TaskStart::Done(LifecycleEvent::Deleted(Err(error))))
}

fn try_delete(sandboxes: &mut Sandboxes, id: &SandboxId) -> Result<TaskStart, Error> {
    let failed = |error: io::Error| backend("cannot delete the disk", &error);
    let stood = sandboxes
        .disks
        .get(id)
        .is_some_and(|disk| disk.record.as_ref().is_none_or(|record| !record.layers.is_empty()));
    let Some(name) = sandboxes.discard(id).map_err(failed)? else {
        return Ok(TaskStart::Done(LifecycleEvent::Deleted(Ok(()))));
    };
    if stood {
        sandboxes.collect();
    }
    let store = &sandboxes.store;
    if store.is_small(&name) {
        let deleted = store.delete_from_trash(&name).map_err(undeleted);
        return Ok(TaskStart::Done(LifecycleEvent::Deleted(deleted)));
    }
    let task = Task::start(|| store.delete_from_trash(&name).map(|()| Vec::new()));
    Ok(TaskStart::Running(task.map_err(failed)?, DiskTask::Delete))
}
