//! Why an entry was not read or changed, as the typed errors of files.

use outrigger_sandbox::{FileError, FileErrorKind};
use outrigger_store::{Error as StoreError, entries::Error as EntryError};

pub(super) fn error(kind: FileErrorKind, path: &str, detail: impl Into<String>) -> FileError {
    FileError { kind, path: path.to_owned(), detail: detail.into() }
}

pub(super) fn absent(path: &str) -> FileError {
    error(FileErrorKind::FileNotFound, path, "nothing is there")
}

/// An error of the store's as one of a file.
pub(super) fn refusal(path: &str, failed: EntryError) -> FileError {
    use FileErrorKind as Kind;
    let detail = failed.to_string();
    let kind = match failed {
        EntryError::Absent => return absent(path),
        EntryError::Conflict(_) => Kind::Conflict,
        EntryError::Exists => Kind::AlreadyExists,
        EntryError::Folder => Kind::IsDirectory,
        EntryError::NotFolder => Kind::NotADirectory,
        EntryError::NotEmpty => Kind::NotEmpty,
        EntryError::Inside
        | EntryError::NotText
        | EntryError::Words
        | EntryError::Setting { .. } => Kind::InvalidArgument,
        EntryError::Root
        | EntryError::NeedsReview
        | EntryError::NotReviewer
        | EntryError::NotAuthor
        | EntryError::Decided { .. }
        | EntryError::Redacted(_)
        | EntryError::Related(_)
        | EntryError::Pruned => Kind::PermissionDenied,
        EntryError::Path(_) => Kind::InvalidPath,
        EntryError::TooLarge { .. } => Kind::TooLarge,
        EntryError::Quota(_) | EntryError::Store(StoreError::NoSpace { .. }) => Kind::NoSpace,
        EntryError::Store(_) => Kind::Io,
    };
    error(kind, path, detail)
}
