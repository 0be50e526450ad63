//! What can go wrong with an entry.

use super::{Derivatives, PathFault, ProposalId, QuotaExceeded, Redaction, Standing};

/// Why an entry was not read or changed as asked. Nothing was changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Nothing is there, or nothing that whoever asks may see.
    #[error("nothing is there")]
    Absent,
    /// Something else is there than the change was made from.
    #[error("it was changed meanwhile, or is there already: it is at revision {}", .0.revision)]
    Conflict(Box<Current>),
    /// Something is there already.
    #[error("something is there already")]
    Exists,
    /// It is a folder.
    #[error("it is a folder")]
    Folder,
    /// It, or what is above it, is not a folder.
    #[error("it is not a folder")]
    NotFolder,
    /// The folder is not empty.
    #[error("the folder is not empty")]
    NotEmpty,
    /// A folder can't be moved into itself.
    #[error("a folder can't be in itself")]
    Inside,
    /// It is the root of a memory scope, which stays as it is.
    #[error("the root of a memory scope can't be changed")]
    Root,
    /// The memory scope takes changes as proposals only.
    #[error("changes of this memory scope need a review: propose it")]
    NeedsReview,
    /// Only a reviewer of the memory scope may do it, and mostly not the author.
    #[error("only a reviewer of the memory scope who is not the author may do this")]
    NotReviewer,
    /// Only the author may do it.
    #[error("only the author may do this")]
    NotAuthor,
    /// The proposal was decided.
    #[error("proposal {proposal} is {standing} already")]
    Decided {
        /// Which one.
        proposal: ProposalId,
        /// How.
        standing: Standing,
    },
    /// Somebody destroyed the content.
    #[error("its content was redacted by {}: {}", .0.by, .0.why)]
    Redacted(Box<Redaction>),
    /// The memory scope does not keep versions that old.
    #[error("its content is older than the memory scope keeps")]
    Pruned,
    /// Other versions still have a long run of what is to be destroyed: nothing was, until
    /// somebody says what becomes of them.
    #[error("{} still have a part of it", .0)]
    Related(Box<Derivatives>),
    /// It is not text.
    #[error("it is not text")]
    NotText,
    /// A path is none.
    #[error("not a path: {0}")]
    Path(#[from] PathFault),
    /// There is nothing to look for.
    #[error("there is no word to look for")]
    Words,
    /// A setting can't hold for a memory scope.
    #[error("{what}")]
    Setting {
        /// What is wrong with it.
        what: &'static str,
    },
    /// More than a limit of [`crate::limits`] allows.
    #[error("{what} has {size}, and at most {size_max} are possible")]
    TooLarge {
        /// What is too large, with the unit.
        what: &'static str,
        /// How much it is.
        size: u64,
        /// How much it may be.
        size_max: u64,
    },
    /// A quota has no room for it.
    #[error("{0}")]
    Quota(Box<QuotaExceeded>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] crate::Error),
}

/// What is at a place now, for whoever expected something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// The newest version; 0 where there never was one.
    pub revision: u64,
    /// The whole file; nothing where there is none, or only a redacted one.
    pub bytes: Option<Vec<u8>>,
    /// How often the text of an edit is in it.
    pub matches: Option<u64>,
}

impl Error {
    /// Passes a size that is within its limit.
    pub(crate) fn within(what: &'static str, size: usize, size_max: usize) -> Result<(), Self> {
        let (size, size_max) = (size as u64, size_max as u64);
        if size <= size_max { Ok(()) } else { Err(Self::TooLarge { what, size, size_max }) }
    }
}
