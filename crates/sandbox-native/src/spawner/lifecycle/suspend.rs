//! A guest hands over and ends, and what it left is looked at.
//!
//! Owns the way from a life to the record of it. Nothing is written down of a life
//! before its last process is gone.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use outrigger_sandbox::{Error, Generation, SandboxId};

use super::disk_task::{DiskTask, TaskStart};
use super::event::{Handover, LifecycleEvent};
use super::sandboxes::Sandboxes;
use super::suspend_record::SuspendRecord;
use crate::spawner::error::backend;
use crate::spawner::layers::verify::{Inspection, Measure};
use crate::spawner::tree::fingerprint::Fingerprint;

/// Asks a guest to write down what it knows and to do nothing more.
pub(super) fn hand_over(sandboxes: &Sandboxes, id: &SandboxId) -> Result<(), Error> {
    let failed = |error: io::Error| backend("cannot ask the guest to hand over", &error);
    let kept = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(sandboxes.store.disk(id).kept())
        .map_err(failed)?;
    let ended = || io::Error::other("it ended");
    let running = sandboxes.running.get(id).ok_or_else(ended).map_err(failed)?;
    running.ask_to_hand_over(&kept).map_err(failed)
}

/// Removes what a guest wrote that goes on instead.
pub(super) fn forget_handed_over(sandboxes: &Sandboxes, id: &SandboxId) {
    let _ = fs::remove_file(sandboxes.store.disk(id).kept());
}

/// Begins to look at the disk that a guest just left, and at what it handed over.
pub(super) fn measure(sandboxes: &Sandboxes, id: &SandboxId, handover: Handover) -> TaskStart {
    let disk_dir = sandboxes.store.disk(id);
    let kept = match handover {
        Handover::Written => Some(disk_dir.kept()),
        Handover::Absent => None,
    };
    match Measure::begin(&disk_dir.upper(), kept.as_deref()) {
        Ok(Inspection::Done(measure)) => TaskStart::Done(LifecycleEvent::Measured(Ok(measure))),
        Ok(Inspection::Task(task)) => TaskStart::Running(task, DiskTask::Measure),
        Err(error) => {
            let error = backend("cannot look at the disk", &error);
            TaskStart::Done(LifecycleEvent::Measured(Err(error)))
        }
    }
}

/// Writes down how a life left its disk, and what it handed over.
pub(super) fn record(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    generation: Generation,
    tree: Fingerprint,
    kept: [u8; 32],
) -> Result<(), Error> {
    let boot = sandboxes.boot.clone();
    let cold = SuspendRecord { generation, boot, tree, kept };
    cold.write(&sandboxes.store.disk(id))
        .map_err(|error| backend("cannot keep the life", &error))?;
    sandboxes.touch(id);
    if let Some(disk) = sandboxes.disks.get_mut(id) {
        disk.cold = Some(cold.generation);
    }
    Ok(())
}
