//! The fake's snapshots: trees as they were, by name.

use async_trait::async_trait;
use std::collections::BTreeMap;

use super::tree::Tree;
use super::{Fake, World, absent};
use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId, Snapshots};

/// All that were taken and not removed.
#[derive(Debug, Default)]
pub(super) struct SnapshotStore(BTreeMap<SnapshotId, (Snapshot, Tree)>);

impl SnapshotStore {
    /// What a sandbox made from one begins with.
    pub(super) fn tree(&self, name: &SnapshotId) -> Option<Tree> {
        self.0.get(name).map(|(_, tree)| tree.clone())
    }
}

#[async_trait]
impl Snapshots for Fake {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        let mut world = self.shared.world();
        let taken_at_ms = world.now_ms();
        let World { boxes, snapshots, .. } = &mut *world;
        if let Some((snapshot, _)) = snapshots.0.get(name) {
            return Ok(snapshot.clone());
        }
        let fake = boxes.get(sandbox).ok_or_else(|| absent("sandbox", sandbox.as_str()))?;
        fake.rest()?;
        let (name, sandbox) = (name.clone(), sandbox.clone());
        let snapshot = Snapshot { name: name.clone(), sandbox, taken_at_ms, layers: 1 };
        snapshots.0.insert(name, (snapshot.clone(), fake.tree.clone()));
        Ok(snapshot)
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        let world = self.shared.world();
        Ok(world.snapshots.0.values().map(|(snapshot, _)| snapshot.clone()).collect())
    }

    async fn remove(&self, name: &SnapshotId) -> Result<(), Error> {
        self.shared.world().snapshots.0.remove(name);
        Ok(())
    }
}
