//! A guest hands over and ends, and what it left is looked at.
//!
//! Owns the way from a life to the record of it. Nothing is written down of a life
//! before its last process is gone.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Error, SandboxId};

use super::{Change, DesiredState, Stage, Step, StepResult, astray, done};
use crate::limits;
use crate::protocol::Answer;
use crate::spawner::backend;
use crate::spawner::event_loop::Spawner;
use crate::spawner::layers::verify::{Inspection, Measure};
use crate::spawner::lifecycle::suspend_record::SuspendRecord;

impl Spawner {
    pub(super) fn make_cold(&mut self, id: &SandboxId) -> Step {
        if self.is_running(id) {
            return self.hand_over(id);
        }
        let absent = Error::Absent { what: "living sandbox".to_owned(), name: id.to_string() };
        match self.sandboxes.disks.get(id) {
            Some(disk) if disk.cold.is_some() => done(Answer::Done),
            Some(_) | None => Err(absent),
        }
    }

    pub(super) fn is_running(&mut self, id: &SandboxId) -> bool {
        match self.sandboxes.running.get(id) {
            Some(running) if running.has_ended() => {
                self.sandboxes.reap(id);
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    pub(super) fn hand_over(&mut self, id: &SandboxId) -> Step {
        let failed = |error: io::Error| backend("cannot ask the guest to hand over", &error);
        let kept = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.sandboxes.store.disk(id).kept())
            .map_err(failed)?;
        let running = self.sandboxes.running.get(id).ok_or_else(astray)?;
        running.ask_to_hand_over(&kept).map_err(failed)?;
        let until = Instant::now() + Duration::from_millis(limits::HANDOVER_MS_MAX);
        Ok(StepResult::Wait(Stage::HandingOver { until }))
    }

    pub(super) fn measure(&mut self, id: &SandboxId, change: &Change) -> Step {
        let disk_dir = self.sandboxes.store.disk(id);
        let kept = change.previous.is_some().then(|| disk_dir.kept());
        let inspection = Measure::begin(&disk_dir.upper(), kept.as_deref());
        match inspection.map_err(|error| backend("cannot look at the disk", &error))? {
            Inspection::Done(found) => self.measured(id, change, found),
            Inspection::Task(task) => {
                let key = self.await_task(id, &task)?;
                Ok(StepResult::Wait(Stage::Measuring(task, key)))
            }
        }
    }

    pub(super) fn measured(&mut self, id: &SandboxId, change: &Change, found: Measure) -> Step {
        if let (Some(previous), Some(kept)) = (&change.previous, found.kept) {
            let disk_dir = self.sandboxes.store.disk(id);
            let generation = previous.generation.clone();
            let boot = self.sandboxes.boot.clone();
            let cold =
                SuspendRecord { generation: generation.clone(), boot, tree: found.tree, kept };
            cold.write(&disk_dir).map_err(|error| backend("cannot keep the life", &error))?;
            self.sandboxes.touch(id);
            if let Some(disk) = self.sandboxes.disks.get_mut(id) {
                disk.cold = Some(generation);
            }
        }
        match &change.desired {
            DesiredState::Cold => done(Answer::Done),
            DesiredState::Snapshot(name) => self.seal(id, name, found),
            DesiredState::Live(_) | DesiredState::Gone => Err(astray()),
        }
    }
}
