//! Disks that are kept, as volumes of their own.
//!
//! Owns the copy: while nothing of the sandbox runs, and read again from where it was
//! written, so that what the record says of it is what is there.

use std::sync::Arc;

use async_trait::async_trait;
use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId, Snapshots};

use crate::clock::now_ms;
use crate::context::{self, DockerContext};
use crate::copy;
use crate::engine::Engine;
use crate::live::{self, ContainerState};
use crate::names::{self, Part, Store};
use crate::sandbox::DockerSandbox;
use crate::store::{self, Disk, SnapshotLabel};

fn snapshot(name: SnapshotId, kept: SnapshotLabel) -> Snapshot {
    let SnapshotLabel { sandbox, taken_at_ms, .. } = kept;
    Snapshot { name, sandbox, taken_at_ms, layers: 1 }
}

impl DockerContext {
    /// Sees to it that nothing of a sandbox runs, unless a command does, and gives what
    /// is to go on afterwards.
    async fn quieten(&self, sandbox: &SandboxId) -> Result<Option<Arc<DockerSandbox>>, Error> {
        match live::look(&self.engine, sandbox).await? {
            Some(seen) if seen.doing == ContainerState::Running => {
                self.rest(sandbox, &seen).await.map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }
}

/// Copies a disk, which is held by its reader, while nothing writes to it. Gives the
/// digest of it.
async fn copy_held(
    engine: &Engine,
    sandbox: &SandboxId,
    reader: &str,
    (target, store): (&str, &Store),
) -> Result<String, Error> {
    let source = Store::Disk(sandbox.clone());
    let digest = copy::copy(engine, (reader, &source), Some((target, store))).await?;
    let written = copy::copy(engine, (target, store), None).await?;
    if digest != written {
        let what = format!("the copy of a disk is {written}, not {digest}");
        return Err(Error::Backend(what));
    }
    let seen = live::look(engine, sandbox).await?;
    if seen.is_some_and(|seen| seen.doing == ContainerState::Running) {
        // It was not held yet when somebody let it go on, which only shows now.
        return Err(Error::Busy {
            reason: "it was let go on while its disk was copied".to_owned(),
        });
    }
    Ok(digest)
}

#[async_trait]
impl Snapshots for DockerContext {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        let turn = self.turns.of(sandbox);
        let _turn = turn.lock().await;
        let engine = &self.engine;
        let store = Store::Snapshot(name.clone());
        if let Some(found) = store::find::<SnapshotLabel>(engine, &store).await? {
            return Ok(snapshot(name.clone(), found.record));
        }
        let from = Store::Disk(sandbox.clone());
        let disk = store::find::<Disk>(engine, &from).await?;
        let disk = disk.ok_or_else(|| context::absent("sandbox", sandbox))?;
        let template = disk.record.template;
        let image = self.config.image(&template)?;
        // From here on the disk is held, so that what rests goes on resting.
        let (reader, making) =
            Box::pin(store::read_and_begin(engine, (&from, &disk.making), &store, image)).await?;
        let resting = self.quieten(sandbox).await;
        let copied = match &resting {
            Ok(_) => {
                let target = (&*making.maker.container, &store);
                copy_held(engine, sandbox, &reader.container, target).await
            }
            Err(error) => Err(error.clone()),
        };
        let kept = match copied {
            Ok(digest) => {
                let sandbox = sandbox.clone();
                let record = SnapshotLabel { sandbox, template, taken_at_ms: now_ms(), digest };
                let (removed, sealed) = tokio::join!(reader.remove(engine), making.seal(&record));
                removed.and(sealed).map(|(found, _)| found.record)
            }
            Err(error) => {
                let (removed, abandoned) = tokio::join!(reader.remove(engine), making.abandon());
                removed.and(abandoned).and(Err(error))
            }
        };
        if let Ok(Some(docked)) = resting {
            docked.gate.open().await?;
            docked.remote.thaw().await?;
        }
        Ok(snapshot(name.clone(), kept?))
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        let labels = [(names::KIND, "snapshot"), (names::PART, Part::Record.as_str())];
        let mut all = Vec::new();
        for record in self.engine.volumes(&labels).await? {
            let found = store::found::<SnapshotLabel>(&self.engine, &record.name, &record.labels)?;
            let name = record.labels.get(names::ID).cloned().unwrap_or_default();
            if let Ok(name) = SnapshotId::new(name) {
                all.push(snapshot(name, found.record));
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    async fn remove(&self, name: &SnapshotId) -> Result<(), Error> {
        store::remove(&self.engine, &Store::Snapshot(name.clone())).await
    }
}
