//! A backend in memory, for simulations and unit tests. It isolates nothing and
//! says so.
//!
//! A [`Fake`] is a cheap clone of a shared world: whoever drives it may be thrown
//! away at any moment, and another finds the sandboxes, their running commands
//! and their kept output again. It spawns no task: what is due, the end of an idle
//! time or an age included, is done when somebody looks, by tokio's clock, so that
//! it follows a paused one and is deterministic. It must never touch the machine
//! that it runs on.
//!
//! Its shell knows `true`, `false`, `fail`, `exit N`, `echo [-n] TEXT`, `cat [FILE..]`,
//! `head -c N FILE`, `write FILE TEXT`, `append FILE TEXT`, `sleep SECONDS` (or
//! `sleep 250ms`), `pwd`, `printenv NAME`, `kill -N $$`; joined by `;`, a line
//! break, `&&` or `||`; with quotes, `$NAME`, `> FILE`, `>> FILE` and `>&2`.

use async_trait::async_trait;
use outrigger_sandbox::{
    Backend, Capabilities, CreateOutcome, CreateSpec, DiskLimit, Error, Isolation, Layer,
    ListedSandbox, NetworkMode, Sandbox, SandboxId, Snapshots, Suspend,
};
use std::sync::Arc;
use tokio::time::Instant;

mod files;
mod handle;
mod life;
mod run;
mod sandbox;
mod script;
mod snapshots;
mod tree;
mod words;
mod world;

use handle::Handle;
use sandbox::FakeSandbox;
use world::{FakeState, absent};

pub use world::ExecStart;

/// What becomes of a sandbox's files when it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// The next life finds them.
    Kept,
    /// It is gone, and the next life begins from its origin.
    Dropped,
}

/// The fake backend. Clones share one world.
#[derive(Debug, Clone)]
pub struct Fake {
    shared: Arc<FakeState>,
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

fn capabilities() -> Capabilities {
    let layer = Layer {
        name: "isolation".to_owned(),
        active: false,
        detail: "everything is in memory; for tests only".to_owned(),
    };
    Capabilities {
        backend: "fake".to_owned(),
        isolation: Isolation::Fake,
        network: vec![NetworkMode::None],
        resource_limits: false,
        reattach: true,
        suspend: vec![Suspend::Frozen, Suspend::Cold],
        snapshots: true,
        disk_limit: DiskLimit::None,
        live_mounts: false,
        terminal: false,
        layers: vec![layer],
    }
}

impl Fake {
    /// An empty world.
    #[must_use]
    pub fn new() -> Self {
        Self { shared: Arc::new(FakeState::new(capabilities())) }
    }

    /// A specification that the fake accepts: one that asks for no isolation.
    #[must_use]
    pub fn spec() -> CreateSpec {
        CreateSpec { isolation_min: Isolation::Fake, ..CreateSpec::default() }
    }

    /// Kills a sandbox as a lost host would: running commands are gone, handles
    /// answer [`Error::Lost`], and the next `create` makes another generation.
    /// One that does not live is fine.
    pub fn lose(&self, id: &SandboxId, disk: Disk) {
        let mut world = self.shared.world();
        match (disk, world.boxes.get_mut(id)) {
            (Disk::Dropped, _) => drop(world.boxes.remove(id)),
            (Disk::Kept, Some(fake)) => fake.die(),
            (Disk::Kept, None) => {}
        }
        drop(world);
        self.shared.changed.notify_waiters();
    }

    /// Everything that began to run, in order. An id that is here twice in one
    /// generation was run twice.
    #[must_use]
    pub fn starts(&self) -> Vec<ExecStart> {
        self.shared.world().starts.clone()
    }

    /// The contents of a file, whether the sandbox lives or not, with everything
    /// done that is due. Nothing if it is not there.
    #[must_use]
    pub fn peek(&self, id: &SandboxId, path: &str) -> Option<Vec<u8>> {
        let world = self.shared.world();
        let fake = world.boxes.get(id)?;
        fake.tree.file(path).ok().map(<[u8]>::to_vec)
    }
}

#[async_trait]
impl Backend for Fake {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error> {
        spec.check()?;
        if spec.isolation_min > Isolation::Fake {
            return Err(Error::Unavailable {
                reason: "the fake backend isolates nothing".to_owned(),
                advice: "ask for no isolation in a test, or use another backend".to_owned(),
            });
        }
        let mut world = self.shared.world();
        let now = Instant::now();
        let mut made = CreateOutcome::Restarted;
        if !world.boxes.contains_key(id) {
            let tree = world.tree(&spec.origin)?;
            world.made_at_ms = world.now_ms().max(world.made_at_ms + 1);
            let fake = FakeSandbox::new(tree, spec, now, world.made_at_ms);
            world.boxes.insert(id.clone(), fake);
            made = CreateOutcome::Made;
        }
        let now_ms = world.now_ms();
        let lives = world.boxes.get(id).is_some_and(FakeSandbox::has_life);
        let next = (!lives).then(|| world.next_generation());
        let fake = world.boxes.get_mut(id).expect("it was there or was just put there");
        fake.touch(now, now_ms);
        let began = fake.wake(next).unwrap_or(made);
        let handle = Handle::new(&self.shared, id, fake, began);
        Ok(Arc::new(handle.expect("it was just woken")))
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let world = self.shared.world();
        let fake = world.boxes.get(id);
        let handle =
            fake.and_then(|fake| Handle::new(&self.shared, id, fake, CreateOutcome::Attached));
        Ok(handle.map(|handle| Arc::new(handle) as Arc<dyn Sandbox>))
    }

    async fn list(&self) -> Result<Vec<ListedSandbox>, Error> {
        let world = self.shared.world();
        Ok(world.boxes.iter().map(|(id, fake)| fake.listed(id)).collect())
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        self.shared.world().boxes.remove(id);
        self.shared.changed.notify_waiters();
        Ok(())
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        let mut world = self.shared.world();
        let (now, now_ms) = (Instant::now(), world.now_ms());
        let fake = world.boxes.get_mut(id).filter(|fake| fake.has_life());
        let fake = fake.ok_or_else(|| absent("living sandbox", id.as_str()))?;
        fake.rest()?;
        fake.touch(now, now_ms);
        fake.suspend(how);
        Ok(())
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        Ok(self)
    }
}
