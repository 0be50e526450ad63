//! A sandbox begins, or goes on.
//!
//! Owns what a guest is made over: nothing before its disk, and all that it stands on,
//! were compared with how they were left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outrigger_sandbox::limits::LIFETIME_MS_MAX;
use outrigger_sandbox::{CreateOutcome, DiskOrigin, Error, Generation, SandboxId, SnapshotId};

use super::{
    Change, CreateRequest, DesiredState, DiskAge, FollowUp, Goal, PendingStart, Stage, StartPlan,
    Step, StepResult, astray, done,
};
use crate::limits;
use crate::protocol::Answer;
use crate::spawner::create::running::{RunningSandbox, unreached};
use crate::spawner::event_loop::Spawner;
use crate::spawner::event_loop::poll::{Key, Source};
use crate::spawner::layers::origin::LayerStack;
use crate::spawner::layers::verify::{self, Check, Inspection, Verdict};
use crate::spawner::lifecycle::disk_record::{DiskRecord, now_ms};
use crate::spawner::lifecycle::sandboxes::{SandboxSpec, StartingSandbox};
use crate::spawner::lifecycle::suspend_record::{self, SuspendRecord};
use crate::spawner::record::Durability;
use crate::spawner::{backend, generation};

impl Spawner {
    pub(super) fn create(&mut self, id: &SandboxId, request: &CreateRequest) -> Step {
        if let Some(running) = self.sandboxes.running.get(id) {
            if !running.has_ended() {
                let frozen = running.group.is_frozen();
                self.sandboxes.touch(id);
                return self.attached(id, CreateOutcome::Attached, frozen);
            }
            self.sandboxes.reap(id);
        }
        self.sandboxes.has_room()?;
        let disk_dir = self.sandboxes.store.disk(id);
        // Somebody may have deleted it by hand.
        if !self.sandboxes.disks.contains_key(id) || !disk_dir.path().exists() {
            self.sandboxes.disks.remove(id);
            return self.create_disk(id, request);
        }
        let failed = |error: io::Error| backend("cannot read the disk", &error);
        self.sandboxes.finish_sealing(id).map_err(failed)?;
        let record = self.sandboxes.record(id)?.clone();
        let (lowers, mut checks) = self.sandboxes.store.stack(&record.layers)?;
        let cold = SuspendRecord::read(&disk_dir).map_err(failed)?;
        // After a reboot there is nothing to resume: the disk is begun over as it is.
        let same_boot = cold.iter().filter(|cold| cold.is_of(&self.sandboxes.boot));
        checks.extend(same_boot.flat_map(|cold| cold.checks(&disk_dir)));
        let (outcome, generation) = match cold {
            Some(cold) if cold.is_of(&self.sandboxes.boot) => {
                (CreateOutcome::Resumed, cold.generation)
            }
            _ if !disk_dir.upper().exists() => (CreateOutcome::Made, Self::fresh()?),
            _ => (CreateOutcome::Restarted, Self::fresh()?),
        };
        if record.lifetime != request.spec.lifetime {
            let record = DiskRecord { lifetime: request.spec.lifetime, ..record.clone() };
            self.sandboxes.note(id, record, Durability::Process).map_err(failed)?;
        }
        let (template, disk_age) = (record.template, DiskAge::Old);
        let start = StartPlan { outcome, generation, lowers, template, disk_age };
        self.verify(id, checks, FollowUp::Begin(start), request)
    }

    pub(crate) fn fresh() -> Result<Generation, Error> {
        generation().map_err(|error| backend("no randomness", &error))
    }

    /// From its origin.
    fn create_disk(&mut self, id: &SandboxId, request: &CreateRequest) -> Step {
        let LayerStack { template, layers } = self.sandboxes.stack_of(&request.spec.origin)?;
        let (lowers, checks) = self.sandboxes.store.stack(&layers)?;
        let record = DiskRecord {
            origin: request.spec.origin.clone(),
            template: template.clone(),
            layers,
            sealing: None,
            made_at_ms: now_ms(),
            lifetime: request.spec.lifetime,
        };
        // From here on nothing that it stands on is collected.
        self.sandboxes
            .note(id, record, Durability::Process)
            .map_err(|error| backend("cannot make the disk", &error))?;
        let (outcome, generation) = (CreateOutcome::Made, Self::fresh()?);
        let start = StartPlan { outcome, generation, lowers, template, disk_age: DiskAge::New };
        self.verify(id, checks, FollowUp::Begin(start), request)
    }

