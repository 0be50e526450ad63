//! A backend in memory, for simulations and unit tests. It isolates nothing and
//! says so.
//!
//! A [`Fake`] is a cheap clone of a shared world: whoever drives it may be thrown
//! away at any moment, and another finds the sandboxes, their running commands
//! and their kept output again. It spawns no task: what is due is done when
//! somebody looks, by tokio's clock, so that it follows a paused one and is
//! deterministic. It must never touch the machine that it runs on.
//!
//! Its shell knows `true`, `false`, `fail`, `exit N`, `echo [-n] TEXT`, `cat [FILE..]`,
//! `head -c N FILE`, `write FILE TEXT`, `append FILE TEXT`, `sleep SECONDS` (or
//! `sleep 250ms`), `pwd`, `printenv NAME`, `kill -N $$`; joined by `;`, a line
//! break, `&&` or `||`; with quotes, `$NAME`, `> FILE`, `>> FILE` and `>&2`.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::{
    Backend, Began, Capabilities, DiskLimit, Error, ExecId, Execute, Executed, FileOp, FileReply,
    Generation, Input, Isolation, Layer, Listed, NetworkMode, Origin, OutputSink, Sandbox,
    SandboxId, Snapshot, SnapshotId, Snapshots, Spec, State, Suspend,
};

mod files;
mod life;
mod run;
mod script;
mod tree;
mod words;

use life::Life;
use tree::Tree;

/// What becomes of a sandbox's files when it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// The next life finds them.
    Kept,
    /// The next life begins with an empty workspace.
    Dropped,
}

/// Something that began to run: a command, or a changing file operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    /// In which sandbox.
    pub sandbox: SandboxId,
    /// In which life of it.
    pub generation: Generation,
    /// Under which id.
    pub exec: ExecId,
}

/// The fake backend. Clones share one world.
#[derive(Debug, Clone)]
pub struct Fake {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    capabilities: Capabilities,
    world: Mutex<World>,
    /// Something was killed, lost or destroyed: whoever waits looks again.
    changed: Notify,
}

#[derive(Debug)]
struct World {
    began: Instant,
    boxes: BTreeMap<SandboxId, Place>,
    snapshots: BTreeMap<SnapshotId, (Snapshot, Tree)>,
    lives: u64,
    starts: Vec<Start>,
}

