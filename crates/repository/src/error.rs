//! What can go wrong with a person's directory.

use std::io;
use std::path::{Path, PathBuf};

use outrigger_beneath as beneath;

use crate::{CommitProblem, Hazard, IndexProblem, limits};

/// What can go wrong with a person's directory. Unless it is said otherwise nothing was
/// done, and it comes again until somebody changes the directory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory itself can't be read.
    #[error("{}: {why}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
        /// Why, for a program.
        kind: io::ErrorKind,
    },
    /// A file or folder in it can't be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file can't be read to its end.
    #[error("{}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of rules or of git's is longer than any that a person has.
    #[error("{} has more than {bytes_max} bytes", path.display())]
    TooLong {
        /// Which.
        path: PathBuf,
        /// The limit.
        bytes_max: u64,
    },
    /// What is called `.git`, or a file in it, names no folder of git's.
    #[error("{} names no folder of git's", path.display())]
    GitDir {
        /// Which.
        path: PathBuf,
        /// The folder.
        named: PathBuf,
    },
    /// The index says nothing that can be used.
    #[error("git's index {} can't be used", path.display())]
    Index {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: IndexProblem,
    },
    /// It is more than may be copied.
    #[error("it is too large to copy: {0}")]
    TooLarge(TooLarge),
    /// A file is not as long any more as it was. It may work another time.
    #[error("`{}` became shorter while it was copied", .0.display())]
    Shorter(PathBuf),
    /// The archive can't be read or written.
    #[error("the archive of the directory can't be read or written")]
    Archive(#[source] io::Error),
    /// These are not as they were when the session began.
    #[error("nothing was written back, because these changed meanwhile: {}", .0.join(", "))]
    Changed(Vec<String>),
    /// A path that leads elsewhere.
    #[error("`{path}` was not written back: {why}")]
    Elsewhere {
        /// Which.
        path: String,
        /// How.
        why: &'static str,
    },
    /// What is never written back, or was not accepted.
    #[error("nothing was written back: {}", sentence(.0))]
    Hazards(Vec<Hazard>),
    /// Commits of a sandbox that are not taken, none of them.
    #[error("the commits of the sandbox were not taken")]
    Commits(#[source] CommitProblem),
    /// A file can't be written. Others before it were; the same again goes on there.
    #[error("{path}")]
    Write {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What there is more of than may be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Bytes, all files together.
    #[error("more than {} MiB", .0 >> 20)]
    Bytes(u64),
    /// Files and links.
    #[error("more than {0} files")]
    Files(u64),
    /// Folders, whatever is in them.
    #[error("more than {0} folders")]
    Folders(u64),
}

fn sentence(hazards: &[Hazard]) -> String {
    let (told, more) = hazards.split_at(hazards.len().min(limits::TOLD_MAX));
    let told: Vec<_> = told.iter().map(ToString::to_string).collect();
    let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
    told.join("; ") + &more
}

impl Error {
    /// The directory itself can't be read.
    pub(crate) fn directory(path: &Path) -> impl Fn(beneath::Error) -> Self {
        move |error| {
            let (why, kind) = (reason(&error), error.kind());
            Self::Directory { path: path.to_owned(), why, kind }
        }
    }

    /// Something in a directory can't be read.
    pub(crate) fn unreadable(dir: &Path, path: &Path) -> impl Fn(beneath::Error) -> Self {
        move |error| Self::Unreadable { path: dir.join(path), why: reason(&error) }
    }
}

/// Why something beneath a directory can't be used, without its path.
pub(crate) fn reason(error: &beneath::Error) -> String {
    match error {
        beneath::Error::Io { source, .. } => source.to_string(),
        beneath::Error::Link(_) => "it leads through a link".to_owned(),
        beneath::Error::NoFile { kind, .. } => format!("it is {}", beneath::words(*kind)),
        beneath::Error::Outside(_) => "it is no path beneath the directory".to_owned(),
    }
}
