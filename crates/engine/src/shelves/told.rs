//! What a session did to entries since its journal was told last.

use outrigger_agent::{EntryChange, EntryRefused, OTHERS, Touched, label_of};
use outrigger_policy::Scope;
use outrigger_sandbox::{FileError, FileErrorKind};
use outrigger_store::entries::{State as EntryState, Version as EntryVersion};
use std::collections::BTreeSet;

use super::layout;
use crate::limits;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Told {
    touched: Touched,
    changed: bool,
    /// Where what was read came from.
    labels: BTreeSet<String>,
}

impl Told {
    /// A version was made; which one the store knows.
    pub(super) fn changed(&mut self) {
        self.changed = true;
    }

    /// A change was tried and not made. What is only not as somebody believed is no refusal.
    pub(super) fn refused(&mut self, refused: &FileError) {
        use FileErrorKind::{Conflict, PermissionDenied, ReadOnly};
        if !matches!(refused.kind, Conflict | PermissionDenied | ReadOnly) {
            return;
        }
        if self.touched.refused.len() >= limits::REFUSED_ENTRIES_MAX {
            self.touched.refused_more += 1;
            return;
        }
        // The first line: what a file holds is not for the journal.
        let reason = refused.detail.lines().next().unwrap_or_default();
        self.touched.refused.push(EntryRefused {
            path: refused.path.clone(),
            kind: refused.kind.to_string(),
            reason: reason.chars().take(limits::REFUSAL_CHARS_MAX).collect(),
        });
    }

    /// A version was read: what it carries reaches the conversation.
    pub(super) fn read(&mut self, version: &EntryVersion, reader: &Scope) {
        self.labels.extend(version.by.labels.iter().cloned());
        if version.author != reader.person() {
            self.labels.extend([OTHERS.to_owned()]);
            self.labels.extend([label_of(&version.author.to_string())]);
        }
    }

    /// Everything, to be journalled.
    pub(super) fn take(&mut self) -> (Touched, BTreeSet<String>, bool) {
        let Self { touched, changed, labels } = std::mem::take(self);
        (touched, labels, changed)
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
        path: layout::path_of(&version.place),
        revision: version.revision,
        digest,
        removed: version.state == EntryState::Gone,
        via: version.by.via.as_str().to_owned(),
    }
}
