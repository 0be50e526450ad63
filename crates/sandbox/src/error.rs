//! What can go wrong at the door, and whose fault it is.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The typed errors of file operations, the same on every backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileErrorKind {
    /// Nothing is at that path.
    FileNotFound,
    /// The sandbox's user may not do that.
    PermissionDenied,
    /// A directory where a file was expected.
    IsDirectory,
    /// A file where a directory was expected.
    NotADirectory,
    /// Malformed, leaves its root, or names a FIFO, device or socket.
    InvalidPath,
    /// A new file was asked for and there is one.
    AlreadyExists,
    /// Above a named limit.
    TooLarge,
    /// Disk, inode or quota limit reached.
    NoSpace,
    /// The file is not as the caller believed.
    Conflict,
    /// The pattern or an argument is malformed.
    InvalidArgument,
    /// The kernel reported an input or output error.
    Io,
    /// Nothing can be changed there by anybody who asks this way.
    ReadOnly,
    /// A directory with something in it where an empty one was expected.
    NotEmpty,
}

impl FileErrorKind {
    /// The stable name that models, users and adapters see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FileNotFound => "file_not_found",
            Self::PermissionDenied => "permission_denied",
            Self::IsDirectory => "is_directory",
            Self::NotADirectory => "not_a_directory",
            Self::InvalidPath => "invalid_path",
            Self::AlreadyExists => "already_exists",
            Self::TooLarge => "too_large",
            Self::NoSpace => "no_space",
            Self::Conflict => "conflict",
            Self::InvalidArgument => "invalid_argument",
            Self::Io => "io",
            Self::ReadOnly => "read_only",
            Self::NotEmpty => "not_empty",
        }
    }
}

impl fmt::Display for FileErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A file operation that could not be done. The caller's to act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind}: {path}: {detail}")]
pub struct FileError {
    /// Which of the typed errors.
    pub kind: FileErrorKind,
    /// The path as the caller gave it.
    pub path: String,
    /// What was wrong and what to do, in plain words.
    pub detail: String,
}

/// What can go wrong at the door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Error {
    /// A file operation failed; the sandbox is fine.
    #[error(transparent)]
    File(#[from] FileError),
    /// The request itself is malformed or above a limit; nothing was started.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// The program could not be started (not found, not executable); nothing ran.
    #[error("cannot start `{program}`: {reason}")]
    CannotStart {
        /// The program as asked for.
        program: String,
        /// The kernel's reason in plain words.
        reason: String,
    },
    /// An exec id is known to the guest but its outcome has been forgotten
    /// ([`crate::limits::FINISHED_EXECS_MAX`]). It was not run again.
    #[error("the outcome of `{id}` is no longer kept")]
    Forgotten {
        /// The exec id.
        id: String,
    },
    /// The sandbox is gone, or this life of it is. What ran may have run fully, partly or not at all.
    #[error("the sandbox was lost: {reason}")]
    Lost {
        /// What is known.
        reason: String,
    },
    /// What was asked for needs the sandbox to rest, and something runs in it; or as much runs
    /// as may.
    #[error("the sandbox is busy: {reason}")]
    Busy {
        /// What runs.
        reason: String,
    },
    /// There is no sandbox, snapshot or template of that name.
    #[error("there is no {what} `{name}`")]
    Absent {
        /// Which kind of thing.
        what: String,
        /// The name that was asked for.
        name: String,
    },
    /// A suspended disk, or a snapshot, is not as it was left. Nothing was started over it.
    #[error("the disk of `{name}` was changed while nothing ran in it: {detail}")]
    Altered {
        /// The sandbox or snapshot.
        name: String,
        /// What differs, and what can be done.
        detail: String,
    },
    /// The backend lacks this, and its capabilities say so.
    #[error("{what} is not supported here: {reason}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why this backend or host has it not.
        reason: String,
    },
    /// No sandbox can be made on this host; the advice says what would fix it.
    #[error("no sandbox can be made here: {reason}; {advice}")]
    Unavailable {
        /// What is missing.
        reason: String,
        /// What to do.
        advice: String,
    },
    /// The backend itself failed. A retry may help.
    #[error("sandbox backend: {0}")]
    Backend(String),
}
