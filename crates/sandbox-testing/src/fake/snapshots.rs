//! The fake's snapshots: trees as they were, by name.

use async_trait::async_trait;

use super::Fake;
use super::world::{World, absent};
use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId, Snapshots};

#[async_trait]
impl Snapshots for Fake {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        let mut world = self.shared.world();
        let taken_at_ms = world.now_ms();
        let World { boxes, snapshots, .. } = &mut *world;
        if let Some((snapshot, _)) = snapshots.get(name) {
            return Ok(snapshot.clone());
        }
        let fake = boxes.get(sandbox).ok_or_else(|| absent("sandbox", sandbox.as_str()))?;
        fake.rest()?;
        let (name, sandbox) = (name.clone(), sandbox.clone());
        let snapshot = Snapshot { name: name.clone(), sandbox, taken_at_ms, layers: 1 };
        snapshots.insert(name, (snapshot.clone(), fake.tree.clone()));
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
