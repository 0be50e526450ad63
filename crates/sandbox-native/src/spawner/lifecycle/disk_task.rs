//! What a change has done by a process of its own, where it may take long.
//!
//! Owns what such a process is for, and so what its result means.

use outrigger_sandbox::{Error, SandboxId};

use super::event::LifecycleEvent;
use super::sandboxes::Sandboxes;
use crate::spawner::error::backend;
use crate::spawner::event_loop::poll::Key;
use crate::spawner::event_loop::task::Task;
use crate::spawner::layers::layer::Layer;
use crate::spawner::layers::verify::{self, Check, Measure};

/// What a process does.
#[derive(Debug)]
pub(super) enum DiskTask {
    /// It compares what a guest is to be made over with how it was left.
    Verify(Vec<Check>),
    /// It looks at a disk that a guest just left.
    Measure,
    /// It compares a disk at rest with the record of it, which says this.
    MeasureResting(Vec<Check>, Measure),
    /// It makes this layer of those that a disk stands on.
    Flatten(Layer),
    /// It deletes a disk.
    Delete,
}

/// What came of starting one: it is done already, or a process does it.
#[derive(Debug)]
pub(super) enum TaskStart {
    Done(LifecycleEvent),
    Running(Task, DiskTask),
}

/// A process that is waited for.
#[derive(Debug)]
pub(super) struct PendingDiskTask {
    pub(super) task: Task,
    pub(super) key: Key,
    pub(super) kind: DiskTask,
}

impl PendingDiskTask {
    /// It ended.
    pub(super) fn finish(self, sandboxes: &mut Sandboxes, id: &SandboxId) -> LifecycleEvent {
        let Self { task, key, kind } = self;
        sandboxes.poller.remove(key, task.ended());
        let result = task.finish();
        let result = result.map_err(|error| backend("a task of the spawner failed", &error));
        kind.event(sandboxes, id, result)
    }
}

impl DiskTask {
    /// What a result means, or that there is none.
    pub(super) fn event(
        self,
        sandboxes: &mut Sandboxes,
        id: &SandboxId,
        result: Result<Vec<u8>, Error>,
    ) -> LifecycleEvent {
        let as_left = |sandboxes: &Sandboxes, checks: &[Check], result: &[u8]| {
            let disk_dir = sandboxes.store.disk(id);
            verify::as_left(id, &disk_dir, verify::told(checks, result))
        };
        match self {
            Self::Verify(checks) => LifecycleEvent::Verified(
                result.and_then(|result| as_left(sandboxes, &checks, &result)),
            ),
            Self::Measure => LifecycleEvent::Measured(result.and_then(|result| {
                Measure::told(&result).map_err(|error| backend("cannot look at the disk", &error))
            })),
            Self::MeasureResting(checks, measure) => {
                let checked = result.and_then(|result| as_left(sandboxes, &checks, &result));
                LifecycleEvent::Measured(checked.map(|()| measure))
            }
            Self::Flatten(layer) => {
                // The many layers serve as well as the one that could not be made.
                let _ = sandboxes.flattened(id, &layer, result);
                LifecycleEvent::Flattened
            }
            Self::Delete => LifecycleEvent::Deleted(result.map(drop).map_err(undeleted)),
        }
    }
}

/// The sandbox is gone, and what it leaves is out of sight.
pub(super) fn undeleted(error: impl std::fmt::Display) -> Error {
    let what = "the sandbox is gone, but its disk could not be deleted whole; what is left of \
                it is in `trash` of the state directory";
    Error::Backend(format!("{what}: {error}"))
}
