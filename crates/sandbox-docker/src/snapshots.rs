//! Disks that are kept, as volumes of their own.
//!
//! Owns the copy: while nothing of the sandbox runs, and read again from where it was
//! written, so that what the record says of it is what is there.

use async_trait::async_trait;
use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId, Snapshots};

use crate::backend::{Inner, now_ms};
use crate::copy;
use crate::live::{self, Doing};
use crate::names::{self, Part, Store};
use crate::store::{self, Disk, Found, Kept};

fn snapshot(name: SnapshotId, kept: Kept) -> Snapshot {
    let Kept { sandbox, taken_at_ms, .. } = kept;
    Snapshot { name, sandbox, taken_at_ms, layers: 1 }
}

impl Inner {
    /// Copies a disk that nothing writes to.
    async fn keep(
        &self,
        sandbox: &SandboxId,
        store: &Store,
        disk: &Found<Disk>,
    ) -> Result<Kept, Error> {
        let engine = &self.engine;
        let template = disk.record.template.clone();
        let image = self.config.image(&template)?;
        let from = Store::Disk(sandbox.clone());
        let (reader, making) =
            Box::pin(store::read_and_begin(engine, (&from, &disk.making), store, image)).await?;
        let target = &making.maker.container;
        let copied = async {
            let digest = copy::copy(engine, &reader.container, Some(target)).await?;
            let written = copy::copy(engine, target, None).await?;
            if digest == written { Ok(digest) } else { Err(digest) }.map_err(|digest| {
                Error::Backend(format!("the copy of a disk is {written}, not {digest}"))
            })
        };
        match copied.await {
            Ok(digest) => {
                let sandbox = sandbox.clone();
                let record = Kept { sandbox, template, taken_at_ms: now_ms(), digest };
                let (removed, sealed) = tokio::join!(reader.remove(engine), making.seal(&record));
                removed?;
                Ok(sealed?.0.record)
            }
            Err(error) => {
                reader.remove(engine).await?;
                making.abandon().await?;
                Err(error)
            }
        }
    }
}

#[async_trait]
impl Snapshots for Inner {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        let turn = self.turn(sandbox);
        let _turn = turn.lock().await;
        let store = Store::Snapshot(name.clone());
        if let Some(found) = store::find::<Kept>(&self.engine, &store).await? {
            return Ok(snapshot(name.clone(), found.record));
        }
        let disk = store::find::<Disk>(&self.engine, &Store::Disk(sandbox.clone())).await?;
        let disk = disk.ok_or_else(|| Error::Absent {
            what: "sandbox".to_owned(),
            name: sandbox.to_string(),
        })?;
        let resting = match live::look(&self.engine, sandbox).await? {
            Some(seen) if seen.doing == Doing::Running => Some(self.rest(sandbox, &seen).await?),
            Some(_) | None => None,
        };
        let kept = Box::pin(self.keep(sandbox, &store, &disk)).await;
        if let Some(docked) = resting {
            docked.gate.open().await?;
            docked.remote.thaw().await?;
        }
        Ok(snapshot(name.clone(), kept?))
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        let labels = [(names::KIND, "snapshot"), (names::PART, Part::Record.as_str())];
        let mut all = Vec::new();
        for record in self.engine.volumes(&labels).await? {
            let found = store::found::<Kept>(&self.engine, &record.name, &record.labels)?;
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
