//! Why commits of a sandbox are not taken.

use super::object::ObjectId;

/// Why commits of a sandbox are not taken. All but `Packs` and `Taken` are the fault of what
/// runs in the sandbox; each comes again until somebody changes something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitProblem {
    /// What was printed is not what git prints.
    #[error("git in the sandbox answered something else than it was asked")]
    Protocol,
    /// An object that has another name by its contents.
    #[error("the object {0} is not what its name says")]
    Forged(ObjectId),
    /// A commit that git would not have made, or one that is signed.
    #[error(
        "the commit {0} is not plain: it has more or less than an author, a committer and a message"
    )]
    Commit(ObjectId),
    /// A folder that git would not have made.
    #[error("the folder {0} is not as git writes one")]
    Tree(ObjectId),
    /// A folder with a name that is not UTF-8.
    #[error("a name in the folder {0} is no text")]
    Name(ObjectId),
    /// What nobody has.
    #[error("the object {0} is neither in the sandbox nor in the repository")]
    Missing(ObjectId),
    /// A commit that stands on nothing.
    #[error("the commit {0} begins a history of its own")]
    Root(ObjectId),
    /// More than is taken.
    #[error("they have more than {most} {what}")]
    TooMuch {
        /// The limit.
        most: u64,
        /// Of what.
        what: &'static str,
    },
    /// The repository keeps its objects in too many files.
    #[error("the repository has more than {0} packs; `git gc` makes one of them")]
    Packs(usize),
    /// No name is left for the branch, or one that there is keeps it from being made.
    #[error("the branch `{0}` can't be made, because another branch is in its way")]
    Taken(String),
}
