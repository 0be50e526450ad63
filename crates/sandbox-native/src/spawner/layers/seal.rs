//! Sealing: a disk's own tree becomes a layer, and the disk gets a new tree over it.
//!
//! Owns the order of the steps, so that a spawner that ends between any two leaves
//! something to go on from: what is about to happen is written down before the one
//! rename that does it. Nothing runs over the disk meanwhile.

use std::io;
use std::os::unix::fs::MetadataExt;

use outrigger_sandbox::{Isolation, SandboxId};

use super::LayerRecord;
use super::layer::Layer;
use crate::spawner::lifecycle::disk_record::DiskRecord;
use crate::spawner::lifecycle::sandboxes::Sandboxes;
use crate::spawner::lifecycle::suspend_record::SuspendRecord;
use crate::spawner::record::Durability;
use crate::spawner::rootfs::make_upper;
use crate::spawner::store::private;
use crate::spawner::tree::fingerprint::{self, Fingerprint};

impl Sandboxes {
    /// Seals the tree of a disk that looks like this.
    pub(crate) fn seal(
        &mut self,
        id: &SandboxId,
        record: &DiskRecord,
        fingerprint: Fingerprint,
    ) -> io::Result<()> {
        let disk_dir = self.store.disk(id);
        let layer = Layer::random()?;
        let owner = std::fs::metadata(disk_dir.upper())?.uid();
        let first_id = (self.isolation == Isolation::RootRange).then_some(owner);
        let noted = LayerRecord { first_id, fingerprint: Some(fingerprint) };
        self.making.insert(layer.clone());
        let done = self.store.note_layer(&layer, &noted).and_then(|()| {
            let sealing = DiskRecord { sealing: Some(layer.clone()), ..record.clone() };
            // A file system that keeps the rename below keeps this one before it.
            self.note(id, sealing, Durability::Process)
        });
        self.making.remove(&layer);
        done?;
        std::fs::rename(disk_dir.upper(), self.store.tree(&layer))?;
        self.finish_sealing(id)
    }

    /// Brings a sealing that was begun to its end, or takes it back if the tree is
    /// still where it was. A disk that is not being sealed is fine.
    pub(crate) fn finish_sealing(&mut self, id: &SandboxId) -> io::Result<()> {
        let Some(record) = self.disks.get(id).and_then(|disk| disk.record.clone()) else {
            return Ok(());
        };
        let Some(layer) = record.sealing.clone() else { return Ok(()) };
        let disk_dir = self.store.disk(id);
        if !self.store.tree(&layer).exists() {
            return self.note(id, DiskRecord { sealing: None, ..record }, Durability::Power);
        }
        let owner = std::fs::metadata(self.store.tree(&layer))?.uid();
        make_upper(&disk_dir, owner)?;
        private(&disk_dir.work())?;
        if let Some(cold) = SuspendRecord::read(&disk_dir)? {
            // From here on the suspended life goes on over an empty tree.
            let tree = fingerprint::take(&disk_dir.upper(), 1)?
                .ok_or_else(|| io::Error::other("the new tree of a disk is not empty"))?;
            SuspendRecord { tree, ..cold }.write(&disk_dir)?;
        }
        let mut layers = vec![layer];
        layers.extend(record.layers.iter().cloned());
        let record = DiskRecord { layers, sealing: None, ..record };
        if let Some(disk) = self.disks.get_mut(id) {
            disk.record = Some(record);
        }
        self.unsettled.insert(id.clone(), false);
        Ok(())
    }

    /// Writes down that a sealing is over, for which nobody has to wait: until then the
    /// record says that it goes on, and whoever reads that ends it in the same way. To be
    /// done before anything else becomes of the disk.
    pub(crate) fn settle(&mut self, id: &SandboxId) -> io::Result<()> {
        if !self.unsettled.contains_key(id) {
            return Ok(());
        }
        if let Some(record) = self.disks.get(id).and_then(|disk| disk.record.clone()) {
            self.note(id, record, Durability::Power)?;
        }
        self.unsettled.remove(id);
        Ok(())
    }
}
