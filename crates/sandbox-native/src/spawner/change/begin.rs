//! A sandbox begins, or goes on.
//!
//! Owns what a guest is made over: nothing before its disk, and all that it stands on,
//! were compared with how they were left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outrigger_sandbox::limits::LIFETIME_MS_MAX;
use outrigger_sandbox::{CreateOutcome, Error, Generation, Origin, SandboxId, SnapshotId};

use super::{
    Beginning, Change, Goal, Make, Next, Over, Stage, Start, Step, Then, Want, astray, done,
};
use crate::limits;
use crate::protocol::Answer;
use crate::spawner::about::{About, now_ms};
use crate::spawner::cold::{self, Cold};
use crate::spawner::live::{Living, unreached};
use crate::spawner::origin::Stack;
use crate::spawner::record::Outlasts;
use crate::spawner::sandboxes::{Birth, Expected};
use crate::spawner::serve::Spawner;
use crate::spawner::verify::{self, Check, Looking, Verdict};
use crate::spawner::waits::{Key, Source};
use crate::spawner::{backend, generation};

impl Spawner {
    pub(super) fn live(&mut self, id: &SandboxId, make: &Make) -> Step {
        if let Some(living) = self.sandboxes.living.get(id) {
            if !living.has_ended() {
                let frozen = living.group.is_frozen();
                self.sandboxes.touch(id);
                return self.attached(id, CreateOutcome::Attached, frozen);
            }
            self.sandboxes.bury(id);
        }
        self.sandboxes.has_room()?;
        let place = self.sandboxes.store.disk(id);
        // Somebody may have deleted it by hand.
        if !self.sandboxes.disks.contains_key(id) || !place.dir().exists() {
            self.sandboxes.disks.remove(id);
            return self.make(id, make);
        }
        let failed = |error: io::Error| backend("cannot read the disk", &error);
        self.sandboxes.finish_sealing(id).map_err(failed)?;
        let about = self.sandboxes.about(id)?.clone();
        let (lowers, mut checks) = self.sandboxes.store.stack(&about.layers)?;
        let cold = Cold::read(&place).map_err(failed)?;
        // After a reboot there is nothing to resume: the disk is begun over as it is.
        let same_boot = cold.iter().filter(|cold| cold.is_of(&self.sandboxes.boot));
        checks.extend(same_boot.flat_map(|cold| cold.checks(&place)));
        let (began, generation) = match cold {
            Some(cold) if cold.is_of(&self.sandboxes.boot) => {
                (CreateOutcome::Resumed, cold.generation)
            }
            _ if !place.upper().exists() => (CreateOutcome::Made, Self::fresh()?),
            _ => (CreateOutcome::Restarted, Self::fresh()?),
        };
        if about.lifetime != make.spec.lifetime {
            let about = About { lifetime: make.spec.lifetime, ..about.clone() };
            self.sandboxes.note(id, about, Outlasts::Process).map_err(failed)?;
        }
        let (template, over) = (about.template, Over::Old);
        let start = Start { began, generation, lowers, template, over };
        self.verify(id, checks, Then::Begin(start), make)
    }

    pub(in crate::spawner) fn fresh() -> Result<Generation, Error> {
        generation().map_err(|error| backend("no randomness", &error))
    }

    /// From its origin.
    fn make(&mut self, id: &SandboxId, make: &Make) -> Step {
        let Stack { template, layers } = self.sandboxes.stack_of(&make.spec.origin)?;
        let (lowers, checks) = self.sandboxes.store.stack(&layers)?;
        let about = About {
            origin: make.spec.origin.clone(),
            template: template.clone(),
            layers,
            sealing: None,
            made_at_ms: now_ms(),
            lifetime: make.spec.lifetime,
        };
        // From here on nothing that it stands on is collected.
        self.sandboxes
            .note(id, about, Outlasts::Process)
            .map_err(|error| backend("cannot make the disk", &error))?;
        let (began, generation) = (CreateOutcome::Made, Self::fresh()?);
        let start = Start { began, generation, lowers, template, over: Over::New };
        self.verify(id, checks, Then::Begin(start), make)
    }

    fn verify(&mut self, id: &SandboxId, checks: Vec<Check>, then: Then, make: &Make) -> Step {
        match verify::begin(&checks).map_err(|error| backend("cannot verify the disk", &error))? {
            Looking::Done(verdict) => self.proceed(id, Some(make), verdict, then),
            Looking::Task(task) => {
                let key = self.await_task(id, &task)?;
                Ok(Next::Wait(Stage::Verifying(task, key, checks, then)))
            }
        }
    }

    pub(super) fn verified(
        &mut self,
        id: &SandboxId,
        change: &Change,
        verdict: Verdict,
        then: Then,
    ) -> Step {
        match &change.want {
            Want::Live(make) => self.proceed(id, Some(make), verdict, then),
            Want::Snapshot(name) => {
                self.as_left(id, verdict)?;
                let Then::Seal(found) = then else { return Err(astray()) };
                self.seal(id, name, found)
            }
            Want::Cold | Want::Gone => Err(astray()),
        }
    }

    fn proceed(
        &mut self,
        id: &SandboxId,
        make: Option<&Make>,
        verdict: Verdict,
        then: Then,
    ) -> Step {
        let (Then::Begin(start), Some(make)) = (then, make) else { return Err(astray()) };
        let (began, over) = (start.began, start.over);
        match self.as_left(id, verdict).and_then(|()| self.expect(id, make, start)) {
            Ok(expected) => self.await_birth(id, expected, over, Goal::Attach(began)),
            Err(error) => self.never_began(id, over, error),
        }
    }

