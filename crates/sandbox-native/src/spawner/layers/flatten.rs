//! Making one layer of many.
//!
//! Owns the merge: a process mounts the stack as its sandbox would see it and copies
//! what it sees, so that nothing but the kernel decides what a stack means. Until its
//! result is written down nothing has changed.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use outrigger_sandbox::{Error, Isolation, SandboxId};

use super::LayerRecord;
use super::layer::Layer;
use super::origin::base_of;
use crate::image::request::HostPaths;
use crate::limits;
use crate::spawner::event_loop::task::Task;
use crate::spawner::lifecycle::disk_record::DiskRecord;
use crate::spawner::lifecycle::sandboxes::Sandboxes;
use crate::spawner::record::Durability;
use crate::spawner::rootfs::{PreparedRoot, RootPlan, make_upper};
use crate::spawner::store::{DiskDir, private};
use crate::spawner::tree::copy;
use crate::spawner::tree::fingerprint::{self, Fingerprint};
use crate::spawner::tree::remove;

/// The id of the user of commands, in a range.
const AGENT: u32 = 1000;

impl Sandboxes {
    /// Begins to make one layer of all that a resting disk stands on.
    pub(crate) fn flatten(&mut self, id: &SandboxId) -> io::Result<(Task, Layer)> {
        let record = self.record(id).map_err(io::Error::other)?.clone();
        let (lowers, _) = self.store.stack(&record.layers).map_err(io::Error::other)?;
        let layer = Layer::random()?;
        // A disk of its own, so that the sandbox's is not touched.
        let scratch = DiskDir::at(self.store.layer(&layer));
        let owner = fs::metadata(self.store.disk(id).upper())?.uid();
        private(scratch.path())?;
        make_upper(&scratch, owner)?;
        let staging = self.store.staging();
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => PreparedRoot::new(&staging, &HostPaths::default(), Vec::new())?,
        };
        let tree = self.store.tree(&layer);
        let ranges = matches!(self.isolation, Isolation::RootRange | Isolation::RootlessRange);
        let plan = RootPlan {
            elsewhere: Vec::new(),
            staging,
            base: base_of(&record.template),
            disk_dir: scratch.clone(),
            lowers,
            owner,
            agent: if ranges { owner + AGENT } else { owner },
            tty_group: ranges.then_some(owner),
            // No process of a sandbox ever has it.
            shm_bytes: limits::ROOT_BYTES_MAX,
            served: Vec::new(),
        };
        let maps = plan.maps(self.prepared.insert(prepared))?;
        let work = |merged: std::path::PathBuf| {
            copy::copy(&merged, &tree)?;
            let dir = fs::File::open(scratch.path())?;
            remove::remove(dir.as_fd(), c"upper")?;
            remove::remove(dir.as_fd(), c"work")?;
            let found = fingerprint::take(&tree, u64::MAX)?
                .ok_or_else(|| io::Error::other("the new layer is too large"))?;
            Ok(found.as_bytes().to_vec())
        };
        let task = Task::start_from(|| plan.merged(&maps), work)?;
        self.making.insert(layer.clone());
        Ok((task, layer))
    }

    /// What a disk stands on is one layer from now on.
    pub(crate) fn flattened(
        &mut self,
        id: &SandboxId,
        layer: &Layer,
        result: Result<Vec<u8>, Error>,
    ) -> io::Result<()> {
        let done = result.map_err(io::Error::other).and_then(|result| {
            let fingerprint = Fingerprint::from_bytes(&result)
                .ok_or_else(|| io::Error::other("a process of the spawner told nonsense"))?;
            let owner = fs::metadata(self.store.disk(id).upper())?.uid();
            let first_id = (self.isolation == Isolation::RootRange).then_some(owner);
            let noted = LayerRecord { first_id, fingerprint: Some(fingerprint) };
            self.store.note_layer(layer, &noted)?;
            let record = self.record(id).map_err(io::Error::other)?.clone();
            let record = DiskRecord { layers: vec![layer.clone()], ..record };
            self.note(id, record, Durability::Power)
        });
        self.making.remove(layer);
        done
    }
}
