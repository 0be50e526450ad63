//! A suspended life: which it was, and how it left its disk.
//!
//! Owns the record. It is written when nothing of the life runs any more and its
//! disk was looked at; it is removed when the life goes on, before its guest is given
//! anything to do. So a disk with one is exactly as described, or was changed.

use std::io;

use outrigger_sandbox::Generation;
use serde::{Deserialize, Serialize};

use crate::spawner::layers::verify::Check;
use crate::spawner::record::{self, Durability};
use crate::spawner::store::DiskDir;
use crate::spawner::tree::fingerprint::Fingerprint;

/// What is recorded of a suspended life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SuspendRecord {
    pub(crate) generation: Generation,
    /// The boot of the host that it lived in; in another one its ids mean nothing.
    pub(crate) boot: String,
    /// Of its own tree.
    pub(crate) tree: Fingerprint,
    /// Of what its guest handed over.
    pub(crate) kept: [u8; 32],
}

/// Which boot of the host this is (random(4)).
pub(crate) fn boot() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

impl SuspendRecord {
    /// The record of a disk. `None`: its last life was not suspended, or its record is
    /// damaged, which tells as little.
    pub(crate) fn read(disk_dir: &DiskDir) -> io::Result<Option<Self>> {
        match record::read(&disk_dir.cold()) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            read => read,
        }
    }

    pub(crate) fn write(&self, disk_dir: &DiskDir) -> io::Result<()> {
        record::write(&disk_dir.cold(), self, Durability::Process)
    }

    /// Whether its life can go on.
    pub(crate) fn is_of(&self, boot: &str) -> bool {
        self.boot == boot
    }

    /// What must hold of its disk.
    pub(crate) fn checks(&self, disk_dir: &DiskDir) -> Vec<Check> {
        vec![
            Check::Tree { tree: disk_dir.upper(), expected: self.tree },
            Check::File { path: disk_dir.kept(), expected: self.kept },
        ]
    }
}

/// Forgets a suspended life. One that is not there is fine.
pub(crate) fn forget(disk_dir: &DiskDir) -> io::Result<()> {
    record::remove(&disk_dir.cold())?;
    record::remove(&disk_dir.kept())
}
