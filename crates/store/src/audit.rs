//! The log over all sessions: a Merkle tree of where their chains stood, with
//! signed checkpoints, and what is found by checking it.
//!
//! Owns the formats (entry, checkpoint, proof), the signing key's file, the copy
//! of the log beside the database, and every check that needs no database. Where
//! the log is stored is the database's. Must never repair what it finds, and
//! never write where it only checks.
//!
//! Hashes are those of RFC 6962, checkpoints those of <https://c2sp.org/tlog-checkpoint>
//! as signed notes of <https://c2sp.org/signed-note>.

mod check;
mod copy;
mod edge;
mod entry;
mod key;
mod note;
mod proof;
mod report;
mod tree;

pub(crate) use check::{Chain, Checked, Corrections, LogCheck};
pub(crate) use copy::{Copy, Writing};
pub(crate) use edge::Edge;
pub(crate) use key::Signer;
pub(crate) use tree::Tree;

pub use crate::sqlite::{Asked, Audit, Text};
pub use entry::Entry;
pub use note::{Checkpoint, NoteFault, Opened, Outside, VerifyingKey};
pub(crate) use proof::FORMAT as PROOF_FORMAT;
pub use proof::{Between, Event, Proof, ProofFault, Proved};
pub use report::{Fault, Place, Progress, Report};

use std::path::{Path, PathBuf};

/// Where the key and the copy of the log are, beneath a store's directory.
#[must_use]
pub fn directory(store: &Path) -> PathBuf {
    store.join("audit")
}

/// The verifying key of a store, if it has signed anything yet.
///
/// # Errors
/// [`crate::Error::Damaged`] where the file holds no key; what the disk says.
pub fn verifying_key(store: &Path) -> Result<Option<VerifyingKey>, crate::Error> {
    key::verifying(&directory(store))
}
