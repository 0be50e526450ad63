//! Layers: sealed trees that others stand on.
//!
//! Owns their names, what is recorded about each, and which of them nothing stands
//! on any more. A layer is never changed once something names it.

pub(crate) mod entries;
mod flatten;
pub(crate) mod images;
pub(crate) mod layer;
pub(crate) mod origin;
mod seal;
pub(crate) mod snapshots;
pub(crate) mod template;
mod unpack;
pub(crate) mod verify;

use std::collections::BTreeSet;
use std::fs;
use std::io;

use outrigger_sandbox::Error;
use serde::{Deserialize, Serialize};

use self::layer::Layer;
use self::verify::Check;
use super::error::backend;
use super::record::{self, Durability};
use super::rootfs::LowerDir;
use super::store::{Store, private};
use super::tree::fingerprint::Fingerprint;

/// What is recorded about a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerRecord {
    /// The id that owns in it what belongs to id 0 inside. `None`: all is the
    /// spawner's own.
    pub(crate) first_id: Option<u32>,
    /// Of its tree, taken when it was sealed. `None` for a layer of an image, whose
    /// name is the digest of what it was unpacked from.
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl Store {
    /// Makes a layer's directory and notes what is about to be in it.
    pub(crate) fn note_layer(&self, layer: &Layer, record: &LayerRecord) -> io::Result<()> {
        let dir = self.layer(layer);
        private(&dir)?;
        record::write(&dir.join("about"), record, Durability::Power)
    }

    fn layer_record(&self, layer: &Layer) -> Result<LayerRecord, Error> {
        let altered = |detail: &str| Error::Altered {
            name: layer.as_str().to_owned(),
            detail: format!(
                "{detail}; what stands on this layer can't be started, only destroyed or removed"
            ),
        };
        match record::read::<LayerRecord>(&self.layer(layer).join("about")) {
            Ok(Some(record)) => Ok(record),
            Ok(None) => Err(altered("its record is gone")),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(altered("its record is damaged"))
            }
            Err(error) => Err(backend("cannot read the record of a layer", &error)),
        }
    }

    /// What a tree stands on, for its mount, and what is to be verified of it before.
    pub(crate) fn stack(&self, layers: &[Layer]) -> Result<(Vec<LowerDir>, Vec<Check>), Error> {
        let (mut lowers, mut checks) = (Vec::new(), Vec::new());
        for layer in layers {
            let record = self.layer_record(layer)?;
            let tree = self.tree(layer);
            if let Some(expected) = record.fingerprint {
                checks.push(Check::Tree { tree: tree.clone(), expected });
            }
            lowers.push(LowerDir { tree, first_id: record.first_id });
        }
        Ok((lowers, checks))
    }

    /// Moves layers that are not `used` to the trash. Says whether there were any.
    pub(crate) fn discard_layers(&self, used: &BTreeSet<&Layer>) -> io::Result<bool> {
        let entries = match fs::read_dir(self.layers()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut any = false;
        for entry in entries {
            let name = entry?.file_name();
            // One that is being unpacked.
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let named = name.to_str().and_then(|name| Layer::new(name).ok());
            if named.is_none_or(|layer| !used.contains(&layer)) {
                self.discard(&self.layers().join(&name))?;
                any = true;
            }
        }
        Ok(any)
    }
}
