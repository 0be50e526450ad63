//! Files of a sandbox, as the server tells them.

use outrigger_api::limits::{FILE_BYTES_MAX, FOLDER_FILES_MAX};
use outrigger_api::{FileContent, FileList};
use outrigger_sandbox::{Error, FileErrorKind, FileOp, FileReply, Sandbox, is_within};
use outrigger_server::file_info;
use outrigger_tools::namespace::MOUNTS;
use std::sync::Arc;

use crate::exit::{Failure, Kind, Outcome};
use crate::sandbox::failed;

pub(super) async fn folder(sandbox: Arc<dyn Sandbox>, path: String) -> Outcome<FileList> {
    let op = FileOp::List { path: path.clone(), entries_max: FOLDER_FILES_MAX };
    match sandbox.files(op).await {
        Ok(FileReply::Entries { entries, truncated: more }) => {
            let data = entries.into_iter().map(file_info);
            Ok(FileList { path, data: data.collect(), more })
        }
        other => Err(unexpected(other)),
    }
}

pub(super) async fn file(sandbox: Arc<dyn Sandbox>, path: String) -> Outcome<FileContent> {
    let op = FileOp::Read { path: path.clone(), offset: 0, bytes_max: FILE_BYTES_MAX };
    match sandbox.files(op).await {
        Ok(FileReply::Bytes { bytes: mut read, total_bytes: bytes }) => {
            if bytes > read.len() as u64 {
                // The cut may be in the middle of a character.
                let whole = match std::str::from_utf8(&read) {
                    Err(error) if error.error_len().is_none() => error.valid_up_to(),
                    _ => read.len(),
                };
                read.truncate(whole);
            }
            let hidden_bytes = bytes.saturating_sub(read.len() as u64);
            let text = String::from_utf8(read).ok().filter(|text| !text.contains('\0'));
            Ok(FileContent { path, bytes, text, hidden_bytes })
        }
        other => Err(unexpected(other)),
    }
}

fn is_mounted(path: &str) -> bool {
    MOUNTS.iter().any(|mount| is_within(path, mount))
}

fn unexpected(reply: Result<FileReply, Error>) -> Failure {
    match reply {
        // As what is mounted says that nobody serves.
        Err(Error::File(error)) if error.kind == FileErrorKind::Io && is_mounted(&error.path) => {
            Failure::new(Kind::Conflict, error.to_string()).hint(
                "Memory and skills are served in a sandbox from its session's next turn on; `GET /v1/memory` has them.",
            )
        }
        Err(error) => failed(&error),
        Ok(_) => {
            Failure::new(Kind::SandboxUnavailable, "the sandbox answered what was not asked for")
        }
    }
}
