//! What all clones of a fake backend share: its sandboxes, its snapshots and its clock.

use outrigger_sandbox::{
    Capabilities, DiskOrigin, Error, ExecId, Generation, SandboxId, Snapshot, SnapshotId,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::sandbox::FakeSandbox;
use super::tree::Tree;

/// The one template that the fake has.
const TEMPLATE: &str = "host-tools";

/// Something that began to run: a command, or a changing file operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecStart {
    /// In which sandbox.
    pub sandbox: SandboxId,
    /// In which life of it.
    pub generation: Generation,
    /// Under which id.
    pub exec: ExecId,
}

#[derive(Debug)]
pub(super) struct FakeState {
    pub(super) capabilities: Capabilities,
    world: Mutex<World>,
    /// Something was killed, lost or destroyed: whoever waits looks again.
    pub(super) changed: Notify,
}

#[derive(Debug)]
pub(super) struct World {
    began: Instant,
    pub(super) boxes: BTreeMap<SandboxId, FakeSandbox>,
    pub(super) snapshots: BTreeMap<SnapshotId, (Snapshot, Tree)>,
    lives: u64,
    /// When the last disk was made: no two are made at the same time.
    pub(super) made_at_ms: u64,
    pub(super) starts: Vec<ExecStart>,
}

impl FakeState {
    /// A world without a sandbox, which begins now.
    pub(super) fn new(capabilities: Capabilities) -> Self {
        let world = World {
            began: Instant::now(),
            boxes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            lives: 0,
            made_at_ms: 0,
            starts: Vec::new(),
        };
        Self { capabilities, world: Mutex::new(world), changed: Notify::new() }
    }

    /// The world, with everything done that is due.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        world.boxes.retain(|_, fake| fake.settle(now));
        world
    }
}

impl World {
    /// Since it began; the fake knows no other time. Never before a disk was made.
    pub(super) fn now_ms(&self) -> u64 {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        elapsed.max(self.made_at_ms)
    }

    /// Where the disk of a new sandbox begins.
    pub(super) fn tree(&self, origin: &DiskOrigin) -> Result<Tree, Error> {
        match origin {
            DiskOrigin::Template(name) if name == TEMPLATE => Ok(Tree::new()),
            DiskOrigin::Template(name) => Err(absent("template", name)),
            DiskOrigin::Snapshot(name) => self
                .snapshots
                .get(name)
                .map(|(_, tree)| tree.clone())
                .ok_or_else(|| absent("snapshot", name.as_str())),
        }
    }

    pub(super) fn next_generation(&mut self) -> Generation {
        self.lives += 1;
        let name = format!("fake-{}", self.lives);
        Generation::new(name).expect("a word and a number are a valid name")
    }
}

pub(super) fn absent(what: &str, name: &str) -> Error {
    Error::Absent { what: what.to_owned(), name: name.to_owned() }
}
