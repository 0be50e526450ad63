//! Journals as they are kept.

use axum::Json;
use axum::extract::State as Extract;
use outrigger_agent::{FORMAT, Seq};
use outrigger_api::{JournalPage, ProblemCode};
use outrigger_policy::AccessAction;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use utoipa::IntoParams;

use crate::input::{Name, QueryParams};
use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server};

/// From where on.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct JournalQuery {
    /// The place of the last record that is known; all of them if absent.
    #[serde(default)]
    after: u64,
}

/// The records of a session's journal after a place, a page at a time, as they are kept.
#[utoipa::path(get, path = "/v1/sessions/{id}/journal", operation_id = "read_journal", tag = "sessions",
    params(("id" = String, Path, description = "The session"), JournalQuery),
    responses(
        (status = 200, body = JournalPage),
        ReadProblems,
    ))]
pub(crate) async fn page(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    QueryParams(query): QueryParams<JournalQuery>,
) -> Result<Json<JournalPage>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    let page = server.parts.journal.load(&session, Seq(query.after)).await?;
    let data: Result<Vec<_>, _> = page.records.iter().map(to_raw_value).collect();
    let data = data.map_err(|error| RequestError::of(ProblemCode::Internal, &error))?;
    Ok(Json(JournalPage { format: FORMAT, data, more: page.more_after.is_some() }))
}
