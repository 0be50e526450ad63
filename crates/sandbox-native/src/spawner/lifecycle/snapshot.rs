//! The disk of a sandbox is kept under a name.
//!
//! Owns what is done for it: a disk at rest is looked at, its tree is sealed, its layers
//! get a name.

use std::io;

use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId};

use super::disk_record::{DiskRecord, now_ms};
use super::disk_task::{DiskTask, TaskStart};
use super::event::LifecycleEvent;
use super::sandboxes::Sandboxes;
use super::suspend_record::SuspendRecord;
use crate::limits;
use crate::spawner::error::backend;
use crate::spawner::layers::snapshots::SnapshotRecord;
use crate::spawner::layers::verify::{self, Inspection, Measure};
use crate::spawner::tree::fingerprint::Fingerprint;

/// Begins to look at a disk that was at rest before, and compares it with its record if a
/// life is suspended over it.
pub(super) fn measure_resting(sandboxes: &mut Sandboxes, id: &SandboxId) -> TaskStart {
    try_measure_resting(sandboxes, id)
        .unwrap_or_else(|error| TaskStart::Done(LifecycleEvent::Measured(Err(error))))
}

fn try_measure_resting(sandboxes: &mut Sandboxes, id: &SandboxId) -> Result<TaskStart, Error> {
    let failed = |error: io::Error| backend("cannot read the disk", &error);
    sandboxes.finish_sealing(id).map_err(failed)?;
    let record = sandboxes.record(id)?;
    let (_, mut checks) = sandboxes.store.stack(&record.layers)?;
    let disk_dir = sandboxes.store.disk(id);
    let Some(cold) = SuspendRecord::read(&disk_dir).map_err(failed)? else {
        return Ok(match Measure::begin(&disk_dir.upper(), None).map_err(failed)? {
            Inspection::Done(measure) => TaskStart::Done(LifecycleEvent::Measured(Ok(measure))),
            Inspection::Task(task) => TaskStart::Running(task, DiskTask::Measure),
        });
    };
    checks.extend(cold.checks(&disk_dir));
    let measure = Measure { tree: cold.tree, kept: Some(cold.kept) };
    let begun =
        verify::begin(&checks).map_err(|error| backend("cannot verify the disk", &error))?;
    Ok(match begun {
        Inspection::Done(verdict) => {
            verify::as_left(id, &disk_dir, verdict)?;
            TaskStart::Done(LifecycleEvent::Measured(Ok(measure)))
        }
        Inspection::Task(task) => {
            TaskStart::Running(task, DiskTask::MeasureResting(checks, measure))
        }
    })
}

/// Makes a layer of a tree that looks like this. Gives how many layers the disk stands on.
pub(super) fn seal(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    tree: Fingerprint,
) -> Result<usize, Error> {
    let record = sandboxes.record(id)?.clone();
    if record.layers.len() >= limits::LAYERS_MAX {
        let max = limits::LAYERS_MAX;
        return Err(Error::Backend(format!("its disk stands on {max} layers already")));
    }
    sandboxes.seal(id, &record, tree).map_err(|error| backend("cannot seal the disk", &error))?;
    Ok(sandboxes.record(id)?.layers.len())
}

/// Begins to make one layer of all that a disk stands on.
pub(super) fn flatten(sandboxes: &mut Sandboxes, id: &SandboxId) -> TaskStart {
    match sandboxes.flatten(id) {
        Ok((task, layer)) => TaskStart::Running(task, DiskTask::Flatten(layer)),
        // A high stack serves too, up to its limit.
        Err(_) => TaskStart::Done(LifecycleEvent::Flattened),
    }
}

/// The stack is as it stays, and gets its name.
pub(super) fn name(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    name: &SnapshotId,
) -> Result<Snapshot, Error> {
    let DiskRecord { template, layers, .. } = sandboxes.record(id)?.clone();
    // Two may have begun at once; the first one's name is its own for good.
    let there = sandboxes.snapshots.all.get(name).cloned();
    let kept = there.unwrap_or_else(|| SnapshotRecord {
        sandbox: id.clone(),
        template,
        layers,
        taken_at_ms: now_ms(),
    });
    let snapshot = kept.describe(name);
    let named = sandboxes.snapshots.keep(&sandboxes.store, name, kept);
    named.map_err(|error| backend("cannot keep the snapshot", &error))?;
    Ok(snapshot)
}
