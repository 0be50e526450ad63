//! What the commands of a sandbox reach: what they may, and what they did.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use outrigger_api::{SandboxFlow, SandboxFlowList, SetNetwork};

use super::access::SandboxUse;
use crate::convert;
use crate::input::{Body, Name};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{NotedFlow, RequestError, Server};

/// Says what the commands of a sandbox reach from now on. What is open to another host ends.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/network",
    operation_id = "set_sandbox_network", tag = "sandboxes", request_body = SetNetwork,
    params(("id" = String, Path, description = "The sandbox")),
    responses(
        (status = 204, description = "It holds"),
        ChangeProblems,
    ))]
pub(crate) async fn set(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    Body(asked): Body<SetNetwork>,
) -> Result<StatusCode, RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::Drive)?;
    let set = server.parts.sandbox_egress.set_network(&id, &asked.network).await;
    set.map(|()| StatusCode::NO_CONTENT)
}

/// What the commands of a sandbox reached and what was refused to them. It goes with the sandbox;
/// the server's log keeps it.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/egress",
    operation_id = "list_sandbox_egress", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox")),
    responses(
        (status = 200, body = SandboxFlowList),
        ReadProblems,
    ))]
pub(crate) async fn egress(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
) -> Result<Json<SandboxFlowList>, RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::Look)?;
    let noted = server.parts.sandbox_egress.egress(&id).await?.into_iter();
    let told = noted.map(|NotedFlow { at_ms, flow }| SandboxFlow {
        at_ms,
        verdict: convert::flow_verdict(&flow),
        flow: convert::flow(&flow),
    });
    Ok(Json(SandboxFlowList { data: told.collect() }))
}
