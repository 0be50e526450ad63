//! Snapshots: names for stacks of layers.
//!
//! Owns their records, and what becomes of layers that nothing names any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId};
use serde::{Deserialize, Serialize};

use super::Layer;
use super::template;
use crate::spawner::backend;
use crate::spawner::lifecycle::sandboxes::Sandboxes;
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

impl Sandboxes {
    /// Gives a stack a name, for good.
    pub(crate) fn keep(&mut self, name: &SnapshotId, kept: SnapshotRecord) -> io::Result<()> {
        private(&self.store.snapshots())?;
        record::write(&self.store.snapshot(name), &kept, Durability::Answer)?;
        self.snapshots.insert(name.clone(), kept);
        Ok(())
    }

    /// Takes a name back. Says whether it named anything.
    pub(crate) fn forget_snapshot(&mut self, name: &SnapshotId) -> Result<bool, Error> {
        record::remove(&self.store.snapshot(name))
            .map_err(|error| backend("cannot remove the snapshot", &error))?;
        Ok(self.snapshots.remove(name).is_some())
    }

    /// Moves every layer that nothing stands on to the trash. Says whether there was one.
    /// `held` are those that are used in other ways.
    pub(crate) fn discard_unused_layers(&self) -> io::Result<bool> {
        // One whose record is damaged may name any.
        if self.damaged_snapshot {
            return Ok(false);
        }
        let Ok(image) = template::layers(&self.store) else { return Ok(false) };
        let mut used: BTreeSet<&Layer> = image.iter().collect();
        for disk in self.disks.values() {
            // One whose record is damaged may stand on any.
            let Some(record) = &disk.record else { return Ok(false) };
            used.extend(record.layers.iter().chain(&record.sealing));
        }
        used.extend(self.snapshots.values().flat_map(|kept| &kept.layers));
        used.extend(&self.making);
        self.store.discard_layers(&used)
    }
}
