//! Changes of a sandbox that take more than one step.
//!
//! Owns the order of the steps: a guest hands over and ends, its disk is looked at,
//! sealed or deleted, a guest begins. Whatever may take long is waited for by the
//! loop; one sandbox has one change at a time, and whoever asks for it meanwhile waits.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Began, Error, Generation, Origin, SandboxId, Snapshot, SnapshotId, Spec};

use super::about::{About, now_ms};
use super::backend;
use super::cold::{self, Cold};
use super::live::Said;
use super::origin::Stack;
use super::record::Outlasts;
use super::root::Lower;
use super::sandboxes::Birth;
use super::serve::Spawner;
use super::snapshots::Kept;
use super::task::Task;
use super::verify::{self, Check, Looking, Measure, Verdict};
use super::waits::{Key, Source};
use crate::limits;
use crate::protocol::{Answer, Request};

/// What is to become of a sandbox.
#[derive(Debug)]
pub(super) enum Want {
    /// It lives, and the caller has a way to it.
    Live(Box<Make>),
    /// Nothing of it runs, its life is kept.
    Cold,
    /// Its disk is kept under a name.
    Snapshot(SnapshotId),
    /// It is gone.
    Gone,
}

/// What a sandbox is made like.
#[derive(Debug, Clone)]
pub(super) struct Make {
    pub(super) spec: Spec,
    pub(super) read_only: Vec<PathBuf>,
}

/// A change that goes on.
#[derive(Debug)]
pub(super) struct Change {
    want: Want,
    /// Who asked for it; `None`: the spawner itself.
    peer: Option<UnixStream>,
    stage: Stage,
    /// The life that was ended for it, to go on afterwards.
    lived: Option<Lived>,
    /// Who asks for the same sandbox.
    waiting: VecDeque<(Request, UnixStream)>,
}

#[derive(Debug)]
struct Lived {
    generation: Generation,
    make: Make,
}

#[derive(Debug)]
enum Stage {
    /// Nothing was done yet.
    New,
    /// Its guest was asked to hand over.
    HandingOver { until: Instant },
    /// Its guest was told to end.
    Ending,
    /// Its guest was ended because it did not hand over.
    Failing,
    /// A process looks at its disk.
    Measuring(Task, Key),
    /// A process compares its disk with how it was left.
    Verifying(Task, Key, Vec<Check>, Then),
    /// A process deletes its disk.
    Deleting(Task, Key),
}

/// What follows a comparison.
#[derive(Debug)]
enum Then {
    /// Its guest begins.
    Begin(Start),
    /// Its tree, which looks like this, is sealed.
    Seal(Measure),
}

/// How a guest begins.
#[derive(Debug)]
struct Start {
    began: Began,
    generation: Generation,
    lowers: Vec<Lower>,
    template: String,
}

/// What comes of a step.
#[derive(Debug)]
enum Next {
    Wait(Stage),
    Done(Answer, Option<OwnedFd>),
}

type Step = Result<Next, Error>;

fn done(answer: Answer) -> Step {
    Ok(Next::Done(answer, None))
}

impl Change {
    pub(super) fn new(want: Want, peer: Option<UnixStream>) -> Self {
        Self { want, peer, stage: Stage::New, lived: None, waiting: VecDeque::new() }
    }

    /// Has somebody wait for its end. Gives them back if too many do.
    pub(super) fn queue(&mut self, request: Request, peer: UnixStream) -> Option<UnixStream> {
        if self.waiting.len() >= limits::QUEUED_MAX {
            return Some(peer);
        }
        self.waiting.push_back((request, peer));
        None
    }

    /// When it is to be looked at although nothing happened.
    pub(super) fn until(&self) -> Option<Instant> {
        match self.stage {
            Stage::HandingOver { until } => Some(until),
            _ => None,
        }
    }
}

impl Spawner {
    /// Begins a change.
    pub(super) fn begin(&mut self, id: SandboxId, mut change: Change) {
        let step = match &change.want {
            Want::Live(make) => self.live(&id, make),
            Want::Cold => self.make_cold(&id),
            Want::Snapshot(name) => self.snapshot(&id, name),
            Want::Gone => self.end(&id),
        };
        if let Some(id) = self.conclude(id, &mut change, step) {
            self.changes.insert(id, change);
        }
    }

