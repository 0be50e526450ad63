//! Why an entry was not read or changed, as the typed errors of files.

use outrigger_sandbox::{FileError, FileErrorKind};
use outrigger_store::{Error as StoreError, entries::Error as EntryError};

use crate::limits;

pub(super) fn error(kind: FileErrorKind, path: &str, detail: impl Into<String>) -> FileError {
    FileError { kind, path: path.to_owned(), detail: detail.into() }
}

pub(super) fn absent(path: &str) -> FileError {
    error(FileErrorKind::FileNotFound, path, "nothing is there")
}

/// The same for an error of the store's.
pub(super) fn refusal(path: &str, failed: EntryError) -> FileError {
    use FileErrorKind as Kind;
    let detail = failed.to_string();
    let kind = match failed {
        EntryError::Absent => return absent(path),
        EntryError::Conflict(current) => {
            let text = current.bytes.as_deref().map(std::str::from_utf8);
            let detail = match text {
                Some(Ok(text)) => {
                    let most = limits::CONFLICT_BYTES_MAX.min(text.len());
                    let end = text.floor_char_boundary(most);
                    let cut = if end < text.len() { " [cut]" } else { "" };
                    format!("{detail}, and says:\n{}{cut}", &text[..end])
                }
                Some(Err(_)) | None => detail,
            };
            return error(Kind::Conflict, path, detail);
        }
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
        | EntryError::Pruned => Kind::PermissionDenied,
        EntryError::Path(_) => Kind::InvalidPath,
        EntryError::TooLarge { .. } => Kind::TooLarge,
        EntryError::Store(StoreError::NoSpace { .. }) => Kind::NoSpace,
        EntryError::Store(_) => Kind::Io,
    };
    error(kind, path, detail)
}
