//! Sealing: a disk's own tree becomes a layer, and the disk gets a new tree over it.
//!
//! Owns the order of the steps, so that a spawner that ends between any two leaves
//! something to go on from: what is about to happen is written down before the one
//! rename that does it. Nothing runs over the disk meanwhile.

use std::io;
use std::os::unix::fs::MetadataExt;

use outrigger_sandbox::{Isolation, SandboxId};

use super::about::About;
use super::cold::Cold;
use super::fingerprint::{self, Fingerprint};
use super::layers::{Layer, LayerAbout};
use super::record::Outlasts;
use super::sandboxes::{Sandboxes, make_upper};
use super::store::private;

impl Sandboxes {
    /// Seals the tree of a disk that looks like this.
    pub(super) fn seal(
        &mut self,
        id: &SandboxId,
        about: &About,
        fingerprint: Fingerprint,
    ) -> io::Result<()> {
        let place = self.store.disk(id);
        let layer = Layer::random()?;
        let owner = std::fs::metadata(place.upper())?.uid();
        let first_id = (self.isolation == Isolation::RootRange).then_some(owner);
        let noted = LayerAbout { first_id, fingerprint: Some(fingerprint) };
        self.making.insert(layer.clone());
        let done = self.store.note_layer(&layer, &noted).and_then(|()| {
            let sealing = About { sealing: Some(layer.clone()), ..about.clone() };
            // A file system that keeps the rename below keeps this one before it.
            self.note(id, sealing, Outlasts::Process)
        });
        self.making.remove(&layer);
        done?;
        std::fs::rename(place.upper(), self.store.tree(&layer))?;
        self.finish_sealing(id)
    }

    /// Brings a sealing that was begun to its end, or takes it back if the tree is
    /// still where it was. A disk that is not being sealed is fine.
    pub(super) fn finish_sealing(&mut self, id: &SandboxId) -> io::Result<()> {
        let Some(about) = self.disks.get(id).and_then(|disk| disk.about.clone()) else {
            return Ok(());
        };
        let Some(layer) = about.sealing.clone() else { return Ok(()) };
        let place = self.store.disk(id);
        if !self.store.tree(&layer).exists() {
            return self.note(id, About { sealing: None, ..about }, Outlasts::Power);
        }
        let owner = std::fs::metadata(self.store.tree(&layer))?.uid();
        make_upper(&place, owner)?;
        private(&place.work())?;
        if let Some(cold) = Cold::read(&place)? {
            // From here on the suspended life goes on over an empty tree.
            let tree = fingerprint::take(&place.upper(), 1)?
                .ok_or_else(|| io::Error::other("the new tree of a disk is not empty"))?;
            Cold { tree, ..cold }.write(&place)?;
        }
        let mut layers = vec![layer];
        layers.extend(about.layers.iter().cloned());
        let about = About { layers, sealing: None, ..about };
        if let Some(disk) = self.disks.get_mut(id) {
            disk.about = Some(about);
        }
        self.unsettled.insert(id.clone(), false);
        Ok(())
    }

    /// Writes down that a sealing is over, for which nobody has to wait: until then the
    /// record says that it goes on, and whoever reads that ends it in the same way. To be
    /// done before anything else becomes of the disk.
    pub(super) fn settle(&mut self, id: &SandboxId) -> io::Result<()> {
        if !self.unsettled.contains_key(id) {
            return Ok(());
        }
        if let Some(about) = self.disks.get(id).and_then(|disk| disk.about.clone()) {
            self.note(id, about, Outlasts::Power)?;
        }
        self.unsettled.remove(id);
        Ok(())
    }
}