    /// Notes what came of a step. Gives the name back if the change goes on.
    fn conclude(&mut self, id: SandboxId, change: &mut Change, step: Step) -> Option<SandboxId> {
        let (answer, fd) = match step {
            Ok(Next::Wait(stage)) => {
                change.stage = stage;
                return Some(id);
            }
            Ok(Next::Done(answer, fd)) => (answer, fd),
            Err(error) => (Answer::Failed(error), None),
        };
        if let Some(peer) = &change.peer {
            self.answer(peer, &answer, fd);
        }
        // The next one may begin a change itself, and take the others along.
        let mut waiting = std::mem::take(&mut change.waiting);
        while let Some((request, peer)) = waiting.pop_front() {
            self.perform(request, peer);
            if let Some(next) = self.changes.get_mut(&id) {
                next.waiting.append(&mut waiting);
            }
        }
        None
    }

    /// Goes on with a change, because something happened to it.
    fn go_on(&mut self, id: &SandboxId, step: impl FnOnce(&mut Self, &mut Change) -> Step) {
        let Some(mut change) = self.changes.remove(id) else { return };
        let result = step(self, &mut change);
        if let Some(id) = self.conclude(id.clone(), &mut change, result) {
            self.changes.insert(id, change);
        }
    }

    /// A guest ended.
    pub(super) fn ended(&mut self, id: &SandboxId) {
        if !self.changes.contains_key(id) {
            self.sandboxes.bury(id);
            return;
        }
        self.go_on(id, |spawner, change| {
            let stage = std::mem::replace(&mut change.stage, Stage::New);
            if matches!(stage, Stage::Ending) {
                change.lived = spawner.sandboxes.living.get(id).map(|living| Lived {
                    generation: living.generation.clone(),
                    make: Make { spec: living.spec.clone(), read_only: living.read_only.clone() },
                });
            }
            spawner.sandboxes.bury(id);
            match (stage, &change.want) {
                (Stage::Ending, Want::Gone) => spawner.delete(id),
                (Stage::Ending, _) => spawner.measure(id, change),
                _ => Err(Error::Lost { reason: "its guest ended instead of handing over".into() }),
            }
        });
    }

    /// A guest said something.
    pub(super) fn said(&mut self, id: &SandboxId) {
        let Some(living) = self.sandboxes.living.get_mut(id) else { return };
        for said in living.hear() {
            match said {
                Said::Active => living.active = Instant::now(),
                Said::Busy => {
                    living.active = Instant::now();
                    let busy = Error::Busy { reason: "a command runs in it".to_owned() };
                    return self.refused(id, busy);
                }
                Said::Failed => {
                    let what = "its guest could not write down what it knows".to_owned();
                    return self.refused(id, Error::Backend(what));
                }
                Said::HandedOver => {
                    return self.go_on(id, |spawner, change| {
                        let stage = std::mem::replace(&mut change.stage, Stage::New);
                        if !matches!(stage, Stage::HandingOver { .. }) {
                            return Ok(Next::Wait(stage));
                        }
                        spawner.kill(id);
                        Ok(Next::Wait(Stage::Ending))
                    });
                }
                Said::Nonsense => {
                    // Its end is near, or it is broken; it would be heard for ever.
                    living.kill();
                    return;
                }
            }
        }
    }

    /// A guest goes on instead of handing over.
    fn refused(&mut self, id: &SandboxId, why: Error) {
        self.go_on(id, |spawner, change| match change.stage {
            Stage::HandingOver { .. } => {
                let _ = fs::remove_file(spawner.sandboxes.store.disk(id).kept());
                Err(why)
            }
            _ => Ok(Next::Wait(std::mem::replace(&mut change.stage, Stage::New))),
        });
    }

    fn kill(&self, id: &SandboxId) {
        if let Some(living) = self.sandboxes.living.get(id) {
            living.kill();
        }
    }

