//! What an entry is made of: versions, each with who wrote it and where from.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_agent::{Digest, OTHERS, Seq, SessionId, label_of};
use outrigger_policy::Principal;
use serde::{Deserialize, Serialize};

use super::{EntryAddress, EntryPath};

/// What stands at a path now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryStat {
    /// Whether it is a folder.
    pub folder: bool,
    /// Which state of the path this is: it grows for ever, also when what was there was
    /// removed and made again. 0 for the root.
    pub revision: u64,
    /// Length of a file in bytes.
    pub bytes: u64,
    /// Of a file's content.
    pub digest: Option<Digest>,
    /// When this version was written, in milliseconds since 1970; 0 for the root.
    pub modified_ms: u64,
    /// Whether it may be started: a skill's script.
    pub executable: bool,
    /// When it should have been looked at again, in milliseconds since 1970.
    pub review_by_ms: Option<u64>,
    /// Whether its content was destroyed.
    pub redacted: bool,
}

/// Entries of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryListing {
    /// Where and what they are.
    pub entries: Vec<(EntryPath, EntryStat)>,
    /// Whether more follow.
    pub more: bool,
    /// Labels of those that have any, for whoever listed them; see [`labels_for`].
    pub labels: BTreeMap<EntryPath, BTreeSet<String>>,
}

/// A file at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Which one.
    pub version: Version,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// One state of a path, and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its number among all versions of the store, in the order in which they were written.
    pub number: u64,
    /// Where.
    pub place: EntryAddress,
    /// Its number at this place, from 1.
    pub revision: u64,
    /// What stands there since.
    pub state: EntryState,
    /// The person for whom it was written.
    pub author: Principal,
    /// How it came about.
    pub by: Attribution,
    /// Who accepted it, where it was proposed.
    pub accepted_by: Option<Principal>,
    /// The version that it was moved, reverted or otherwise made from.
    pub derived_from: Option<(EntryAddress, u64)>,
    /// When it should be looked at again, in milliseconds since 1970.
    pub review_by_ms: Option<u64>,
    /// What is left of its content.
    pub kept: ContentState,
}

/// What reaches a person's sessions with a text: the labels that it carries, and that
/// somebody else wrote it.
#[must_use]
pub fn labels_for(
    person: &Principal,
    author: &Principal,
    carried: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut labels = carried.clone();
    if author != person {
        labels.extend([OTHERS.to_owned(), label_of(&author.to_string())]);
    }
    labels
}

impl Version {
    /// What it brings into a session of a person's.
    #[must_use]
    pub fn labels_for(&self, person: &Principal) -> BTreeSet<String> {
        labels_for(person, &self.author, &self.by.labels)
    }
}

/// What a version put at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// A file.
    File {
        /// Its length.
        bytes: u64,
        /// Of its content.
        digest: Digest,
        /// Whether it may be started.
        executable: bool,
    },
    /// A folder.
    Folder,
    /// Nothing: what was there is gone.
    Gone,
}

/// How a version came about, as whoever writes it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Through what.
    pub via: Via,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The agent that acted for the author.
    pub agent: Option<String>,
    /// The session in which it acted.
    pub session: Option<SessionId>,
    /// The effect of the session.
    pub seq: Option<Seq>,
    /// Where it came from, for example `untrusted`: what had reached the conversation. A
    /// version that is written carries also those of what it was made from and replaced.
    pub labels: BTreeSet<String>,
    /// What the author says of it; at most [`crate::limits::MESSAGE_BYTES_MAX`].
    pub message: Option<String>,
}

impl Attribution {
    /// A person, outside of any session.
    #[must_use]
    pub fn person(at_ms: u64) -> Self {
        let (agent, session, seq) = (None, None, None);
        Self {
            via: Via::Person,
            at_ms,
            agent,
            session,
            seq,
            labels: BTreeSet::new(),
            message: None,
        }
    }
}

/// Through what an entry was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A file tool of a session.
    Tool,
    /// A program inside a sandbox.
    Sandbox,
    /// A person's own hand.
    Person,
    /// A directory that was brought in.
    Import,
}

impl Via {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Sandbox, Self::Person, Self::Import];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Sandbox => "sandbox",
            Self::Person => "person",
            Self::Import => "import",
        }
    }
}

/// What is left of a version's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentState {
    /// All of it; folders and what is gone never had any.
    Whole,
    /// Nothing: the memory scope does not keep versions that old.
    Pruned,
    /// Nothing: somebody destroyed it.
    Redacted(Redaction),
}

/// That somebody destroyed a content for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// Who.
    pub by: Principal,
    /// Why.
    pub why: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}
