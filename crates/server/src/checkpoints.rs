//! Where a session stood: listed, forked from, gone back to.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use outrigger_agent::Seq;
use outrigger_api::{CheckpointInfo, CheckpointList, ForkSession, RewindSession, SessionInfo};
use outrigger_policy::AccessAction;

use crate::headers::Idempotency;
use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::request_keys::key_of;
use crate::{RequestError, Server, sessions};

/// The checkpoints of a session, the oldest first.
#[utoipa::path(get, path = "/v1/sessions/{id}/checkpoints",
    operation_id = "list_checkpoints", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = CheckpointList),
        ReadProblems,
    ))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<Json<CheckpointList>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    let data = server.parts.disks.checkpoints(&session).await?;
    Ok(Json(CheckpointList { data }))
}

/// Begins another session where this one stood. It is named after the idempotency key, so that
/// the same request makes one session however often it comes.
#[utoipa::path(post, path = "/v1/sessions/{id}/fork",
    operation_id = "fork_session", tag = "sessions", request_body = ForkSession,
    params(("id" = String, Path, description = "The session"), Idempotency),
    responses(
        (status = 201, body = SessionInfo, headers(("Location" = String, description = "Where it is"))),
        ChangeProblems,
    ))]
pub(crate) async fn fork(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    headers: HeaderMap,
    Body(asked): Body<ForkSession>,
) -> Result<Response, RequestError> {
    let session = server.session(&person, &session, AccessAction::Manage).await?;
    let request = (session.as_str(), &asked);
    let keyed = server.keys.keyed(&person.name, ("sessions", key_of(&headers)?), &request)?;
    let into = sessions::named(&person, &headers);
    server.parts.disks.fork(&session, asked.at.map(Seq), &into, &person.name).await?;
    keyed.done(&server.keys);
    let info = server.shown(&person, &into).await?;
    let location = format!("/v1/sessions/{into}");
    Ok((StatusCode::CREATED, [("location", location)], Json(info)).into_response())
}

/// Takes a session back to where it stood. What was spent stays spent.
#[utoipa::path(post, path = "/v1/sessions/{id}/rewind",
    operation_id = "rewind_session", tag = "sessions", request_body = RewindSession,
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = CheckpointInfo),
        ChangeProblems,
    ))]
pub(crate) async fn rewind(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    Body(asked): Body<RewindSession>,
) -> Result<Json<CheckpointInfo>, RequestError> {
    let session = server.session(&person, &session, AccessAction::Manage).await?;
    server.parts.disks.rewind(&session, asked.to.map(Seq), &person.name).await.map(Json)
}
