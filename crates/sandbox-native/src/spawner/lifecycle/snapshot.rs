//! The disk of a sandbox is kept under a name.
//!
//! Owns the steps from a disk at rest to a named stack of layers, and that the life
//! over it goes on.

use std::io;
use std::time::{Duration, Instant};

use outrigger_sandbox::{CreateOutcome, Error, SandboxId, SnapshotId};

use super::{
    Change, DesiredState, DiskAge, FollowUp, Goal, PreviousGuest, Stage, StartPlan, Step,
    StepResult, astray, done,
};
use crate::limits;
use crate::protocol::{Answer, Request};
use crate::spawner::backend;
use crate::spawner::event_loop::Spawner;
use crate::spawner::layers::Layer;
use crate::spawner::layers::snapshots::SnapshotRecord;
use crate::spawner::layers::verify::{self, Inspection, Measure};
use crate::spawner::lifecycle::disk_record::{DiskRecord, now_ms};
use crate::spawner::lifecycle::suspend_record::SuspendRecord;

impl Spawner {
    pub(super) fn snapshot(&mut self, id: &SandboxId, name: &SnapshotId) -> Step {
        if let Some(kept) = self.sandboxes.snapshots.get(name) {
            return done(Answer::Snapshot(kept.describe(name)));
        }
        if self.is_running(id) {
            return self.hand_over(id);
        }
        let failed = |error: io::Error| backend("cannot read the disk", &error);
        self.sandboxes.finish_sealing(id).map_err(failed)?;
        let record = self.sandboxes.record(id)?;
        let (_, mut checks) = self.sandboxes.store.stack(&record.layers)?;
        let disk_dir = self.sandboxes.store.disk(id);
        let looked = match SuspendRecord::read(&disk_dir).map_err(failed)? {
            Some(cold) => {
                checks.extend(cold.checks(&disk_dir));
                let found = Measure { tree: cold.tree, kept: Some(cold.kept) };
                let checked = verify::begin(&checks)
                    .map_err(|error| backend("cannot verify the disk", &error))?;
                match checked {
                    Inspection::Done(verdict) => {
                        self.as_left(id, verdict)?;
                        Inspection::Done(found)
                    }
                    Inspection::Task(task) => {
                        let key = self.await_task(id, &task)?;
                        let follow_up = FollowUp::Seal(found);
                        return Ok(StepResult::Wait(Stage::Verifying(
                            task, key, checks, follow_up,
                        )));
                    }
                }
            }
            None => Measure::begin(&disk_dir.upper(), None).map_err(failed)?,
        };
        match looked {
            Inspection::Done(found) => self.seal(id, name, found),
            Inspection::Task(task) => {
                let key = self.await_task(id, &task)?;
                Ok(StepResult::Wait(Stage::Measuring(task, key)))
            }
        }
    }

    pub(super) fn seal(&mut self, id: &SandboxId, name: &SnapshotId, found: Measure) -> Step {
        let record = self.sandboxes.record(id)?.clone();
        if record.layers.len() >= limits::LAYERS_MAX {
            let max = limits::LAYERS_MAX;
            return Err(Error::Backend(format!("its disk stands on {max} layers already")));
        }
        self.sandboxes
            .seal(id, &record, found.tree)
            .map_err(|error| backend("cannot seal the disk", &error))?;
        let record = self.sandboxes.record(id)?.clone();
        if record.layers.len() < limits::LAYERS_FLATTEN {
            return self.kept(id, name);
        }
        match self.sandboxes.flatten(id, &record) {
            Ok((task, layer)) => {
                let key = self.await_task(id, &task)?;
                Ok(StepResult::Wait(Stage::Flattening(task, key, layer)))
            }
            // A high stack serves too, up to its limit.
            Err(_) => self.kept(id, name),
        }
    }

    pub(super) fn flattened(
        &mut self,
        id: &SandboxId,
        change: &Change,
        layer: &Layer,
        result: io::Result<Vec<u8>>,
    ) -> Step {
        let DesiredState::Snapshot(name) = &change.desired else { return Err(astray()) };
        let record = self.sandboxes.record(id)?.clone();
        // The many layers serve as well as the one that could not be made.
        let _ = self.sandboxes.flattened(id, record, layer, result);
        let kept = self.kept(id, name);
        // Either the many or the one that failed.
        self.collect();
        kept
    }

    /// The stack is as it stays, and gets its name.
    fn kept(&mut self, id: &SandboxId, name: &SnapshotId) -> Step {
        let DiskRecord { template, layers, .. } = self.sandboxes.record(id)?.clone();
        // Two may have begun at once; the first one's name is its own for good.
        let there = self.sandboxes.snapshots.get(name).cloned();
        let kept = there.unwrap_or_else(|| SnapshotRecord {
            sandbox: id.clone(),
            template,
            layers,
            taken_at_ms: now_ms(),
        });
        let told = Answer::Snapshot(kept.describe(name));
        let named = self.sandboxes.keep(name, kept);
        named.map_err(|error| backend("cannot keep the snapshot", &error))?;
        Ok(StepResult::GoOn(told))
    }

    /// What becomes of a life that was ended for this: it goes on for whoever asks for it, not
    /// at all if its end is all that they ask for, and soon if nobody does, because others
    /// come first.
    pub(super) fn go_on_living(&mut self, id: &SandboxId, change: &mut Change) -> Step {
        let ends = |request: &Request| matches!(request, Request::Destroy(_) | Request::Suspend(_));
        if change.previous.is_some() && change.waiting.is_empty() {
            let until = Instant::now() + Duration::from_millis(limits::PUT_OFF_MS);
            return Ok(StepResult::Wait(Stage::PutOff { until }));
        }
        if change.waiting.iter().all(|(request, _)| ends(request)) {
            return done(Answer::Done);
        }
        self.revive(id, change.previous.take())
    }

    /// A life that was ended for this goes on. If it can't it is cold, and whoever asks for it
    /// learns why.
    pub(super) fn revive(&mut self, id: &SandboxId, previous: Option<PreviousGuest>) -> Step {
        let Some(PreviousGuest { generation, request }) = previous else {
            return done(Answer::Done);
        };
        let DiskRecord { template, layers, .. } = self.sandboxes.record(id)?.clone();
        let (lowers, _) = self.sandboxes.store.stack(&layers)?;
        let (outcome, disk_age) = (CreateOutcome::Resumed, DiskAge::Old);
        let start = StartPlan { outcome, generation, lowers, template, disk_age };
        let starting = self.start_guest(id, &request, start)?;
        self.await_start(id, starting, disk_age, Goal::GoOn)
    }
}