    /// Nothing ran over the disk: what was made for that goes.
    fn never_began(&mut self, id: &SandboxId, over: Over, error: Error) -> Step {
        if over == Over::New
            && let Ok(Some(_)) = self.sandboxes.discard(id)
        {
            self.clean();
        }
        Err(error)
    }

    /// Refuses what is not as it was left.
    pub(super) fn as_left(&self, id: &SandboxId, verdict: Verdict) -> Result<(), Error> {
        let Err(path) = verdict else { return Ok(()) };
        let place = self.sandboxes.store.disk(id);
        let detail = if path.starts_with(place.dir()) {
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
    pub(super) fn expect(
        &mut self,
        id: &SandboxId,
        make: &Make,
        start: Start,
    ) -> Result<Expected, Error> {
        let place = self.sandboxes.store.disk(id);
        let kept = match start.began {
            CreateOutcome::Resumed => Some(
                fs::File::open(place.kept())
                    .map_err(|error| backend("cannot read what is kept", &error))?
                    .into(),
            ),
            CreateOutcome::Made | CreateOutcome::Attached | CreateOutcome::Restarted => None,
        };
        self.sandboxes.expect(Birth {
            place: &place,
            spec: &make.spec,
            read_only: &make.read_only,
            template: &start.template,
            lowers: start.lowers,
            generation: start.generation,
            kept,
        })
    }

    pub(super) fn await_birth(
        &mut self,
        id: &SandboxId,
        expected: Expected,
        over: Over,
        goal: Goal,
    ) -> Step {
        let until = Instant::now() + Duration::from_millis(limits::GUEST_START_MS_MAX);
        let added = self.sandboxes.waits.add(expected.control(), Source::Change(id.clone()));
        let beginning = Beginning { expected, over, until, goal };
        match added {
            Ok(key) => Ok(Next::Wait(Stage::Beginning(Box::new(beginning), key))),
            Err(error) => self.unexpected(id, beginning, backend("cannot wait", &error)),
        }
    }

    /// Its guest has something to say.
    pub(super) fn beginning(
        &mut self,
        id: &SandboxId,
        mut beginning: Box<Beginning>,
        key: Key,
    ) -> Step {
        match beginning.expected.hear() {
            Ok(false) => return Ok(Next::Wait(Stage::Beginning(beginning, key))),
            Ok(true) => {}
            Err(error) => return self.stillborn(id, *beginning, key, error),
        }
        self.sandboxes.waits.remove(key, beginning.expected.control());
        self.sandboxes.refill();
        let Beginning { expected, over, goal, until: _ } = *beginning;
        let awake = self.awake(id, expected.born());
        match (awake, goal) {
            // From here on it lives, whether this caller reaches it or not.
            (Ok(()), Goal::Attach(began)) => self.attached(id, began, false),
            (Err(error), Goal::Attach(_)) => self.never_began(id, over, error),
            // If it can't go on it is cold, and whoever asks for it learns why.
            (_, Goal::GoOn) => done(Answer::Done),
        }
    }

    /// Its guest will never serve.
    pub(super) fn stillborn(
        &mut self,
        id: &SandboxId,
        beginning: Beginning,
        key: Key,
        error: Error,
    ) -> Step {
        self.sandboxes.waits.remove(key, beginning.expected.control());
        self.unexpected(id, beginning, error)
    }

    fn unexpected(&mut self, id: &SandboxId, beginning: Beginning, error: Error) -> Step {
        beginning.expected.discard();
        match beginning.goal {
            Goal::Attach(_) => self.never_began(id, beginning.over, error),
            Goal::GoOn => done(Answer::Done),
        }
    }

    /// Its guest serves.
    fn awake(&mut self, id: &SandboxId, mut living: Living) -> Result<(), Error> {
        // It has nothing to do yet: until it has, the suspended life is as it was.
        let awake = cold::forget(&self.sandboxes.store.disk(id)).and_then(|()| {
            let waits = &mut self.sandboxes.waits;
            living.await_by(waits, Source::Ended(id.clone()), Source::Said(id.clone()))
        });
        if let Err(error) = awake {
            living.bury(&mut self.sandboxes.waits);
            return Err(backend("cannot begin", &error));
        }
        if let Some(disk) = self.sandboxes.disks.get_mut(id) {
            disk.cold = None;
        }
        self.sandboxes.living.insert(id.clone(), living);
        self.sandboxes.touch(id);
        Ok(())
    }

    fn attached(&mut self, id: &SandboxId, began: CreateOutcome, frozen: bool) -> Step {
        let living = self.sandboxes.living.get_mut(id).ok_or_else(astray)?;
        let (generation, fd) = living.connect().map_err(unreached)?;
        let isolation = self.sandboxes.isolation;
        Ok(Next::Done(Answer::Attached { generation, isolation, began, frozen }, Some(fd)))
    }
}

/// The origin is checked when a disk is made, everything else before anything is.
pub(in crate::spawner) fn check(make: &Make) -> Result<(), Error> {
    let Make { spec, read_only, .. } = make;
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
    if let Origin::Template(name) = &spec.origin
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
