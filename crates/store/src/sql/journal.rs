//! Statements about sessions and their events.

pub(crate) mod batch;
pub(crate) mod import;
pub(crate) mod read;
pub(crate) mod remove;
pub(crate) mod snapshot;
pub(crate) mod statements;
