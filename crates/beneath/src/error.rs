//! Why something beneath a directory could not be opened or changed.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::words;

/// Why something beneath a directory could not be opened or changed. All but `Io` are the
/// fault of whoever wrote the path or what stands there, and come again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A path that is empty, absolute, or goes up.
    #[error("`{}` is no path beneath the directory", .0.display())]
    Outside(PathBuf),
    /// A part of the path, or what it names, is a link.
    #[error("`{}` leads through a link", .0.display())]
    Link(PathBuf),
    /// What is there is no regular file.
    #[error("`{}` is {}", path.display(), words(*kind))]
    NoFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        kind: FileType,
    },
    /// What the kernel said.
    #[error("{}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// What the kernel said of a path.
    pub(crate) fn of(path: &Path) -> impl Fn(Errno) -> Self {
        move |errno| match errno {
            Errno::LOOP => Self::Link(path.to_owned()),
            Errno::XDEV => Self::Outside(path.to_owned()),
            errno => Self::Io { path: path.to_owned(), source: errno.into() },
        }
    }

    /// What the kernel said, as far as it did.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Io { source, .. } => source.kind(),
            Self::Outside(_) | Self::Link(_) | Self::NoFile { .. } => io::ErrorKind::InvalidInput,
        }
    }

    /// Whether there is nothing at the path: a part of it is missing, or is no directory.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }
}