/// A sandbox that was made and not destroyed.
#[derive(Debug)]
struct Place {
    tree: Tree,
    life: Option<Life>,
    suspended: Option<Suspend>,
    origin: Origin,
    made_at_ms: u64,
    used_at_ms: u64,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

impl Fake {
    /// An empty world.
    #[must_use]
    pub fn new() -> Self {
        let layer = Layer {
            name: "isolation".to_owned(),
            active: false,
            detail: "everything is in memory; for tests only".to_owned(),
        };
        let capabilities = Capabilities {
            backend: "fake".to_owned(),
            isolation: Isolation::Fake,
            network: vec![NetworkMode::None],
            resource_limits: false,
            reattach: true,
            suspend: vec![Suspend::Frozen, Suspend::Cold],
            snapshots: true,
            disk_limit: DiskLimit::None,
            terminal: false,
            layers: vec![layer],
        };
        let world = World {
            began: Instant::now(),
            boxes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            lives: 0,
            starts: Vec::new(),
        };
        let shared = Shared { capabilities, world: Mutex::new(world), changed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// A specification that the fake accepts: one that asks for no isolation.
    #[must_use]
    pub fn spec() -> Spec {
        Spec { isolation_min: Isolation::Fake, ..Spec::default() }
    }

    /// Kills a sandbox as a lost host would: running commands are gone, handles
    /// answer [`Error::Lost`], and the next `create` makes another generation.
    /// One that does not live is fine.
    pub fn lose(&self, id: &SandboxId, disk: Disk) {
        let mut world = self.shared.world();
        if let Some(place) = world.boxes.get_mut(id) {
            place.catch_up();
            place.life = None;
            place.suspended = None;
            if disk == Disk::Dropped {
                place.tree = Tree::new();
            }
        }
        drop(world);
        self.shared.changed.notify_waiters();
    }

    /// Everything that began to run, in order. An id that is here twice in one
    /// generation was run twice.
    #[must_use]
    pub fn starts(&self) -> Vec<Start> {
        self.shared.world().starts.clone()
    }

    /// The contents of a file, whether the sandbox lives or not, with everything
    /// done that is due. Nothing if it is not there.
    #[must_use]
    pub fn peek(&self, id: &SandboxId, path: &str) -> Option<Vec<u8>> {
        let mut world = self.shared.world();
        let place = world.boxes.get_mut(id)?;
        place.catch_up();
        place.tree.file(path).ok().map(<[u8]>::to_vec)
    }

    fn handle(
        &self,
        id: &SandboxId,
        generation: &Generation,
        began: Began,
    ) -> Arc<dyn Sandbox> {
        let (id, generation) = (id.clone(), generation.clone());
        Arc::new(Handle { shared: self.shared.clone(), id, generation, began })
    }
}

impl Place {
    fn catch_up(&mut self) {
        if let Some(life) = &mut self.life {
            life.advance(&mut self.tree, Instant::now());
        }
    }

    /// Demands that no command runs.
    fn rest(&mut self) -> Result<(), Error> {
        self.catch_up();
        match self.life.as_ref().map_or(0, Life::running) {
            0 => Ok(()),
            running => Err(Error::Busy { reason: format!("{running} commands run") }),
        }
    }

    fn listed(&self, id: &SandboxId) -> Listed {
        let state = match (&self.life, self.suspended) {
            (None, _) => State::Dead,
            (Some(_), None) => State::Running,
            (Some(_), Some(Suspend::Frozen)) => State::Frozen,
            (Some(_), Some(Suspend::Cold)) => State::Cold,
        };
        Listed {
            id: id.clone(),
            state,
            generation: self.life.as_ref().map(|life| life.generation.clone()),
            origin: self.origin.clone(),
            made_at_ms: self.made_at_ms,
            used_at_ms: self.used_at_ms,
        }
    }
}

impl World {
    /// Since it began; the fake knows no other time.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[async_trait]
impl Backend for Fake {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>, Error> {
        if spec.isolation_min > Isolation::Fake {
            return Err(Error::Unavailable {
                reason: "the fake backend isolates nothing".to_owned(),
                advice: "ask for no isolation in a test, or use another backend".to_owned(),
            });
        }
        let mut world = self.shared.world();
        let now_ms = world.now_ms();
        let World { boxes, lives, snapshots, .. } = &mut *world;
        let mut began = if boxes.contains_key(id) { Began::Restarted } else { Began::Made };
        if began == Began::Made {
            let tree = match &spec.origin {
                Origin::Template(_) => Tree::new(),
                Origin::Snapshot(name) => match snapshots.get(name) {
                    Some((_, tree)) => tree.clone(),
                    None => return Err(absent("snapshot", name.as_str())),
                },
            };
            let origin = spec.origin.clone();
            let (made_at_ms, used_at_ms) = (now_ms, now_ms);
            let place =
                Place { tree, life: None, suspended: None, origin, made_at_ms, used_at_ms };
            boxes.insert(id.clone(), place);
        }
        let place = boxes.get_mut(id).expect("it was there or was just put there");
        place.used_at_ms = now_ms;
        match (&place.life, place.suspended.take()) {
            (Some(_), Some(Suspend::Cold)) => began = Began::Resumed,
            (Some(_), Some(Suspend::Frozen) | None) => began = Began::Attached,
            (None, _) => {}
        }
        let life = place.life.get_or_insert_with(|| {
            *lives += 1;
            let name = format!("fake-{lives}");
            Life::new(Generation::new(name).expect("a word and a number are a valid name"))
        });
        Ok(self.handle(id, &life.generation, began))
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let world = self.shared.world();
        let place = world.boxes.get(id).filter(|place| place.suspended != Some(Suspend::Cold));
        let life = place.and_then(|place| place.life.as_ref());
        Ok(life.map(|life| self.handle(id, &life.generation, Began::Attached)))
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        let world = self.shared.world();
        Ok(world.boxes.iter().map(|(id, place)| place.listed(id)).collect())
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        let mut world = self.shared.world();
        let now_ms = world.now_ms();
        let place = world.boxes.get_mut(id).ok_or_else(|| absent("sandbox", id.as_str()))?;
        if place.life.is_none() {
            return Err(absent("living sandbox", id.as_str()));
        }
        place.rest()?;
        place.suspended = place.suspended.max(Some(how));
        place.used_at_ms = now_ms;
        Ok(())
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        Ok(self)
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        self.shared.world().boxes.remove(id);
        self.shared.changed.notify_waiters();
        Ok(())
    }
}

#[async_trait]
impl Snapshots for Fake {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        let mut world = self.shared.world();
        let taken_at_ms = world.now_ms();
        if let Some((snapshot, _)) = world.snapshots.get(name) {
            return Ok(snapshot.clone());
        }
        let place = world.boxes.get_mut(sandbox);
        let place = place.ok_or_else(|| absent("sandbox", sandbox.as_str()))?;
        place.rest()?;
        let tree = place.tree.clone();
        let (name, sandbox) = (name.clone(), sandbox.clone());
        let snapshot = Snapshot { name: name.clone(), sandbox, taken_at_ms, layers: 1 };
        world.snapshots.insert(name, (snapshot.clone(), tree));
        Ok(snapshot)
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        let world = self.shared.world();
        Ok(world.snapshots.values().map(|(snapshot, _)| snapshot.clone()).collect())
    }

    async fn remove(&self, name: &SnapshotId) -> Result<(), Error> {
        self.shared.world().snapshots.remove(name);
        Ok(())
    }
}

fn absent(what: &str, name: &str) -> Error {
    Error::Absent { what: what.to_owned(), name: name.to_owned() }
}

/// A sandbox as its user holds it: a name and a life, looked up on each call.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    id: SandboxId,
    generation: Generation,
    began: Began,
}

impl Handle {
    /// Acts on the life that this handle stands for, with everything done that is due.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Life, &mut Tree, &mut Vec<Start>) -> T,
    ) -> Result<T, Error> {
        let mut world = self.shared.world();
        let World { boxes, starts, .. } = &mut *world;
        let lost = || Error::Lost { reason: "the fake sandbox is gone".to_owned() };
        let place = boxes.get_mut(&self.id).ok_or_else(lost)?;
        if place.suspended == Some(Suspend::Cold) {
            return Err(lost());
        }
        place.suspended = None;
        let life = place.life.as_mut().filter(|life| life.generation == self.generation);
        let life = life.ok_or_else(lost)?;
        life.advance(&mut place.tree, Instant::now());
        Ok(act(life, &mut place.tree, starts))
    }

