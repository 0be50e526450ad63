//! What a session knows of served files.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::limits;

/// The revisions of served files that a session has read or written, so that it replaces
/// a file only as it knows it. What is forgotten has to be read again.
#[derive(Debug, Default)]
pub struct SeenRevisions {
    seen: Mutex<BTreeMap<String, u64>>,
}

impl SeenRevisions {
    /// The session knows the file at this revision.
    pub(super) fn saw(&self, path: &str, revision: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= limits::SEEN_REVISIONS_MAX && !seen.contains_key(path) {
            seen.pop_first();
        }
        seen.insert(path.to_owned(), revision);
    }

    /// The revision that the session knows.
    pub(super) fn of(&self, path: &str) -> Option<u64> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }
}
