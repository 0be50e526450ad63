//! Secrets of the organisation. What keeps them is handed in; a value comes in and never goes out.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use outrigger_api::{RotateSecret, SecretInfo, SecretList, SetSecret};
use outrigger_policy::AccessAction;

use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server};

/// All secrets, without their values.
#[utoipa::path(get, path = "/v1/secrets",
    operation_id = "list_secrets", tag = "secrets", responses(
    (status = 200, body = SecretList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    _: Person,
) -> Result<Json<SecretList>, RequestError> {
    Ok(Json(SecretList { data: server.parts.secrets.list().await? }))
}

/// Keeps a secret, and says where it is sent. One of that name is replaced.
#[utoipa::path(put, path = "/v1/secrets/{name}",
    operation_id = "set_secret", tag = "secrets", request_body = SetSecret,
    params(("name" = String, Path, pattern = "^[A-Za-z_][A-Za-z0-9_]*$", max_length = 128, example = "API_TOKEN", description = "The variable in which commands look for it")),
    responses(
        (status = 200, body = SecretInfo),
        ChangeProblems,
    ))]
pub(crate) async fn set(
    Extract(server): Extract<Server>,
    person: Person,
    Name(name): Name,
    Body(secret): Body<SetSecret>,
) -> Result<Json<SecretInfo>, RequestError> {
    server.permit(&person, AccessAction::Administer)?;
    server.parts.secrets.set(&name, secret, &person.name).await.map(Json)
}

/// Gives a secret another value. Where it is sent stays, and so do placeholders.
#[utoipa::path(post, path = "/v1/secrets/{name}/rotate",
    operation_id = "rotate_secret", tag = "secrets",
    request_body = RotateSecret,
    params(("name" = String, Path, pattern = "^[A-Za-z_][A-Za-z0-9_]*$", max_length = 128, example = "API_TOKEN", description = "The secret")),
    responses(
        (status = 200, body = SecretInfo),
        ChangeProblems,
    ))]
pub(crate) async fn rotate(
    Extract(server): Extract<Server>,
    person: Person,
    Name(name): Name,
    Body(value): Body<RotateSecret>,
) -> Result<Json<SecretInfo>, RequestError> {
    server.permit(&person, AccessAction::Administer)?;
    server.parts.secrets.rotate(&name, value, &person.name).await.map(Json)
}

/// Forgets a secret. What is under way with it ends.
#[utoipa::path(delete, path = "/v1/secrets/{name}",
    operation_id = "revoke_secret", tag = "secrets",
    params(("name" = String, Path, pattern = "^[A-Za-z_][A-Za-z0-9_]*$", max_length = 128, example = "API_TOKEN", description = "The secret")),
    responses(
        (status = 204, description = "It is sent nowhere any more"),
        ChangeProblems,
    ))]
pub(crate) async fn revoke(
    Extract(server): Extract<Server>,
    person: Person,
    Name(name): Name,
) -> Result<StatusCode, RequestError> {
    server.permit(&person, AccessAction::Administer)?;
    server.parts.secrets.revoke(&name).await.map(|()| StatusCode::NO_CONTENT)
}