    fn start(&self, exec: &ExecId) -> Start {
        let (sandbox, generation) = (self.id.clone(), self.generation.clone());
        Start { sandbox, generation, exec: exec.clone() }
    }

    /// Gives a command's new output to the sink; its outcome, or when it goes on.
    fn follow(
        &self,
        id: &ExecId,
        given: &mut usize,
        sink: &dyn OutputSink,
    ) -> Result<Result<Executed, Instant>, Error> {
        self.with(|life, _, _| {
            let run = match life.watch(id) {
                Ok(run) => run,
                Err(outcome) => return outcome.map(Ok),
            };
            for piece in run.pieces(*given) {
                sink.output(run::shown(piece));
                *given += 1;
            }
            match (run.outcome(), run.due()) {
                (Some(executed), _) => Ok(Ok(executed.clone())),
                (None, due) => Ok(Err(due.unwrap_or_else(Instant::now))),
            }
        })?
    }
}

#[async_trait]
impl Sandbox for Handle {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn generation(&self) -> &Generation {
        &self.generation
    }

    fn began(&self) -> Began {
        self.began
    }

    fn is_alive(&self) -> bool {
        let world = self.shared.world();
        let place = world.boxes.get(&self.id);
        place.is_some_and(|place| {
            place.suspended != Some(Suspend::Cold)
                && place.life.as_ref().is_some_and(|life| life.generation == self.generation)
        })
    }

    async fn input(&self, _: &ExecId, _: Input) -> Result<(), Error> {
        Err(Error::Unsupported {
            what: "a terminal".to_owned(),
            reason: "the fake backend runs no real programs".to_owned(),
        })
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<Executed, Error> {
        self.with(|life, tree, starts| {
            let now = Instant::now();
            if life.start(&request, tree, now)? {
                starts.push(self.start(&request.id));
                life.advance(tree, now);
            }
            Ok::<_, Error>(())
        })??;
        let mut given = 0;
        loop {
            let changed = self.shared.changed.notified();
            match self.follow(&request.id, &mut given, sink)? {
                Ok(executed) => return Ok(executed),
                Err(due) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(due) => {}
                },
            }
        }
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.with(|life, tree, _| life.kill(id, tree, Instant::now()))?;
        self.shared.changed.notify_waiters();
        Ok(())
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        self.with(|life, tree, starts| {
            let id = op.id().cloned();
            let (reply, performed) = life.files(op, tree);
            if let (Some(id), true) = (id, performed) {
                starts.push(self.start(&id));
            }
            reply
        })?
    }
}