    fn verify(
        &mut self,
        id: &SandboxId,
        checks: Vec<Check>,
        follow_up: FollowUp,
        request: &CreateRequest,
    ) -> Step {
        match verify::begin(&checks).map_err(|error| backend("cannot verify the disk", &error))? {
            Inspection::Done(verdict) => self.proceed(id, Some(request), verdict, follow_up),
            Inspection::Task(task) => {
                let key = self.await_task(id, &task)?;
                Ok(StepResult::Wait(Stage::Verifying(task, key, checks, follow_up)))
            }
        }
    }

    pub(super) fn verified(
        &mut self,
        id: &SandboxId,
        change: &Change,
        verdict: Verdict,
        follow_up: FollowUp,
    ) -> Step {
        match &change.desired {
            DesiredState::Live(request) => self.proceed(id, Some(request), verdict, follow_up),
            DesiredState::Snapshot(name) => {
                self.as_left(id, verdict)?;
                let FollowUp::Seal(found) = follow_up else { return Err(astray()) };
                self.seal(id, name, found)
            }
            DesiredState::Cold | DesiredState::Gone => Err(astray()),
        }
    }

    fn proceed(
        &mut self,
        id: &SandboxId,
        request: Option<&CreateRequest>,
        verdict: Verdict,
        follow_up: FollowUp,
    ) -> Step {
        let (FollowUp::Begin(start), Some(request)) = (follow_up, request) else {
            return Err(astray());
        };
        let (outcome, disk_age) = (start.outcome, start.disk_age);
        match self.as_left(id, verdict).and_then(|()| self.start_guest(id, request, start)) {
            Ok(starting) => self.await_start(id, starting, disk_age, Goal::Attach(outcome)),
            Err(error) => self.undo_start(id, disk_age, error),
        }
    }

    /// Nothing ran over the disk: what was made for that goes.
    fn undo_start(&mut self, id: &SandboxId, disk_age: DiskAge, error: Error) -> Step {
        if disk_age == DiskAge::New
            && let Ok(Some(_)) = self.sandboxes.discard(id)
        {
            self.clean();
        }
        Err(error)
    }

    /// Refuses what is not as it was left.
    pub(super) fn as_left(&self, id: &SandboxId, verdict: Verdict) -> Result<(), Error> {
        let Err(path) = verdict else { return Ok(()) };
        let disk_dir = self.sandboxes.store.disk(id);
        let detail = if path.starts_with(disk_dir.path()) {
            "its tree is not as it was when it was suspended; it was left as it is: destroy the \
             sandbox, or make another one from a snapshot of it"
                .to_owned()
        } else {
            let layer = path.parent().and_then(|dir| dir.file_name()).unwrap_or_default();
            format!(
                "the layer `{}` that it stands on is not as it was sealed; what stands on it can \
                 be destroyed and not started",
                layer.to_string_lossy()
            )
        };
        Err(Error::Altered { name: id.to_string(), detail })
    }

    /// Has its guest begin, over a disk that was verified.
    pub(super) fn start_guest(
        &mut self,
        id: &SandboxId,
        request: &CreateRequest,
        start: StartPlan,
    ) -> Result<StartingSandbox, Error> {
        let disk_dir = self.sandboxes.store.disk(id);
        let kept = match start.outcome {
            CreateOutcome::Resumed => Some(
                fs::File::open(disk_dir.kept())
                    .map_err(|error| backend("cannot read what is kept", &error))?
                    .into(),
            ),
            CreateOutcome::Made | CreateOutcome::Attached | CreateOutcome::Restarted => None,
        };
        self.sandboxes.start_guest(SandboxSpec {
            disk_dir: &disk_dir,
            spec: &request.spec,
            read_only: &request.read_only,
            template: &start.template,
            lowers: start.lowers,
            generation: start.generation,
            kept,
        })
    }

    pub(super) fn await_start(
        &mut self,
        id: &SandboxId,
        starting: StartingSandbox,
        disk_age: DiskAge,
        goal: Goal,
    ) -> Step {
        let until = Instant::now() + Duration::from_millis(limits::GUEST_START_MS_MAX);
        let added = self.sandboxes.poller.add(starting.control(), Source::Change(id.clone()));
        let pending = PendingStart { starting, disk_age, until, goal };
        match added {
            Ok(key) => Ok(StepResult::Wait(Stage::Beginning(Box::new(pending), key))),
            Err(error) => self.abandon_start(id, pending, backend("cannot wait", &error)),
        }
    }

