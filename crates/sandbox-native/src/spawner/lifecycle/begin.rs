//! A sandbox begins, or goes on.
//!
//! Owns what a guest is made over: nothing before its disk, and all that it stands on,
//! were compared with how they were left.

use std::io;

use outrigger_sandbox::{CreateOutcome, Error, Generation, SandboxId};

use super::disk_record::{DiskRecord, now_ms};
use super::disk_task::{DiskTask, TaskStart};
use super::event::LifecycleEvent;
use super::sandboxes::Sandboxes;
use super::suspend_record::SuspendRecord;
use crate::spawner::create::request::CreateRequest;
use crate::spawner::create::spec::{DiskAge, PreviousGuest, SandboxSpec};
use crate::spawner::error::backend;
use crate::spawner::layers::origin::LayerStack;
use crate::spawner::layers::verify::{self, Check, Inspection};
use crate::spawner::names;
use crate::spawner::record::Durability;

/// What is planned, and what is to be verified before.
type Plan = (Box<SandboxSpec>, Vec<Check>);

/// Finds out what the guest of a sandbox that does not live is to be made of. Notes its
/// disk if it is a new one.
pub(super) fn plan(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    request: CreateRequest,
) -> Result<Plan, Error> {
    sandboxes.has_room()?;
    let disk_dir = sandboxes.store.disk(id);
    // Somebody may have deleted it by hand.
    if !sandboxes.disks.contains_key(id) || !disk_dir.path().exists() {
        sandboxes.disks.remove(id);
        return plan_new(sandboxes, id, request);
    }
    let failed = |error: io::Error| backend("cannot read the disk", &error);
    sandboxes.finish_sealing(id).map_err(failed)?;
    let record = sandboxes.record(id)?.clone();
    let (lowers, mut checks) = sandboxes.store.stack(&record.layers)?;
    let cold = SuspendRecord::read(&disk_dir).map_err(failed)?;
    // After a reboot there is nothing to resume: the disk is begun over as it is.
    let (outcome, generation) = match cold.filter(|cold| cold.is_of(&sandboxes.boot)) {
        Some(cold) => {
            checks.extend(cold.checks(&disk_dir));
            (CreateOutcome::Resumed, cold.generation)
        }
        None if !disk_dir.upper().exists() => (CreateOutcome::Made, fresh()?),
        None => (CreateOutcome::Restarted, fresh()?),
    };
    let template = record.template.clone();
    if record.lifetime != request.spec.lifetime {
        let record = DiskRecord { lifetime: request.spec.lifetime, ..record };
        sandboxes.note(id, record, Durability::Process).map_err(failed)?;
    }
    let disk_age = DiskAge::Old;
    let spec = SandboxSpec { request, outcome, generation, template, lowers, disk_age };
    Ok((Box::new(spec), checks))
}

/// From its origin.
fn plan_new(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    request: CreateRequest,
) -> Result<Plan, Error> {
    let origin = &request.spec.origin;
    let LayerStack { template, layers } =
        LayerStack::of(origin, &sandboxes.store, &sandboxes.snapshots)?;
    let (lowers, checks) = sandboxes.store.stack(&layers)?;
    let record = DiskRecord {
        origin: origin.clone(),
        template: template.clone(),
        layers,
        sealing: None,
        made_at_ms: now_ms(),
        lifetime: request.spec.lifetime,
    };
    // From here on nothing that it stands on is collected.
    sandboxes
        .note(id, record, Durability::Process)
        .map_err(|error| backend("cannot make the disk", &error))?;
    let (outcome, generation, disk_age) = (CreateOutcome::Made, fresh()?, DiskAge::New);
    let spec = SandboxSpec { request, outcome, generation, template, lowers, disk_age };
    Ok((Box::new(spec), checks))
}

/// A name for a life that never was.
fn fresh() -> Result<Generation, Error> {
    let name =
        names::random_name().and_then(|name| Generation::new(name).map_err(io::Error::other));
    name.map_err(|error| backend("no randomness", &error))
}

/// What the guest of a life that was ended for something else is to be made of.
pub(super) fn resume(
    sandboxes: &Sandboxes,
    id: &SandboxId,
    previous: PreviousGuest,
) -> Result<SandboxSpec, Error> {
    let PreviousGuest { generation, request } = previous;
    let DiskRecord { template, layers, .. } = sandboxes.record(id)?;
    let (lowers, _) = sandboxes.store.stack(layers)?;
    let (template, outcome, disk_age) = (template.clone(), CreateOutcome::Resumed, DiskAge::Old);
    Ok(SandboxSpec { request, outcome, generation, template, lowers, disk_age })
}

/// Begins to compare what a guest is to be made over with how it was left.
pub(super) fn verify(sandboxes: &Sandboxes, id: &SandboxId, checks: Vec<Check>) -> TaskStart {
    let verdict = match verify::begin(&checks) {
        Ok(Inspection::Done(verdict)) => verdict,
        Ok(Inspection::Task(task)) => return TaskStart::Running(task, DiskTask::Verify(checks)),
        Err(error) => {
            let error = backend("cannot verify the disk", &error);
            return TaskStart::Done(LifecycleEvent::Verified(Err(error)));
        }
    };
    let disk_dir = sandboxes.store.disk(id);
    TaskStart::Done(LifecycleEvent::Verified(verify::as_left(id, &disk_dir, verdict)))
}
