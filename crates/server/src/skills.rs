//! Skills, listed; their files are read and written as those of memory are.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_api::SkillList;

use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server};

/// The skills that are yours to see, with their digests, and whether sessions are told of them. Their
/// files are below `/v1/memory`.
#[utoipa::path(get, path = "/v1/skills",
    operation_id = "list_skills", tag = "memory", responses(
    (status = 200, body = SkillList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<SkillList>, RequestError> {
    Ok(Json(server.parts.skills.list(&person.name).await?))
}
