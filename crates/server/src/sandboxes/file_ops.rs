//! File operations of sandboxes, whose answers are of one kind.

use outrigger_sandbox::{
    Error, FileError, FileErrorKind, FileOp, FileReply, ListEntry, Sandbox, limits,
};

use crate::RequestError;

/// The error of an answer that is of another kind.
pub(super) fn astray() -> RequestError {
    Error::Backend("the sandbox answers another question".to_owned()).into()
}

/// A file operation whose answer is only that it is done.
pub(super) async fn done(sandbox: &dyn Sandbox, op: FileOp) -> Result<(), RequestError> {
    match sandbox.files(op).await? {
        FileReply::Done | FileReply::Written { .. } => Ok(()),
        _ => Err(astray()),
    }
}

/// What is at a path.
pub(super) async fn stat(sandbox: &dyn Sandbox, path: &str) -> Result<ListEntry, RequestError> {
    match sandbox.files(FileOp::Stat { path: path.to_owned() }).await? {
        FileReply::Entry(entry) => Ok(entry),
        _ => Err(astray()),
    }
}

/// A piece of a file, and how long the whole of it is.
pub(super) async fn piece(
    sandbox: &dyn Sandbox,
    path: &str,
    offset: u64,
    most: u64,
) -> Result<(Vec<u8>, u64), RequestError> {
    let bytes_max = most.min(limits::FILE_CHUNK_BYTES_MAX);
    match sandbox.files(FileOp::Read { path: path.to_owned(), offset, bytes_max }).await? {
        FileReply::Bytes { bytes, total_bytes } => Ok((bytes, total_bytes)),
        _ => Err(astray()),
    }
}

/// The error of a path that can't be one.
pub(super) fn invalid_path(path: &str, detail: &str) -> RequestError {
    let (kind, path, detail) = (FileErrorKind::InvalidPath, path.to_owned(), detail.to_owned());
    Error::File(FileError { kind, path, detail }).into()
}
