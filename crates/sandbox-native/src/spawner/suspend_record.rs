//! A suspended life: which it was, and how it left its disk.
//!
//! Owns the record. It is written when nothing of the life runs any more and its
//! disk was looked at; it is removed when the life goes on, before its guest is given
//! anything to do. So a disk with one is exactly as described, or was changed.

use std::io;

use outrigger_sandbox::Generation;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::record::{self, Durability};
use super::store::DiskDir;
use super::verify::Check;

/// What is recorded of a suspended life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SuspendRecord {
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

impl SuspendRecord {
    /// The record of a disk. `None`: its last life was not suspended, or its record is
    /// damaged, which tells as little.
    pub(super) fn read(disk_dir: &DiskDir) -> io::Result<Option<Self>> {
        match record::read(&disk_dir.cold()) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            read => read,
        }
    }

    pub(super) fn write(&self, disk_dir: &DiskDir) -> io::Result<()> {
        record::write(&disk_dir.cold(), self, Durability::Process)
    }

    /// Whether its life can go on.
    pub(super) fn is_of(&self, boot: &str) -> bool {
        self.boot == boot
    }

    /// What must hold of its disk.
    pub(super) fn checks(&self, disk_dir: &DiskDir) -> Vec<Check> {
        vec![
            Check::Tree { tree: disk_dir.upper(), expected: self.tree },
            Check::File { path: disk_dir.kept(), expected: self.kept },
        ]
    }
}

/// Forgets a suspended life. One that is not there is fine.
pub(super) fn forget(disk_dir: &DiskDir) -> io::Result<()> {
    record::remove(&disk_dir.cold())?;
    record::remove(&disk_dir.kept())
}
