//! Files of a session's workspace.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_api::{FileContent, FileList};
use outrigger_policy::AccessAction;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::input::{Name, QueryParams};
use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server};

/// Which folder or file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PathQuery {
    /// In the sandbox, for example `/workspace/src`.
    #[param(min_length = 1, example = "/workspace")]
    pub(crate) path: String,
}

/// What is in a folder of a session's sandbox, as it is now.
#[utoipa::path(get, path = "/v1/sessions/{id}/files",
    operation_id = "list_files", tag = "sessions",
    params(("id" = String, Path, description = "The session"), PathQuery),
    responses(
        (status = 200, body = FileList),
        ReadProblems,
    ))]
pub(crate) async fn folder(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    QueryParams(query): QueryParams<PathQuery>,
) -> Result<Json<FileList>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    server.parts.disks.folder(&session, query.path).await.map(Json)
}

/// A file of a session's sandbox, as it is now.
#[utoipa::path(get, path = "/v1/sessions/{id}/files/content",
    operation_id = "get_file", tag = "sessions",
    params(("id" = String, Path, description = "The session"), PathQuery),
    responses(
        (status = 200, body = FileContent),
        ReadProblems,
    ))]
pub(crate) async fn file(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    QueryParams(query): QueryParams<PathQuery>,
) -> Result<Json<FileContent>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    server.parts.disks.file(&session, query.path).await.map(Json)
}