    /// Looks at the changes whose time is over.
    pub(super) fn overdue(&mut self, now: Instant) {
        let late: Vec<SandboxId> = self
            .changes
            .iter()
            .filter(|(_, change)| change.until().is_some_and(|until| until <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            // What it handed over so far is worth nothing, and it may have stopped to serve.
            self.go_on(&id, |spawner, _| {
                spawner.kill(&id);
                Ok(Next::Wait(Stage::Failing))
            });
        }
    }

    /// The process of a change ended.
    pub(super) fn changed(&mut self, id: &SandboxId) {
        self.go_on(id, |spawner, change| match std::mem::replace(&mut change.stage, Stage::New) {
            Stage::Measuring(task, key) => {
                let result = spawner.finish(task, key)?;
                let found = Measure::told(&result)
                    .map_err(|error| backend("cannot look at the disk", &error))?;
                spawner.measured(id, change, found)
            }
            Stage::Verifying(task, key, checks, then) => {
                let result = spawner.finish(task, key)?;
                spawner.verified(id, change, verify::told(&checks, &result), then)
            }
            Stage::Deleting(task, key) => {
                let what = "the sandbox is gone, but its disk could not be deleted whole; \
                                what is left of it is in `trash` of the state directory";
                let finished = spawner.finish(task, key);
                finished.map_err(|error| Error::Backend(format!("{what}: {error}")))?;
                done(Answer::Done)
            }
            stage @ (Stage::New | Stage::HandingOver { .. } | Stage::Ending | Stage::Failing) => {
                Ok(Next::Wait(stage))
            }
        });
    }

    fn finish(&mut self, task: Task, key: Key) -> Result<Vec<u8>, Error> {
        self.sandboxes.waits.remove(key, task.ended());
        task.finish().map_err(|error| backend("a task of the spawner failed", &error))
    }

    fn await_task(&mut self, id: &SandboxId, task: &Task) -> Result<Key, Error> {
        let source = Source::Change(id.clone());
        let added = self.sandboxes.waits.add(task.ended(), source);
        added.map_err(|error| backend("cannot wait", &error))
    }
}

/// To live.
impl Spawner {
    fn live(&mut self, id: &SandboxId, make: &Make) -> Step {
        if let Some(living) = self.sandboxes.living.get(id) {
            if !living.has_ended() {
                let frozen = living.group.is_frozen();
                self.sandboxes.touch(id);
                return self.attached(id, Began::Attached, frozen);
            }
            self.sandboxes.bury(id);
        }
        self.sandboxes.has_room()?;
        let place = self.sandboxes.store.disk(id);
        if !place.dir().exists() {
            // Somebody deleted it by hand.
            self.sandboxes.disks.remove(id);
        }
        if !self.sandboxes.disks.contains_key(id) {
            return self.make(id, make);
        }
        let failed = |error: io::Error| backend("cannot read the disk", &error);
        self.sandboxes.finish_sealing(id).map_err(failed)?;
        let about = self.sandboxes.about(id)?.clone();
        let (lowers, mut checks) = self.sandboxes.store.stack(&about.layers)?;
        let cold = Cold::read(&place).map_err(failed)?;
        checks.extend(cold.iter().flat_map(|cold| cold.checks(&place)));
        let (began, generation) = match cold {
            Some(cold) if cold.is_of(&self.sandboxes.boot) => (Began::Resumed, cold.generation),
            _ if !place.upper().exists() => (Began::Made, Self::fresh()?),
            _ => (Began::Restarted, Self::fresh()?),
        };
        if about.lifetime != make.spec.lifetime {
            let about = About { lifetime: make.spec.lifetime, ..about.clone() };
            self.sandboxes.note(id, about, Outlasts::Process).map_err(failed)?;
        }
        let start = Start { began, generation, lowers, template: about.template };
        self.verify(id, checks, Then::Begin(start), make)
    }

