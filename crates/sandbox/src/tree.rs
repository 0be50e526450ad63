//! Trees that are served into a sandbox: files that are not on its disk, because
//! somebody outside answers for them.
//!
//! Owns what can be asked of such a tree and what it answers. A file is read and
//! written whole, and every change names the revision that it was made from, so that
//! two who write never lose what one of them wrote. Knows nothing of who keeps the
//! files, nor how a sandbox shows them to its programs.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;

use crate::path::is_canonical;
use crate::{FileError, FileErrorKind, SandboxId, limits};

/// What is asked of a tree. Paths are absolute, canonical (no `.`, `..`, `//` or slash at
/// the end) and begin with a mount point of [`crate::CreateSpec::served`], which is a folder
/// that is always there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeOp {
    /// What a path is. Answer: [`TreeReply::Node`].
    Stat {
        /// The path.
        path: String,
    },
    /// What is in a folder, sorted by the bytes of the names. Answer: [`TreeReply::Listed`].
    List {
        /// The folder.
        path: String,
        /// The last name of the page before.
        after: Option<String>,
    },
    /// A file, whole. Answer: [`TreeReply::Contents`].
    Read {
        /// The file.
        path: String,
    },
    /// A program opens a file to write it, or begins to make one, where [`Node::writable`]
    /// is not set. So that nothing is tried unseen. Answer: [`TreeReply::Done`] if it may
    /// after all, else why not.
    MayChange {
        /// The file.
        path: String,
    },
    /// Writes a file, whole. `conflict` unless it is at `expected`. Answer: [`TreeReply::Node`].
    Write {
        /// The file.
        path: String,
        /// What it was made from.
        expected: ExpectedRevision,
        /// At most [`crate::limits::TREE_FILE_BYTES_MAX`], else `too_large`.
        #[serde(with = "serde_bytes")]
        contents: Vec<u8>,
    },
    /// Makes a folder; `already_exists` if anything is there. Answer: [`TreeReply::Node`].
    MakeFolder {
        /// The folder.
        path: String,
    },
    /// Removes a file (`conflict` unless it is at `expected`). Answer: [`TreeReply::Done`].
    Remove {
        /// The file.
        path: String,
        /// The revision that is removed.
        expected: u64,
    },
    /// Removes an empty folder, else `not_empty`. Answer: [`TreeReply::Done`].
    RemoveFolder {
        /// The folder.
        path: String,
    },
    /// Moves a file, or a folder with all that is in it. A file takes the place of the
    /// file that is at `to`. Answer: [`TreeReply::Node`], of what is at `to` now.
    Rename {
        /// From where; a file must be at this revision, else `conflict`.
        from: String,
        /// The revision of the file, 0 for a folder.
        revision: u64,
        /// To where, in the same tree.
        to: String,
        /// What must be there; else `conflict`, or `already_exists` for [`ExpectedRevision::Absent`].
        expected: ExpectedRevision,
    },
}

impl TreeOp {
    /// The path that it is about; for a move the one that it leaves.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Stat { path }
            | Self::List { path, .. }
            | Self::Read { path }
            | Self::MayChange { path }
            | Self::Write { path, .. }
            | Self::MakeFolder { path }
            | Self::Remove { path, .. }
            | Self::RemoveFolder { path }
            | Self::Rename { from: path, .. } => path,
        }
    }

    /// Checks the form of what came from a sandbox: paths and lengths.
    ///
    /// # Errors
    /// `invalid_path` and `too_large`, with the path cut to its limit.
    pub fn check(&self) -> Result<(), FileError> {
        let refused = |kind, path: &str, detail: &str| {
            let path = path.chars().take(limits::TREE_NAME_BYTES_MAX).collect();
            Err(FileError { kind, path, detail: detail.to_owned() })
        };
        let other = match self {
            Self::Rename { to, .. } => Some(to.as_str()),
            Self::Write { path, contents, .. } if contents.len() > limits::TREE_FILE_BYTES_MAX => {
                return refused(
                    FileErrorKind::TooLarge,
                    path,
                    "a served file is smaller than that",
                );
            }
            Self::List { path, after: Some(after) }
                if after.len() > limits::TREE_NAME_BYTES_MAX || after.contains('/') =>
            {
                return refused(FileErrorKind::InvalidPath, path, "the name before is no name");
            }
            Self::Stat { .. }
            | Self::List { .. }
            | Self::Read { .. }
            | Self::MayChange { .. }
            | Self::Write { .. }
            | Self::MakeFolder { .. }
            | Self::Remove { .. }
            | Self::RemoveFolder { .. } => None,
        };
        match [Some(self.path()), other].into_iter().flatten().find(|path| !is_canonical(path)) {
            Some(path) => refused(FileErrorKind::InvalidPath, path, "it is not a canonical path"),
            None => Ok(()),
        }
    }
}

/// What must be at a path for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExpectedRevision {
    /// Nothing; `already_exists` otherwise.
    Absent,
    /// The file at this revision.
    Revision(u64),
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Whether it is a folder.
    pub folder: bool,
    /// Length of a file in bytes.
    pub bytes: u64,
    /// Which state of a file this is: another one whenever it was changed, and never
    /// again the same at this path. 0 for a folder.
    pub revision: u64,
    /// When it was last changed, in milliseconds since 1970; 0 if nobody knows.
    pub modified_ms: u64,
    /// Whether whoever asks may change it, or what is in the folder.
    pub writable: bool,
    /// Whether programs may be started from it.
    pub executable: bool,
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// The name, without a slash.
    pub name: String,
    /// What it is.
    pub node: Node,
}

/// What a tree answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeReply {
    /// What is at the path now.
    Node(Node),
    /// Names in a folder, at most [`crate::limits::TREE_PAGE_ENTRIES_MAX`].
    Listed {
        /// In the order of their bytes.
        entries: Vec<TreeEntry>,
        /// Whether more follow.
        more: bool,
    },
    /// A file at one revision.
    Contents {
        /// What it is.
        node: Node,
        /// All of it.
        #[serde(with = "serde_bytes")]
        contents: Vec<u8>,
    },
    /// It is done, and nothing is left at the path.
    Done,
}

/// Who answers for what is served into sandboxes.
///
/// Everything that is asked comes from inside a sandbox and is hostile: the tree checks
/// paths, lengths and rights itself. What whoever asks may not see is `file_not_found`.
#[async_trait]
pub trait Tree: Send + Sync + Debug {
    /// Performs one operation. Called at once from many tasks.
    async fn perform(&self, op: TreeOp) -> Result<TreeReply, FileError>;

    /// A tool that looked through the tree is about to show these files, or their names, to
    /// whoever called it, and nothing else of what it read. What a program reads it has at
    /// once. An error has the tool show nothing.
    async fn show(&self, _paths: &[&str]) -> Result<(), FileError> {
        Ok(())
    }
}

/// Which tree is whose. A backend is opened with one and asks it for each operation, so
/// that what it says now holds at once.
pub trait Trees: Send + Sync + Debug {
    /// The tree that is served into a sandbox. `None`: nobody serves it here, and what
    /// its programs ask for fails.
    fn of(&self, sandbox: &SandboxId) -> Option<Arc<dyn Tree>>;
}
