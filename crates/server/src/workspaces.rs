//! Directories that people send, for sessions that begin with them.

use axum::Json;
use axum::body::Body;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use flate2::write::GzDecoder;
use futures_util::TryStreamExt as _;
use outrigger_api::{ProblemCode, UploadedWorkspace};
use outrigger_policy::AccessAction;
use std::fs::File;
use std::io::{self, Write};
use tokio::task::block_in_place;

use crate::host::Upload;
use crate::input::pieces;
use crate::login::Person;
use crate::problems::ChangeProblems;
use crate::{RequestError, Server};

/// Sends a directory: a tar archive, compressed by gzip, of files, links and folders by their
/// paths in it. A session is begun with it once, within a day. Of a `.git` at its top the history
/// is taken: references, objects and index, and of its settings the addresses of remotes.
#[utoipa::path(post, path = "/v1/workspaces", operation_id = "upload_workspace", tag = "sessions",
    request_body(content = String, content_type = "application/gzip"),
    responses(
        (status = 201, body = UploadedWorkspace),
        ChangeProblems,
    ))]
pub(crate) async fn upload(
    Extract(server): Extract<Server>,
    person: Person,
    body: Body,
) -> Result<(StatusCode, Json<UploadedWorkspace>), RequestError> {
    server.permit(&person, AccessAction::Start)?;
    let Upload { id, archive, bytes_max } = server.parts.uploads.begin_upload(&person.name).await?;
    let mut unpacking = GzDecoder::new(LimitedFile { archive, left: bytes_max });
    // What it unpacks to is limited.
    let mut pieces = pieces(body, u64::MAX);
    while let Some(piece) = pieces.try_next().await? {
        // It is work for a processor, and for a disk.
        block_in_place(|| unpacking.write_all(&piece)).map_err(|error| refused(&error))?;
    }
    block_in_place(|| unpacking.finish()).map_err(|error| refused(&error))?;
    let uploaded = server.parts.uploads.end_upload(&id).await?;
    Ok((StatusCode::CREATED, Json(uploaded)))
}

fn refused(error: &io::Error) -> RequestError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => RequestError::new(
            ProblemCode::TooLarge,
            "the directory is larger than this server takes",
        )
        .hint("`workspace.mib_max` and `workspace.files_max` of the server say how large."),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            let text = format!("the body is no archive that gzip compressed: {error}");
            RequestError::new(ProblemCode::InvalidRequest, text)
        }
        _ => RequestError::of(ProblemCode::Internal, error),
    }
}

/// A file that grows to a limit.
struct LimitedFile {
    archive: File,
    left: u64,
}

impl Write for LimitedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        self.archive.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.archive.flush()
    }
}
