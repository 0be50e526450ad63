//! The log over all sessions: a Merkle tree of where their chains stood, with
//! signed checkpoints, and what is found by verifying it.
//!
//! Owns the formats (link of a chain, entry, checkpoint, proof), the signing key's file,
//! the copy of the log beside the database, and every check that needs no database. Where
//! the log is stored is the database's. Must never repair what it finds, and
//! never write where it only checks.
//!
//! Hashes are those of RFC 6962, checkpoints those of <https://c2sp.org/tlog-checkpoint>
//! as signed notes of <https://c2sp.org/signed-note>.
//!
//! Read first: [`chain`], [`LogEntry`], [`LogVerifier`].

#![forbid(unsafe_code)]

pub mod chain;
mod checkpoint;
mod copy;
mod error;
pub mod files;
mod key;
pub mod limits;
mod log;
mod proof;
mod report;
mod verify;

pub use checkpoint::{Checkpoint, ExternalCheckpoint, NoteFault, SignedCheckpoint, VerifyingKey};
pub use copy::{LogCopy, LogCopyLines, LogCopyWriter};
pub use error::Error;
pub use key::Signer;
pub use log::{Frontier, LogEntry, MerkleTree};
pub use proof::{
    FORMAT as PROOF_FORMAT, InterveningEvent, Proof, ProofFault, ProofStatement, ProvenEvent,
};
pub use report::{Finding, Location, Report, VerificationProgress};
pub use verify::{Corrections, LogFindings, LogVerifier, SessionLinks};

use std::path::{Path, PathBuf};

/// Where the key and the copy of the log are, beneath a store's directory.
#[must_use]
pub fn directory(store: &Path) -> PathBuf {
    store.join("audit")
}

/// The verifying key of a store, if it has signed anything yet.
///
/// # Errors
/// [`Error::Damaged`] where the file holds no key; what the disk says.
pub fn verifying_key(store: &Path) -> Result<Option<VerifyingKey>, Error> {
    key::verifying(&directory(store))
}