    /// Its guest has something to say.
    pub(super) fn starting(
        &mut self,
        id: &SandboxId,
        mut pending: Box<PendingStart>,
        key: Key,
    ) -> Step {
        match pending.starting.hear() {
            Ok(false) => return Ok(StepResult::Wait(Stage::Beginning(pending, key))),
            Ok(true) => {}
            Err(error) => return self.start_failed(id, *pending, key, error),
        }
        self.sandboxes.poller.remove(key, pending.starting.control());
        self.sandboxes.refill();
        let PendingStart { starting, disk_age, goal, until: _ } = *pending;
        let awake = self.awake(id, starting.into_running());
        match (awake, goal) {
            // From here on it lives, whether this caller reaches it or not.
            (Ok(()), Goal::Attach(outcome)) => self.attached(id, outcome, false),
            (Err(error), Goal::Attach(_)) => self.undo_start(id, disk_age, error),
            // If it can't go on it is cold, and whoever asks for it learns why.
            (_, Goal::GoOn) => done(Answer::Done),
        }
    }

    /// Its guest will never serve.
    pub(super) fn start_failed(
        &mut self,
        id: &SandboxId,
        pending: PendingStart,
        key: Key,
        error: Error,
    ) -> Step {
        self.sandboxes.poller.remove(key, pending.starting.control());
        self.abandon_start(id, pending, error)
    }

    fn abandon_start(&mut self, id: &SandboxId, pending: PendingStart, error: Error) -> Step {
        pending.starting.discard();
        match pending.goal {
            Goal::Attach(_) => self.undo_start(id, pending.disk_age, error),
            Goal::GoOn => done(Answer::Done),
        }
    }

    /// Its guest serves.
    fn awake(&mut self, id: &SandboxId, mut running: RunningSandbox) -> Result<(), Error> {
        // It has nothing to do yet: until it has, the suspended life is as it was.
        let awake = suspend_record::forget(&self.sandboxes.store.disk(id)).and_then(|()| {
            let poller = &mut self.sandboxes.poller;
            running.await_by(poller, Source::Ended(id.clone()), Source::Message(id.clone()))
        });
        if let Err(error) = awake {
            running.reap(&mut self.sandboxes.poller);
            return Err(backend("cannot begin", &error));
        }
        if let Some(disk) = self.sandboxes.disks.get_mut(id) {
            disk.cold = None;
        }
        self.sandboxes.running.insert(id.clone(), running);
        self.sandboxes.touch(id);
        Ok(())
    }

    fn attached(&mut self, id: &SandboxId, outcome: CreateOutcome, frozen: bool) -> Step {
        let running = self.sandboxes.running.get_mut(id).ok_or_else(astray)?;
        let (generation, fd) = running.connect().map_err(unreached)?;
        let isolation = self.sandboxes.isolation;
        Ok(StepResult::Done(Answer::Attached { generation, isolation, outcome, frozen }, Some(fd)))
    }
}

/// The origin is checked when a disk is made, everything else before anything is.
pub(crate) fn check(request: &CreateRequest) -> Result<(), Error> {
    let CreateRequest { spec, read_only, .. } = request;
    if spec.memory_bytes_max < (1 << 20) || spec.pids_max == 0 || spec.cpu_millis_max == 0 {
        return Err(Error::Invalid(
            "a limit of the sandbox is too small to run anything".to_owned(),
        ));
    }
    if spec.disk_bytes_max == 0 || spec.disk_inodes_max == 0 {
        return Err(Error::Invalid("a sandbox without any disk can't be made".to_owned()));
    }
    let times = [spec.lifetime.idle_ms_max, spec.lifetime.age_ms_max];
    let lasts = 1..=LIFETIME_MS_MAX;
    if let Some(time) = times.into_iter().flatten().find(|time| !lasts.contains(time)) {
        return Err(Error::Invalid(format!(
            "a sandbox is not kept for {time} ms; 1 to {LIFETIME_MS_MAX} can be asked for"
        )));
    }
    if let DiskOrigin::Template(name) = &spec.origin
        && SnapshotId::new(name.clone()).is_err()
    {
        return Err(Error::Invalid(format!("`{name}` is no name for a template")));
    }
    let plain = |path: &PathBuf| {
        path.is_absolute()
            && path.components().skip(1).all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    if let Some(path) = read_only.iter().find(|path| !plain(path)) {
        return Err(Error::Invalid(format!("`{}` is not a plain absolute path", path.display())));
    }
    spec.check_served()?;
    let both = |path: &&String| {
        read_only.iter().any(|shown| shown.starts_with(path) || Path::new(path).starts_with(shown))
    };
    match spec.served.iter().find(both) {
        Some(path) => Err(Error::Invalid(format!(
            "`{path}` can't be a served folder: something of the host is shown there"
        ))),
        None => Ok(()),
    }
}