    fn fresh() -> Result<Generation, Error> {
        super::generation().map_err(|error| backend("no randomness", &error))
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
        let start = Start { began: Began::Made, generation: Self::fresh()?, lowers, template };
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

    fn verified(&mut self, id: &SandboxId, change: &Change, verdict: Verdict, then: Then) -> Step {
        match &change.want {
            Want::Live(make) => self.proceed(id, Some(make), verdict, then),
            Want::Snapshot(name) => {
                self.as_left(id, verdict)?;
                let Then::Seal(found) = then else { return Err(astray()) };
                self.seal(id, name, change, found)
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
        let made = start.began == Began::Made;
        let began = start.began;
        let result = self
            .as_left(id, verdict)
            .and_then(|()| self.start(id, make, start))
            .and_then(|()| self.attached(id, began, false));
        if result.is_err() && made {
            // Nothing ever ran on it.
            if let Ok(Some(_)) = self.sandboxes.discard(id) {
                self.clean();
            }
        }
        result
    }

    /// Refuses what is not as it was left.
    fn as_left(&self, id: &SandboxId, verdict: Verdict) -> Result<(), Error> {
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

    /// Makes its guest, over a disk that was verified.
    fn start(&mut self, id: &SandboxId, make: &Make, start: Start) -> Result<(), Error> {
        let place = self.sandboxes.store.disk(id);
        let kept = match start.began {
            Began::Resumed => Some(
                fs::File::open(place.kept())
                    .map_err(|error| backend("cannot read what is kept", &error))?
                    .into(),
            ),
            Began::Made | Began::Attached | Began::Restarted => None,
        };
        let mut living = self.sandboxes.bear(Birth {
            place: &place,
            name: id,
            spec: &make.spec,
            read_only: &make.read_only,
            template: &start.template,
            lowers: start.lowers,
            generation: start.generation,
            kept,
        })?;
        // Its guest has nothing to do yet: until it has, the suspended life is as it was.
        let awake = cold::forget(&place).and_then(|()| {
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

    fn attached(&self, id: &SandboxId, began: Began, frozen: bool) -> Step {
        let living = self.sandboxes.living.get(id).ok_or_else(astray)?;
        let (generation, fd) =
            living.connect().map_err(|error| backend("the guest takes no connection", &error))?;
        let isolation = self.sandboxes.isolation;
        Ok(Next::Done(Answer::Attached { generation, isolation, began, frozen }, Some(fd)))
    }
}

/// To rest.
impl Spawner {
    fn make_cold(&mut self, id: &SandboxId) -> Step {
        if self.is_living(id) {
            return self.hand_over(id);
        }
        let absent = Error::Absent { what: "living sandbox".to_owned(), name: id.to_string() };
        match self.sandboxes.disks.get(id) {
            Some(disk) if disk.cold.is_some() => done(Answer::Done),
            Some(_) | None => Err(absent),
        }
    }

    fn is_living(&mut self, id: &SandboxId) -> bool {
        match self.sandboxes.living.get(id) {
            Some(living) if living.has_ended() => {
                self.sandboxes.bury(id);
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    fn hand_over(&mut self, id: &SandboxId) -> Step {
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

    fn measure(&mut self, id: &SandboxId, change: &Change) -> Step {
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

    fn measured(&mut self, id: &SandboxId, change: &Change, found: Measure) -> Step {
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
            Want::Snapshot(name) => self.seal(id, name, change, found),
            Want::Live(_) | Want::Gone => Err(astray()),
        }
    }
}

/// To be kept.
impl Spawner {
    fn snapshot(&mut self, id: &SandboxId, name: &SnapshotId) -> Step {
        if let Some(kept) = self.sandboxes.snapshots.get(name) {
            return done(Answer::Snapshot(kept.describe(name)));
        }
        if self.is_living(id) {
            return self.hand_over(id);
        }
        let failed = |error: io::Error| backend("cannot read the disk", &error);
        self.sandboxes.finish_sealing(id).map_err(failed)?;
        let about = self.sandboxes.about(id)?;
        let (_, mut checks) = self.sandboxes.store.stack(&about.layers)?;
        let place = self.sandboxes.store.disk(id);
        let looked = match Cold::read(&place).map_err(failed)? {
            Some(cold) => {
                checks.extend(cold.checks(&place));
                let found = Measure { tree: cold.tree, kept: Some(cold.kept) };
                let checked = verify::begin(&checks)
                    .map_err(|error| backend("cannot verify the disk", &error))?;
                match checked {
                    Looking::Done(verdict) => {
                        self.as_left(id, verdict)?;
                        Looking::Done(found)
                    }
                    Looking::Task(task) => {
                        let key = self.await_task(id, &task)?;
                        let then = Then::Seal(found);
                        return Ok(Next::Wait(Stage::Verifying(task, key, checks, then)));
                    }
                }
            }
            None => Measure::begin(&place.upper(), None).map_err(failed)?,
        };
        let change = Change::new(Want::Snapshot(name.clone()), None);
        match looked {
            Looking::Done(found) => self.seal(id, name, &change, found),
            Looking::Task(task) => {
                let key = self.await_task(id, &task)?;
                Ok(Next::Wait(Stage::Measuring(task, key)))
            }
        }
    }

    fn seal(&mut self, id: &SandboxId, name: &SnapshotId, change: &Change, found: Measure) -> Step {
        let about = self.sandboxes.about(id)?.clone();
        if about.layers.len() >= limits::LAYERS_MAX {
            let max = limits::LAYERS_MAX;
            return Err(Error::Backend(format!("its disk stands on {max} layers already")));
        }
        self.sandboxes
            .seal(id, &about, found.tree)
            .map_err(|error| backend("cannot seal the disk", &error))?;
        let layers = self.sandboxes.about(id)?.layers.clone();
        self.kept(id, name, change, layers)
    }

    /// The stack is as it stays: it gets its name, and its life goes on.
    fn kept(
        &mut self,
        id: &SandboxId,
        name: &SnapshotId,
        change: &Change,
        layers: Vec<super::layers::Layer>,
    ) -> Step {
        let template = self.sandboxes.about(id)?.template.clone();
        let kept_layers = layers.clone();
        let kept =
            Kept { sandbox: id.clone(), template: template.clone(), layers, taken_at_ms: now_ms() };
        let told: Snapshot = kept.describe(name);
        self.sandboxes
            .keep(name, kept)
            .map_err(|error| backend("cannot keep the snapshot", &error))?;
        if let Some(lived) = &change.lived {
            let (lowers, _) = self.sandboxes.store.stack(&kept_layers)?;
            let generation = lived.generation.clone();
            let start = Start { began: Began::Resumed, generation, lowers, template };
            // If it can't go on it is cold, and whoever asks for it learns why.
            let _ = self.start(id, &lived.make, start);
        }
        done(Answer::Snapshot(told))
    }
}

/// To be gone.
impl Spawner {
    fn end(&mut self, id: &SandboxId) -> Step {
        if self.is_living(id) {
            self.kill(id);
            return Ok(Next::Wait(Stage::Ending));
        }
        self.delete(id)
    }

    /// Takes a disk away and starts its deletion.
    fn delete(&mut self, id: &SandboxId) -> Step {
        let failed = |error: io::Error| backend("cannot delete the disk", &error);
        let stood =
            self.sandboxes.disks.get(id).is_some_and(|disk| {
                disk.about.as_ref().is_none_or(|about| !about.layers.is_empty())
            });
        let Some(name) = self.sandboxes.discard(id).map_err(failed)? else {
            return done(Answer::Done);
        };
        if stood {
            self.collect();
        }
        let store = self.sandboxes.store.clone();
        let task = Task::start(|| store.delete_from_trash(&name).map(|()| Vec::new()));
        let task = task.map_err(failed)?;
        let key = self.await_task(id, &task)?;
        Ok(Next::Wait(Stage::Deleting(task, key)))
    }
}

/// A bug of ours.
fn astray() -> Error {
    Error::Backend("a change of a sandbox went astray".to_owned())
}

/// The origin is checked when a disk is made, everything else before anything is.
pub(super) fn check(make: &Make) -> Result<(), Error> {
    let Make { spec, read_only } = make;
    if spec.memory_bytes_max < (1 << 20) || spec.pids_max == 0 || spec.cpu_millis_max == 0 {
        return Err(Error::Invalid(
            "a limit of the sandbox is too small to run anything".to_owned(),
        ));
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
    match read_only.iter().find(|path| !plain(path)) {
        Some(path) => {
            Err(Error::Invalid(format!("`{}` is not a plain absolute path", path.display())))
        }
        None => Ok(()),
    }
}
