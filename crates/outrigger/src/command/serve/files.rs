//! Files of a sandbox, as the server tells them.

use outrigger_api::limits::{FILE_BYTES_MAX, FOLDER_FILES_MAX};
use outrigger_api::{FileContent, FileList};
use outrigger_sandbox::{Error, FileErrorKind, FileOp, FileReply, Sandbox};
use outrigger_server::file_info;
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

fn unexpected(reply: Result<FileReply, Error>) -> Failure {
    match reply {
        // As what is served says that nobody serves.
        Err(Error::File(error)) if error.kind == FileErrorKind::Io => {
            Failure::new(Kind::Conflict, error.to_string()).hint(
                "What is beneath /memory, /skills and /agents is served from the session's next turn on; `GET /v1/memory` has it.",
            )
        }
        Err(error) => failed(&error),
        Ok(_) => {
            Failure::new(Kind::SandboxUnavailable, "the sandbox answered what was not asked for")
        }
    }
}
