//! What a session changed in its workspace.

use axum::Json;
use axum::body::Body;
use axum::extract::State as Extract;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outrigger_agent::SessionId;
use outrigger_api::limits::PATCH_BYTES_MAX;
use outrigger_api::{AppliedChanges, ApplyChanges, ProblemCode, ReadObjects, WorkspaceChanges};
use outrigger_policy::AccessAction;
use std::io::Read;
use tokio::task::block_in_place;

use crate::input::{Body as JsonBody, Name};
use crate::limits::PIECE_BYTES;
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server};

/// What a session changed, as it is now.
#[utoipa::path(get, path = "/v1/sessions/{id}/changes",
    operation_id = "get_changes", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = WorkspaceChanges),
        ReadProblems,
    ))]
pub(crate) async fn all(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<Json<WorkspaceChanges>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    let taken = server.parts.changes.changes(&session).await?;
    let text = String::from_utf8_lossy(&taken.patch);
    let shown = &text[..text.floor_char_boundary(PATCH_BYTES_MAX)];
    Ok(Json(WorkspaceChanges {
        files: taken.files,
        patch: shown.to_owned(),
        hidden_bytes: (text.len() - shown.len()) as u64,
        warnings: taken.warnings,
    }))
}

/// All of it as a file that `git apply` takes.
#[utoipa::path(get, path = "/v1/sessions/{id}/changes.patch",
    operation_id = "get_patch", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = String, content_type = "text/x-patch"),
        ReadProblems,
    ))]
pub(crate) async fn patch(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<Response, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    let taken = server.parts.changes.changes(&session).await?;
    let file = format!("attachment; filename=\"{session}.patch\"");
    let headers =
        [(header::CONTENT_TYPE, "text/x-patch".to_owned()), (header::CONTENT_DISPOSITION, file)];
    Ok((headers, taken.patch).into_response())
}

/// All of it as a tar archive: each file as it was beneath `before/`, and as it is beneath
/// `after/`.
#[utoipa::path(get, path = "/v1/sessions/{id}/changes.tar", operation_id = "get_change_archive", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = String, content_type = "application/x-tar"),
        ReadProblems,
    ))]
pub(crate) async fn archive(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<Response, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    at_rest(&server, &session).await?;
    let archive = server.parts.changes.change_archive(&session).await?;
    let pieces = stream::unfold(archive, async |mut archive| {
        let mut piece = vec![0; PIECE_BYTES];
        let read = block_in_place(|| archive.read(&mut piece));
        match read {
            Ok(0) => None,
            Ok(bytes) => {
                piece.truncate(bytes);
                Some((Ok(piece), archive))
            }
            Err(error) => Some((Err(error), archive)),
        }
    });
    let headers = [(header::CONTENT_TYPE, "application/x-tar")];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// What was committed in a session's sandbox: the id of its HEAD in a line, and then the objects
/// that it has beyond what one knows, as `git cat-file --batch` prints them. Nothing where there
/// is no commit. It is as hostile as what made it.
#[utoipa::path(post, path = "/v1/sessions/{id}/objects", operation_id = "read_objects", tag = "sessions",
    params(("id" = String, Path, description = "The session")), request_body = ReadObjects,
    responses(
        (status = 200, body = String, content_type = "application/octet-stream"),
        ChangeProblems,
    ))]
pub(crate) async fn objects(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    JsonBody(asked): JsonBody<ReadObjects>,
) -> Result<Response, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    at_rest(&server, &session).await?;
    let objects = server.parts.changes.objects(&session, asked).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], objects).into_response())
}

/// An error while the session's turn runs: half of its work would not fit on anything.
async fn at_rest(server: &Server, session: &SessionId) -> Result<(), RequestError> {
    if !server.parts.engine.state(session).await?.in_turn() {
        return Ok(());
    }
    let text = format!("session {session} works on it: wait until it answered, or stop it");
    Err(RequestError::new(ProblemCode::Conflict, text))
}

/// Writes it back into the directory that the session began with, where that is this server's.
#[utoipa::path(post, path = "/v1/sessions/{id}/apply",
    operation_id = "apply_changes", tag = "sessions",
    params(("id" = String, Path, description = "The session")), request_body = ApplyChanges,
    responses(
        (status = 200, body = AppliedChanges),
        ChangeProblems,
    ))]
pub(crate) async fn apply(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    JsonBody(asked): JsonBody<ApplyChanges>,
) -> Result<Json<AppliedChanges>, RequestError> {
    let session = server.session(&person, &session, AccessAction::Manage).await?;
    at_rest(&server, &session).await?;
    server.parts.changes.apply(&session, asked).await.map(Json)
}
