//! Snapshots: names for stacks of layers.
//!
//! Owns their records.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId};
use serde::{Deserialize, Serialize};

use super::layer::Layer;
use crate::spawner::error::backend;
use crate::spawner::record::{self, Durability};
use crate::spawner::store::{Store, private};

/// What is recorded of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotRecord {
    /// The sandbox that it was taken of.
    pub(crate) sandbox: SandboxId,
    /// The template at the bottom.
    pub(crate) template: String,
    /// Newest first, those of the template included.
    pub(crate) layers: Vec<Layer>,
    /// In milliseconds since 1970.
    pub(crate) taken_at_ms: u64,
}

impl SnapshotRecord {
    pub(crate) fn describe(&self, name: &SnapshotId) -> Snapshot {
        Snapshot {
            name: name.clone(),
            sandbox: self.sandbox.clone(),
            taken_at_ms: self.taken_at_ms,
            layers: u32::try_from(self.layers.len()).unwrap_or(u32::MAX),
        }
    }
}

/// All records that were read.
#[derive(Debug, Default)]
pub(crate) struct SnapshotIndex {
    pub(crate) all: BTreeMap<SnapshotId, SnapshotRecord>,
    /// There is one that can't be read. It stays where it is, and so does every layer.
    pub(crate) damaged: bool,
}

/// Reads all records.
pub(crate) fn load(store: &Store) -> io::Result<SnapshotIndex> {
    let mut loaded = SnapshotIndex::default();
    let entries = match fs::read_dir(store.snapshots()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(loaded),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        let Some(name) = name.to_str().and_then(|name| SnapshotId::new(name).ok()) else {
            continue;
        };
        match record::read::<SnapshotRecord>(&store.snapshot(&name)) {
            Ok(Some(kept)) => drop(loaded.all.insert(name, kept)),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => loaded.damaged = true,
            Err(error) => return Err(error),
        }
    }
    Ok(loaded)
}

impl SnapshotIndex {
    /// Gives a stack a name, for good.
    pub(crate) fn keep(
        &mut self,
        store: &Store,
        name: &SnapshotId,
        kept: SnapshotRecord,
    ) -> io::Result<()> {
        private(&store.snapshots())?;
        record::write(&store.snapshot(name), &kept, Durability::Answer)?;
        self.all.insert(name.clone(), kept);
        Ok(())
    }

    /// Takes a name back. Says whether it named anything.
    pub(crate) fn forget(&mut self, store: &Store, name: &SnapshotId) -> Result<bool, Error> {
        record::remove(&store.snapshot(name))
            .map_err(|error| backend("cannot remove the snapshot", &error))?;
        Ok(self.all.remove(name).is_some())
    }
}
