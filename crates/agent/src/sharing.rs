//! With whom a session is shared, and who speaks in its turn beside the person whose it is.
//!
//! Owns that what a turn does needs the leave of everybody who said something in it: who takes
//! part in a session of somebody else gets none of that person's rights, and lends them none.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::{Author, Item, Message, State};

/// What somebody may do in a session that is not theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedAccess {
    /// Nothing, not even know of it.
    None,
    /// See everything in it.
    Read,
    /// Speak in it, too, and answer what it asks.
    TakePart,
}

impl SharedAccess {
    /// The word for it in the journal and in requests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::TakePart => "take_part",
        }
    }
}

impl State {
    /// With whom it is shared, by principal name (`person:bob`, `group:ops`, `org:acme`).
    #[must_use]
    pub fn shares(&self) -> &BTreeMap<String, SharedAccess> {
        &self.shares
    }

    /// Who must be permitted what the turn does, beside the person whose the session is.
    #[must_use]
    pub fn speakers(&self) -> &BTreeSet<String> {
        &self.speakers
    }

    pub(crate) fn share(&mut self, with: &str, access: SharedAccess) {
        match access {
            SharedAccess::None => self.shares.remove(with),
            SharedAccess::Read | SharedAccess::TakePart => {
                self.shares.insert(with.to_owned(), access)
            }
        };
    }

    /// Somebody put words into the turn.
    pub(crate) fn note_speaker(&mut self, person: &str) {
        if self.spec.as_ref().is_some_and(|spec| spec.principal != person) {
            self.speakers.insert(person.to_owned());
        }
    }

    pub(crate) fn note_author(&mut self, message: &Message) {
        if let Author::Person(person) = &message.author {
            self.note_speaker(person);
        }
    }

    /// The turn is over: what nobody read yet is of the next one.
    pub(crate) fn forget_speakers(&mut self) {
        self.speakers.clear();
        // A subagent works on for those who started it.
        let role = self.spec.iter().flat_map(|spec| &spec.role.speakers).cloned();
        self.speakers.extend(role);
        self.note_authors(&self.queued.clone());
    }

    /// Everybody who wrote one of these.
    pub(crate) fn note_authors(&mut self, items: &[Item]) {
        for item in items {
            if let Item::Message(message) = item {
                self.note_author(message);
            }
        }
    }
}
