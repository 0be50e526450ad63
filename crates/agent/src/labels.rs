//! Where what the model was told came from.
//!
//! Owns the labels of a session: they follow from who wrote what, as the harness knows
//! it, from the moment that the content is in the conversation. Nothing takes one away:
//! no compaction, no later turn, and nothing that a model writes.

use std::collections::BTreeSet;

use outrigger_policy::UNTRUSTED;

use crate::{Author, Item, State, Touched, limits};

/// The label of a session in which somebody spoke on whose behalf it does not run.
pub const OTHERS: &str = "others";

/// The labels of content that nobody vouches for, by where it came from.
#[must_use]
pub fn labels_of(source: &str) -> BTreeSet<String> {
    BTreeSet::from([UNTRUSTED.to_owned(), label_of(source)])
}

/// The label of what a source wrote, for example `from:person:bob`. Sources are named by
/// configuration and by people; one that is absurdly long is cut.
#[must_use]
pub fn label_of(source: &str) -> String {
    let source: String = source.chars().take(limits::LABEL_CHARS_MAX).collect();
    format!("from:{source}")
}

impl State {
    /// Where what the model was told came from.
    #[must_use]
    pub fn labels(&self) -> &BTreeSet<String> {
        &self.labels
    }

    /// Takes in what files of memory and of skills brought along.
    pub(crate) fn note(&mut self, touched: &Touched) {
        let last = touched.changes.iter().map(|change| change.number).max();
        self.noted = self.noted.max(last.unwrap_or_default());
        self.labels.extend(touched.labels.iter().cloned());
    }

    /// Makes items part of the conversation: from now on the model may act on them.
    pub(crate) fn join(&mut self, items: Vec<Item>) {
        for item in &items {
            match item {
                Item::Message(message) => match &message.author {
                    Author::Untrusted(source) => self.labels.extend(labels_of(source)),
                    // The session was begun with its labels.
                    Author::Agent(_) => {}
                    Author::Person(person) => {
                        let own = self.spec.as_ref().is_some_and(|spec| spec.principal == *person);
                        if !own {
                            self.labels.extend([OTHERS.to_owned(), label_of(person)]);
                        }
                    }
                },
                Item::Result(result) => self.labels.extend(result.labels.iter().cloned()),
                // Made of what is in the conversation already, or ours.
                Item::Reply(_) | Item::Summary(_) | Item::Notice(_) => {}
            }
        }
        self.conversation.extend(items);
    }
}
