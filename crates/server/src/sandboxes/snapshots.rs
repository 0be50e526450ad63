//! Disks that are kept, what is made from them, and templates.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use outrigger_api::{
    ForkSandbox, SandboxInfo, SnapshotInfo, SnapshotList, TakeSnapshot, TemplateList,
};
use outrigger_policy::AccessAction;
use outrigger_sandbox::SnapshotId;

use super::access::{SandboxUse, may};
use super::{check_label, created, new_sandbox};
use crate::budgets::check_stopped;
use crate::headers::Idempotency;
use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::request_keys::key_of;
use crate::sessions::named;
use crate::{RequestError, Server};

/// Keeps the disk of a sandbox as it is now, to make others from. No command may run meanwhile.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/snapshots",
    operation_id = "take_snapshot", tag = "sandboxes", request_body = TakeSnapshot,
    params(("id" = String, Path, description = "The sandbox"), Idempotency),
    responses(
        (status = 201, body = SnapshotInfo),
        ChangeProblems,
    ))]
pub(crate) async fn take(
    Extract(server): Extract<Server>,
    person: Person,
    headers: HeaderMap,
    Name(id): Name,
    Body(asked): Body<TakeSnapshot>,
) -> Result<(StatusCode, Json<SnapshotInfo>), RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::Drive)?;
    check_label(&asked.label)?;
    let request = (id.as_str(), &asked);
    let keyed = server.keys.keyed(&person.name, ("snapshots", key_of(&headers)?), &request)?;
    let name = SnapshotId::new(format!("snapshot-{}", named(&person, &headers)))
        .expect("letters, a dash and digits are plain");
    let of = (person.name.as_str(), &name);
    let taken = server.parts.snapshots.take(&id, of, &asked.label).await?;
    keyed.done(&server.keys);
    Ok((StatusCode::CREATED, Json(taken)))
}

/// Snapshots, the newest first.
#[utoipa::path(get, path = "/v1/snapshots",
    operation_id = "list_snapshots", tag = "sandboxes", responses(
    (status = 200, body = SnapshotList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<SnapshotList>, RequestError> {
    let rights = server.rights(&person)?;
    let mut data = server.parts.snapshots.snapshots().await?;
    data.retain(|info| may(&rights, &info.person, SandboxUse::List));
    Ok(Json(SnapshotList { data }))
}

/// Forgets a snapshot. Sandboxes that were made from it stay as they are.
#[utoipa::path(delete, path = "/v1/snapshots/{id}",
    operation_id = "remove_snapshot", tag = "sandboxes",
    params(("id" = String, Path, description = "The snapshot")),
    responses(
        (status = 204, description = "It is gone"),
        ChangeProblems,
    ))]
pub(crate) async fn remove(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
) -> Result<StatusCode, RequestError> {
    let id = server.snapshot(&person, &id, SandboxUse::Keep)?;
    server.parts.snapshots.forget(&id).await.map(|()| StatusCode::NO_CONTENT)
}

/// Makes another sandbox with the disk of one, as it is now or as a snapshot of it has it. Both
/// go their own way from then on.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/forks",
    operation_id = "fork_sandbox", tag = "sandboxes", request_body = ForkSandbox,
    params(("id" = String, Path, description = "The sandbox"), Idempotency),
    responses(
        (status = 201, body = SandboxInfo, headers(("Location" = String, description = "Where it is"))),
        ChangeProblems,
    ))]
pub(crate) async fn fork(
    Extract(server): Extract<Server>,
    person: Person,
    headers: HeaderMap,
    Name(id): Name,
    Body(asked): Body<ForkSandbox>,
) -> Result<Response, RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::Drive)?;
    server.permit(&person, AccessAction::Start)?;
    check_stopped(&server, &person).await?;
    check_label(&asked.label)?;
    if let Some(snapshot) = &asked.snapshot {
        server.snapshot(&person, snapshot, SandboxUse::Drive)?;
    }
    let request = (id.as_str(), &asked);
    let keyed = server.keys.keyed(&person.name, ("sandboxes", key_of(&headers)?), &request)?;
    let new = new_sandbox(&person, &headers);
    let info = server.parts.sandboxes.fork(&id, (&person.name, &new), asked).await?;
    keyed.done(&server.keys);
    Ok(created(&*server.rights(&person)?, info))
}

/// What sandboxes can be made from here, and the most that one may take.
#[utoipa::path(get, path = "/v1/templates",
    operation_id = "list_templates", tag = "sandboxes", responses(
    (status = 200, body = TemplateList),
    ReadProblems,
))]
pub(crate) async fn templates(
    Extract(server): Extract<Server>,
    _: Person,
) -> Result<Json<TemplateList>, RequestError> {
    server.parts.snapshots.templates().await.map(Json)
}
