//! Where what the model was told came from.
//!
//! Owns the labels of a session: they follow from who wrote what, as the harness knows
//! it, from the moment that the content is in the conversation. Nothing takes one away:
//! no compaction, no later turn, and nothing that a model writes.

use std::collections::BTreeSet;

use outrigger_policy::UNTRUSTED;

use crate::{Author, Item, limits};

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

/// The labels that an item brings along when it becomes part of the conversation of a
/// session that runs on behalf of `principal`.
pub(crate) fn labels_of_item(item: &Item, principal: Option<&str>) -> BTreeSet<String> {
    match item {
        Item::Message(message) => match &message.author {
            Author::Untrusted(source) => labels_of(source),
            // The session was begun with its labels.
            Author::Agent(_) => BTreeSet::new(),
            Author::Person(person) => labels_of_person(person, principal),
            // Whoever trusts a file vouches for it as for their own words.
            Author::Trusted(file) => labels_of_person(&file.by, principal),
        },
        Item::Result(result) => result.labels.clone(),
        // Made of what is in the conversation already, or ours.
        Item::Reply(_) | Item::Summary(_) | Item::Notice(_) => BTreeSet::new(),
    }
}

fn labels_of_person(person: &str, principal: Option<&str>) -> BTreeSet<String> {
    match principal {
        Some(own) if own == person => BTreeSet::new(),
        Some(_) | None => BTreeSet::from([OTHERS.to_owned(), label_of(person)]),
    }
}
