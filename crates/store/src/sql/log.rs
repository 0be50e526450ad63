//! Statements about the audit log: entries and checkpoints are added, read, and compared
//! with the sessions that they are of.

pub(crate) mod anchor;
pub(crate) mod prove;
pub(crate) mod read;
pub(crate) mod walk;
