//! Sandboxes that people drive themselves: made, listed, suspended, removed.
//!
//! What makes them is handed in as a [`SandboxHost`].
//!
//! [`SandboxHost`]: crate::SandboxHost

mod access;
pub(crate) mod archive;
mod command;
pub(crate) mod execs;
mod file_ops;
mod file_writer;
pub(crate) mod files;
pub(crate) mod network;
mod output;
pub(crate) mod snapshots;
pub(crate) mod terminal;
mod uploads;

pub(crate) use access::SandboxUse;
pub(crate) use uploads::UploadTurns;

use axum::Json;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use outrigger_api::limits::SANDBOX_LABEL_CHARS_MAX;
use outrigger_api::{CreateSandbox, ProblemCode, SandboxInfo, SandboxList, SuspendSandbox};
use outrigger_policy::{AccessAction, AccessRights};
use outrigger_sandbox::SandboxId;

use self::access::may;
use crate::budgets::check_stopped;
use crate::headers::Idempotency;
use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::request_keys::key_of;
use crate::sessions::named;
use crate::{RequestError, Server};

/// Says whether it is too long for what people are told.
pub(crate) fn check_label(label: &str) -> Result<(), RequestError> {
    if label.chars().count() <= SANDBOX_LABEL_CHARS_MAX {
        return Ok(());
    }
    let text = format!("`label`: {SANDBOX_LABEL_CHARS_MAX} characters are the most");
    Err(RequestError::new(ProblemCode::InvalidRequest, text))
}

/// A name for a new one: of the idempotency key, else of chance.
pub(crate) fn new_sandbox(person: &Person, headers: &HeaderMap) -> SandboxId {
    let name = format!("sandbox-{}", named(person, headers));
    SandboxId::new(name).expect("letters, a dash and digits are plain")
}

/// As it is told to somebody.
pub(crate) fn told(rights: &AccessRights, info: SandboxInfo) -> SandboxInfo {
    SandboxInfo { may_drive: may(rights, &info.person, SandboxUse::Drive), ..info }
}

pub(crate) fn created(rights: &AccessRights, info: SandboxInfo) -> Response {
    let location = format!("/v1/sandboxes/{}", info.id);
    (StatusCode::CREATED, [("location", location)], Json(told(rights, info))).into_response()
}

/// Sandboxes, the newest first: one's own, and where one's role sees those of others, these too.
/// Sandboxes of sessions are none of them.
#[utoipa::path(get, path = "/v1/sandboxes",
    operation_id = "list_sandboxes", tag = "sandboxes", responses(
    (status = 200, body = SandboxList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<SandboxList>, RequestError> {
    let rights = server.rights(&person)?;
    let all = server.parts.sandboxes.list().await?.into_iter();
    let seen = all.filter(|info| may(&rights, &info.person, SandboxUse::List));
    Ok(Json(SandboxList { data: seen.map(|info| told(&rights, info)).collect() }))
}

/// Makes a sandbox. It is named after the idempotency key, so that the same
/// request makes one however often it comes.
#[utoipa::path(post, path = "/v1/sandboxes",
    operation_id = "create_sandbox", tag = "sandboxes", request_body = CreateSandbox,
    params(Idempotency),
    responses(
        (status = 201, body = SandboxInfo, headers(("Location" = String, description = "Where it is"))),
        ChangeProblems,
    ))]
pub(crate) async fn create(
    Extract(server): Extract<Server>,
    person: Person,
    headers: HeaderMap,
    Body(asked): Body<CreateSandbox>,
) -> Result<Response, RequestError> {
    server.permit(&person, AccessAction::Start)?;
    check_stopped(&server, &person).await?;
    check_label(&asked.label)?;
    if let Some(snapshot) = &asked.snapshot {
        server.snapshot(&person, snapshot, SandboxUse::Drive)?;
    }
    let keyed = server.keys.keyed(&person.name, ("sandboxes", key_of(&headers)?), &asked)?;
    let id = new_sandbox(&person, &headers);
    let info = server.parts.sandboxes.create(&person.name, &id, asked).await?;
    keyed.done(&server.keys);
    Ok(created(&*server.rights(&person)?, info))
}

/// One sandbox.
#[utoipa::path(get, path = "/v1/sandboxes/{id}",
    operation_id = "get_sandbox", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox")),
    responses(
        (status = 200, body = SandboxInfo),
        ReadProblems,
    ))]
pub(crate) async fn one(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
) -> Result<Json<SandboxInfo>, RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::List)?;
    let all = server.parts.sandboxes.list().await?;
    let found = all.into_iter().find(|info| info.id == id.as_str());
    let found = found
        .ok_or_else(|| RequestError::not_found(format!("there is no sandbox `{id}` any more")))?;
    Ok(Json(told(&*server.rights(&person)?, found)))
}

/// Ends a sandbox and deletes its disk. Snapshots of it stay.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}",
    operation_id = "remove_sandbox", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox")),
    responses(
        (status = 204, description = "It is gone, with all that ran in it"),
        ChangeProblems,
    ))]
pub(crate) async fn remove(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
) -> Result<StatusCode, RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::Keep)?;
    server.parts.sandboxes.remove(&id).await.map(|()| StatusCode::NO_CONTENT)
}

/// Stops everything in a sandbox until it is next used; its disk is kept.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/suspend",
    operation_id = "suspend_sandbox", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox")), request_body = SuspendSandbox,
    responses(
        (status = 204, description = "It rests"),
        ChangeProblems,
    ))]
pub(crate) async fn suspend(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    Body(asked): Body<SuspendSandbox>,
) -> Result<StatusCode, RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::Keep)?;
    server.parts.sandboxes.suspend(&id, asked.how).await.map(|()| StatusCode::NO_CONTENT)
}
