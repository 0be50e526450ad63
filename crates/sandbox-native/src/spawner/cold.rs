//! A suspended life: which it was, and how it left its disk.
//!
//! Owns the record. It is written when nothing of the life runs any more and its
//! disk was looked at; it is removed when the life goes on, before its guest is given
//! anything to do. So a disk with one is exactly as described, or was changed.

use std::io;

use outrigger_sandbox::Generation;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::record::{self, Outlasts};
use super::store::Place;
use super::verify::Check;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cold {
    pub(super) generation: Generation,
    /// The boot of the host that it lived in; in another one its ids mean nothing.
    pub(super) boot: String,
    /// Of its own tree.
    pub(super) tree: Fingerprint,
    /// Of what its guest handed over.
    pub(super) kept: [u8; 32],
}

/// Which boot of the host this is (random(4)).
pub(super) fn boot() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

impl Cold {
    /// The record of a disk. `None`: its last life was not suspended, or its record is
    /// damaged, which tells as little.
    pub(super) fn read(place: &Place) -> io::Result<Option<Self>> {
        match record::read(&place.cold()) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            read => read,
        }
    }

    pub(super) fn write(&self, place: &Place) -> io::Result<()> {
        record::write(&place.cold(), self, Outlasts::Process)
    }

    /// Whether its life can go on.
    pub(super) fn is_of(&self, boot: &str) -> bool {
        self.boot == boot
    }

    /// What must hold of its disk.
    pub(super) fn checks(&self, place: &Place) -> Vec<Check> {
        vec![
            Check::Tree { tree: place.upper(), expected: self.tree },
            Check::File { path: place.kept(), expected: self.kept },
        ]
    }
}

/// Forgets a suspended life. One that is not there is fine.
pub(super) fn forget(place: &Place) -> io::Result<()> {
    record::remove(&place.cold())?;
    record::remove(&place.kept())
}
