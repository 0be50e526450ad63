//! What can be done to entries, and what comes of it.

use std::fmt;
use std::num::NonZeroU32;

use super::{EntryAddress, Version};

/// A change. All of it is made in one transaction, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeRequest {
    /// Writes a file, whole, and makes the folders above it that are missing.
    /// [`super::Error::Conflict`] unless what is there is what is expected,
    /// [`super::Error::Folder`] where a folder is, [`super::Error::NotFolder`] below a file,
    /// [`super::Error::TooLarge`] above [`crate::limits::ENTRY_BYTES_MAX`].
    Write {
        /// Where.
        at: EntryAddress,
        /// What it was made from.
        expected: EntryPrecondition,
        /// What is to stand there.
        file: EntryFile,
    },
    /// Replaces a text in the newest version. [`super::Error::Conflict`] unless the text is
    /// there exactly once, [`super::Error::NotText`] where the file is none.
    Edit {
        /// Where.
        at: EntryAddress,
        /// The text that goes; not empty.
        old: String,
        /// The text that comes.
        new: String,
    },
    /// Removes a file; its versions stay. [`super::Error::Conflict`] unless it is at `revision`.
    Remove {
        /// Where.
        at: EntryAddress,
        /// The version that is removed.
        revision: u64,
    },
    /// Makes a folder, and those above it that are missing; [`super::Error::Exists`] if
    /// anything is there.
    MakeFolder {
        /// Where.
        at: EntryAddress,
    },
    /// Removes a folder; [`super::Error::NotEmpty`] unless nothing is in it.
    RemoveFolder {
        /// Where.
        at: EntryAddress,
    },
    /// Moves a file, or a folder with all that is in it; versions stay where they were
    /// written, and what is new says where it came from. A file takes the place of the file
    /// that is at `to`; a folder goes where nothing is. Folders above are made.
    /// [`super::Error::Conflict`] unless both ends are as expected,
    /// [`super::Error::Inside`] where a folder would be in itself,
    /// [`super::Error::TooLarge`] above [`crate::limits::MOVE_ENTRIES_MAX`].
    Move {
        /// From where.
        from: EntryAddress,
        /// The file's version; nothing for a folder.
        revision: Option<u64>,
        /// To where; also to another memory scope.
        to: EntryAddress,
        /// What is there.
        expected: EntryPrecondition,
    },
    /// Writes an old version's content as a new version; the path may be gone meanwhile.
    Revert {
        /// Where.
        at: EntryAddress,
        /// The version whose content comes back.
        to: u64,
        /// What is there now.
        expected: EntryPrecondition,
    },
    /// Destroys contents for good, wherever they are kept, in proposals too; the versions
    /// stay, marked. Other changes wait while the index of words is written anew. Allowed in a
    /// memory scope that needs reviews.
    Redact {
        /// Where.
        at: EntryAddress,
        /// Of which versions.
        which: Which,
        /// How far it goes.
        reach: Reach,
        /// What becomes of versions that are no copies and still have a long run of it.
        derived: DerivativePolicy,
        /// What is told to whoever asks for the content; at most
        /// [`crate::limits::MESSAGE_BYTES_MAX`].
        why: String,
    },
    /// Lets go of contents that are not to be kept, never of a newest version, at most
    /// [`crate::limits::PRUNE_VERSIONS_MAX`] at a time: done again until nothing was
    /// changed. Versions stay, marked. At the root of a memory scope also files go of proposals
    /// that were decided. Allowed in a memory scope that needs reviews.
    Prune {
        /// Of a file, or of everything in a folder.
        at: EntryAddress,
        /// How many versions of each file keep theirs; nothing: as the memory scope's settings say.
        keep: Option<NonZeroU32>,
    },
}

/// What must be at a path for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPrecondition {
    /// Nothing.
    Absent,
    /// The file at this revision.
    Revision(u64),
}

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntryFile {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Whether it may be started.
    pub executable: bool,
    /// When it should be looked at again, in milliseconds since 1970.
    pub review_by_ms: Option<u64>,
    /// What it was made from, if that is not at the same place: a redaction there reaches
    /// it. Must be a version that the scope sees, else [`super::Error::Absent`].
    pub derived_from: Option<(EntryAddress, u64)>,
}

impl EntryFile {
    /// A plain file.
    #[must_use]
    pub fn of(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), ..Self::default() }
    }
}

/// Which versions of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// This one.
    Revision(u64),
    /// All that there ever were.
    All,
}

/// How far a redaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The versions that are named, and no other.
    Named,
    /// Also every version with the same content in a memory scope that the scope may change, and
    /// whatever was derived from any of these, in any memory scope and over any number of steps.
    Copies,
    /// Also the same content in memory scopes that the scope may not change. For operators:
    /// whoever may ask for it is decided by rules before.
    Everywhere,
}

/// What becomes of versions and proposals that are no copies of what is destroyed, and still
/// have [`crate::limits::RUN_BYTES_MIN`] bytes or more of it in a row: what was edited after
/// it was moved, or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivativePolicy {
    /// Nothing is destroyed if there are any: [`super::Error::Related`] tells which.
    Ask,
    /// They stay.
    Leave,
    /// They are destroyed as well.
    Destroy,
}

/// Versions and proposals that still have a part of something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Derivatives {
    /// Versions.
    pub versions: Vec<(EntryAddress, u64)>,
    /// Numbers of proposals.
    pub proposals: Vec<u64>,
}

impl fmt::Display for Derivatives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { versions, proposals } = self;
        write!(f, "{} other versions and {} proposals", versions.len(), proposals.len())
    }
}

/// What a change made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeOutcome {
    /// The versions that are new or, of a redaction and a pruning, that lost their
    /// content, as far as the scope sees them. The one at the place that the change was
    /// about comes last.
    pub versions: Vec<Version>,
    /// How many others there were: for the journal and for operators, not for whoever
    /// asked, who is not to know of what they don't see.
    pub unseen: u64,
    /// Whether bytes of destroyed contents may still be in the database's log, because
    /// others read it at that moment. They go with the next destruction or when the store
    /// is closed.
    pub lingers: bool,
}

impl ChangeOutcome {
    /// The version at the place that the change was about.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        self.versions.last()
    }
}
