//! With whom a session is shared, and who speaks in its turn beside the person whose it is.
//!
//! Owns that what a turn does needs the leave of everybody who said something in it: who takes
//! part in a session of somebody else gets none of that person's rights, and lends them none.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::{Author, Item, SharedAccess, Spec};

/// With whom a session is shared, and who spoke.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Sharing {
    pub(crate) shares: BTreeMap<String, SharedAccess>,
    /// In the turn, beside the person whose the session is.
    pub(crate) speakers: BTreeSet<String>,
}

impl Sharing {
    pub(crate) fn share(&mut self, with: &str, access: SharedAccess) {
        match access {
            SharedAccess::None => self.shares.remove(with),
            SharedAccess::Read | SharedAccess::TakePart => {
                self.shares.insert(with.to_owned(), access)
            }
        };
    }

    /// Somebody put words into the turn.
    pub(crate) fn note(&mut self, spec: Option<&Spec>, person: &str) {
        if spec.is_some_and(|spec| spec.principal != person) {
            self.speakers.insert(person.to_owned());
        }
    }

    /// The turn reads these.
    pub(crate) fn note_authors(&mut self, spec: Option<&Spec>, items: &[Item]) {
        for item in items {
            if let Item::Message(message) = item
                && let Author::Person(person) = &message.author
            {
                self.note(spec, person);
            }
        }
    }

    /// The turn is over, and none has begun: what nobody read yet is of the next one.
    pub(crate) fn end_turn(&mut self, spec: Option<&Spec>, queued: &[Item]) {
        // A subagent works on for those who started it.
        let role = spec.into_iter().flat_map(|spec| &spec.role.speakers);
        self.speakers = role.cloned().collect();
        self.note_authors(spec, queued);
    }
}
