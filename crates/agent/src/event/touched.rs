//! What a session did to the files of memory and of skills.
//!
//! Owns that a change of them stands in the journal whatever made it: a file tool, or a
//! program in a sandbox that never named the path. The files themselves are versions in
//! the store, which name the session; this is the record that can't be changed after.
//! What labels the files bring into the session stands there before their text is used.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::Digest;

/// Changes, and what was refused, since the last such event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Touched {
    /// In the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<EntryChange>,
    /// In the order in which they were tried; the first ones, where there were many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<EntryRefused>,
    /// How many more were refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_more: u64,
    /// What was read labels the session: appended before anybody has the text, so that no
    /// crash parts the two.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Touched {
    /// Whether there is nothing to record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let told = self.changes.is_empty() && self.refused.is_empty() && self.refused_more == 0;
        told && self.labels.is_empty()
    }
}

/// A version of a file that the session made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// Its number among all versions of the store.
    pub number: u64,
    /// Where, as sessions see it, for example `/memory/user/notes.md`.
    pub path: String,
    /// Its number at this path.
    pub revision: u64,
    /// Of its content; nothing for a folder, and for what was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Whether it was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Through what: `tool` or `sandbox`.
    pub via: String,
}

/// What was tried and not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRefused {
    /// Where.
    pub path: String,
    /// Which of the typed errors, for example `permission_denied`.
    pub kind: String,
    /// Why.
    pub reason: String,
}
