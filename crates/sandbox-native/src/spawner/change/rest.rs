//! A guest hands over and ends, and what it left is looked at.
//!
//! Owns the way from a life to the record of it. Nothing is written down of a life
//! before its last process is gone.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Error, SandboxId};

use super::{Change, Next, Stage, Step, Want, astray, done};
use crate::limits;
use crate::protocol::Answer;
use crate::spawner::backend;
use crate::spawner::cold::Cold;
use crate::spawner::serve::Spawner;
use crate::spawner::verify::{Looking, Measure};

impl Spawner {
    pub(super) fn make_cold(&mut self, id: &SandboxId) -> Step {
        if self.is_living(id) {
            return self.hand_over(id);
        }
        let absent = Error::Absent { what: "living sandbox".to_owned(), name: id.to_string() };
        match self.sandboxes.disks.get(id) {
            Some(disk) if disk.cold.is_some() => done(Answer::Done),
            Some(_) | None => Err(absent),
        }
    }

    pub(super) fn is_living(&mut self, id: &SandboxId) -> bool {
        match self.sandboxes.living.get(id) {
            Some(living) if living.has_ended() => {
                self.sandboxes.bury(id);
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
        let living = self.sandboxes.living.get(id).ok_or_else(astray)?;
        living.ask_to_hand_over(&kept).map_err(failed)?;
        let until = Instant::now() + Duration::from_millis(limits::HANDOVER_MS_MAX);
        Ok(Next::Wait(Stage::HandingOver { until }))
    }

    pub(super) fn measure(&mut self, id: &SandboxId, change: &Change) -> Step {
        let place = self.sandboxes.store.disk(id);
        let kept = change.lived.is_some().then(|| place.kept());
        let looking = Measure::begin(&place.upper(), kept.as_deref());
        match looking.map_err(|error| backend("cannot look at the disk", &error))? {
            Looking::Done(found) => self.measured(id, change, found),
            Looking::Task(task) => {
                let key = self.await_task(id, &task)?;
                Ok(Next::Wait(Stage::Measuring(task, key)))
            }
        }
    }

    pub(super) fn measured(&mut self, id: &SandboxId, change: &Change, found: Measure) -> Step {
        if let (Some(lived), Some(kept)) = (&change.lived, found.kept) {
            let place = self.sandboxes.store.disk(id);
            let generation = lived.generation.clone();
            let boot = self.sandboxes.boot.clone();
            let cold = Cold { generation: generation.clone(), boot, tree: found.tree, kept };
            cold.write(&place).map_err(|error| backend("cannot keep the life", &error))?;
            self.sandboxes.touch(id);
            if let Some(disk) = self.sandboxes.disks.get_mut(id) {
                disk.cold = Some(generation);
            }
        }
        match &change.want {
            Want::Cold => done(Answer::Done),
            Want::Snapshot(name) => self.seal(id, name, found),
            Want::Live(_) | Want::Gone => Err(astray()),
        }
    }
}
