//! What a session did to entries since its journal was told last.

use outrigger_agent::{EntryChange, EntryRefused};
use outrigger_sandbox::{FileError, FileErrorKind};
use outrigger_store::entries::{EntryState, Version as EntryVersion};
use std::collections::BTreeSet;

use super::scope;
use crate::limits;

/// What a session did to entries since its journal was told last.
#[derive(Debug, Default)]
pub(super) struct MemoryRecorder {
    /// Changes that were tried and not made; whoever tried is told why.
    pub(super) refused: Vec<EntryRefused>,
    /// What may not be seen and was reached for. Whoever reached for it is told that nothing
    /// is there.
    pub(super) unseen: Vec<EntryRefused>,
    /// How many more there were of either.
    pub(super) more: u64,
    /// Whether a version was made; which one the store knows.
    pub(super) changed: bool,
    /// Where what was used came from.
    pub(super) labels: BTreeSet<String>,
}

impl MemoryRecorder {
    /// A change was tried and not made. What is only not as somebody believed is no refusal.
    pub(super) fn refused(&mut self, refused: &FileError) {
        use FileErrorKind::{Conflict, PermissionDenied, ReadOnly};
        if matches!(refused.kind, Conflict | PermissionDenied | ReadOnly) {
            self.more += keep(&mut self.refused, entry(refused, &refused.detail));
        }
    }

    /// A path was reached for that may not be seen; `said` is what was answered.
    pub(super) fn unseen(&mut self, said: &FileError, why: &str) {
        self.more += keep(&mut self.unseen, entry(said, why));
    }
}

/// Keeps what is not there yet: programs try again and again. Gives 1 if there is no room.
fn keep(kept: &mut Vec<EntryRefused>, new: EntryRefused) -> u64 {
    if kept.contains(&new) {
        return 0;
    }
    if kept.len() >= limits::REFUSED_ENTRIES_MAX {
        return 1;
    }
    kept.push(new);
    0
}

fn entry(refused: &FileError, why: &str) -> EntryRefused {
    // The first line: what a file holds is not for the journal.
    let reason = why.lines().next().unwrap_or_default();
    EntryRefused {
        path: refused.path.clone(),
        kind: refused.kind.to_string(),
        reason: reason.chars().take(limits::REFUSAL_CHARS_MAX).collect(),
    }
}

/// A version as the journal names it.
pub(super) fn change(version: &EntryVersion) -> EntryChange {
    let digest = match &version.state {
        EntryState::File { digest, .. } => Some(digest.clone()),
        EntryState::Folder | EntryState::Gone => None,
    };
    EntryChange {
        number: version.number,
        path: scope::path_of(&version.place),
        revision: version.revision,
        digest,
        removed: version.state == EntryState::Gone,
        via: version.by.via.as_str().to_owned(),
    }
}
