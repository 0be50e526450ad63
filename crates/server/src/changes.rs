//! What a session changed in its workspace.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use outrigger_api::limits::PATCH_BYTES_MAX;
use outrigger_api::{AppliedChanges, ApplyChanges, ProblemCode, WorkspaceChanges};
use outrigger_policy::AccessAction;

use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server};

/// What a session changed, as it is now.
#[utoipa::path(get, path = "/v1/sessions/{id}/changes", tag = "sessions",
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
    let taken = server.parts.disks.changes(&session).await?;
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
#[utoipa::path(get, path = "/v1/sessions/{id}/changes.patch", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "text/x-patch"),
        ReadProblems,
    ))]
pub(crate) async fn patch(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<Response, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    let taken = server.parts.disks.changes(&session).await?;
    let file = format!("attachment; filename=\"{session}.patch\"");
    let headers =
        [(header::CONTENT_TYPE, "text/x-patch".to_owned()), (header::CONTENT_DISPOSITION, file)];
    Ok((headers, taken.patch).into_response())
}

/// Writes it back into the directory that the session began with, where that is this server's.
#[utoipa::path(post, path = "/v1/sessions/{id}/apply", tag = "sessions",
    params(("id" = String, Path, description = "The session")), request_body = ApplyChanges,
    responses(
        (status = 200, body = AppliedChanges),
        ChangeProblems,
    ))]
pub(crate) async fn apply(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    Body(asked): Body<ApplyChanges>,
) -> Result<Json<AppliedChanges>, RequestError> {
    let session = server.session(&person, &session, AccessAction::Manage).await?;
    let state = server.parts.engine.state(&session).await?;
    if state.in_turn() {
        let text = format!("session {session} works on it: wait until it answered, or stop it");
        return Err(RequestError::new(ProblemCode::Conflict, text));
    }
    server.parts.disks.apply(&session, asked).await.map(Json)
}
