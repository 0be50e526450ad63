//! Agents: listed, written, and started by messages of other systems.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State as Extract};
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outrigger_api::{AgentDefinition, AgentList, ChangedEntry, ProblemCode, WebhookAccepted};
use outrigger_policy::AccessAction;
use outrigger_store::entries::{ChangeRequest, EntryFile};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::agent_catalog::WebhookMessage;
use crate::headers::Replacement;
use crate::input::{Body, Name, QueryParams};
use crate::login::Person;
use crate::memory::{made, place, precondition, scope};
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server, limits};

/// Whose agent.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OwnerQuery {
    /// `user`, `organisation` or `group/NAME`; the person's own if absent.
    #[param(example = "user")]
    owner: Option<String>,
}

/// The agents that there are for a person: their own, those of their groups, of the organisation
/// and of the configuration.
#[utoipa::path(get, path = "/v1/agents",
    operation_id = "list_agents", tag = "agents", responses(
    (status = 200, body = AgentList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<AgentList>, RequestError> {
    Ok(Json(AgentList { data: server.parts.agents.list(&person.name).await? }))
}

/// Writes an agent, a new one or another version. Where changes are reviewed it is proposed.
#[utoipa::path(put, path = "/v1/agents/{name}",
    operation_id = "write_agent", tag = "agents",
    params(("name" = String, Path, pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 32, example = "reviewer", description = "The agent"), OwnerQuery, Replacement),
    request_body = AgentDefinition,
    responses(
        (status = 200, body = ChangedEntry),
        ChangeProblems,
    ))]
pub(crate) async fn write(
    Extract(server): Extract<Server>,
    person: Person,
    Name(name): Name,
    QueryParams(query): QueryParams<OwnerQuery>,
    headers: HeaderMap,
    Body(definition): Body<AgentDefinition>,
) -> Result<Json<ChangedEntry>, RequestError> {
    server.permit(&person, AccessAction::WriteMemory)?;
    let scope = scope(&server, &person)?;
    let owner = query.owner.as_deref().unwrap_or("user");
    let at = place(&format!("/agents/{owner}/{name}.toml"), &scope)?;
    let expected = precondition(&headers)?;
    let text = server.parts.agents.text(&definition)?;
    server.parts.agents.check(&at, &text)?;
    let change = ChangeRequest::Write { at: at.clone(), expected, file: EntryFile::of(text) };
    made(&server, &scope, &at, change, None).await
}

/// Takes a message of another system: it starts the agent, which is told it as data that nobody
/// vouches for. It is signed as GitHub does it (`X-Hub-Signature-256`, named by
/// `X-GitHub-Delivery`) or as Standard Webhooks has it (`webhook-id`, `webhook-timestamp`,
/// `webhook-signature`), and starts one session, however often it comes.
#[utoipa::path(post, path = "/v1/webhooks/{owner}/{name}",
    operation_id = "send_webhook", tag = "agents",
    params(
        ("owner" = String, Path, example = "organisation", description = "Whose the agent is: `organisation`, `configuration`, `group:NAME` or `person:NAME`"),
        ("name" = String, Path, example = "triage", description = "The agent"),
    ),
    request_body(content = String, content_type = "application/json"),
    security(()),
    responses(
        (status = 202, body = WebhookAccepted, description = "It is taken: the session goes on by itself"),
        ChangeProblems,
    ))]
pub(crate) async fn deliver(
    Extract(server): Extract<Server>,
    Path((owner, agent)): Path<(String, String)>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, RequestError> {
    let too_large = || {
        let text = format!("a message has at most {} bytes", limits::WEBHOOK_BYTES_MAX);
        RequestError::new(ProblemCode::TooLarge, text)
    };
    let body = match body {
        Ok(body) if body.len() <= limits::WEBHOOK_BYTES_MAX => body,
        Err(it) if it.status() != StatusCode::PAYLOAD_TOO_LARGE => {
            let text = format!("the body: {}", it.body_text());
            return Err(RequestError::new(ProblemCode::InvalidRequest, text));
        }
        Ok(_) | Err(_) => return Err(too_large()),
    };
    let message = WebhookMessage { owner, agent, headers, body: body.to_vec() };
    let session = server.parts.agents.deliver(message).await?.to_string();
    Ok((StatusCode::ACCEPTED, Json(WebhookAccepted { session })).into_response())
}
