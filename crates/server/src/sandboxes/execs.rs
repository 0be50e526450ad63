//! Commands in sandboxes: run once by their names, waited for, followed, typed to, killed.
//!
//! Nothing is kept here of a command but in which life of its sandbox it was begun: its guest has
//! the rest, for this server and for the next one.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, StatusCode};
use outrigger_api::limits::EXEC_WAIT_SECONDS_MAX;
use outrigger_api::{ExecInfo, ExecInput, ExecState, ProblemCode, RunCommand};
use outrigger_sandbox::{Error as SandboxError, Execute, Input, Sandbox};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::access::SandboxUse;
use super::command::{attach, ended, of_another_life, request, running, size};
use super::output::{OutputPosition, follow_output};
use crate::admission::{Admission, AdmittedTo};
use crate::events::{Frames, sse};
use crate::headers::{Idempotency, last_event};
use crate::input::{Body, Name, NamePair, NoFields, OptionalBody, QueryParams};
use crate::limits::EXEC_LOOK_MS;
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::request_keys::key_of;
use crate::{RequestError, Server};

/// How long it is waited for a command.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// Seconds to wait for its end, at most 60; not at all if absent.
    #[serde(default)]
    wait: u32,
}

/// Of output that is followed from where it was left.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) struct LastOutput {
    /// The `id` of the last event that came.
    #[param(rename = "Last-Event-ID", pattern = r"^[0-9]+\.[0-9]+$", example = "0.0")]
    position: Option<String>,
}

/// How a command stands, after it was waited for so long.
async fn waited(
    sandbox: &dyn Sandbox,
    request: Execute,
    wait_seconds: u32,
) -> Result<ExecInfo, SandboxError> {
    let id = request.id.clone();
    let wait = match wait_seconds.min(EXEC_WAIT_SECONDS_MAX) {
        0 => Duration::from_millis(EXEC_LOOK_MS),
        seconds => Duration::from_secs(seconds.into()),
    };
    match timeout(wait, sandbox.execute(request, &())).await {
        Ok(outcome) => Ok(ended(&id, outcome?)),
        Err(_) => Ok(running(&id)),
    }
}

/// Runs a command and waits for its end. One that takes longer goes on, and is attached to by its
/// name; so does one whose caller hung up. Without an `id` it is named after the idempotency key.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/execs",
    operation_id = "run_command", tag = "sandboxes", request_body = RunCommand,
    params(("id" = String, Path, description = "The sandbox"), Idempotency),
    responses(
        (status = 200, body = ExecInfo, description = "It ended"),
        (status = 202, body = ExecInfo, description = "It runs"),
        ChangeProblems,
    ))]
pub(crate) async fn run(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    headers: HeaderMap,
    Body(mut asked): Body<RunCommand>,
) -> Result<(StatusCode, Json<ExecInfo>), RequestError> {
    let id = server.sandbox(&person, &id, SandboxUse::Drive)?;
    let wait = asked.wait.take().unwrap_or(EXEC_WAIT_SECONDS_MAX);
    if let (None, Some(key)) = (&asked.id, key_of(&headers)?) {
        asked.id = Some(key.to_owned());
    }
    let keyed = server.keys.keyed(&person.name, (id.as_str(), asked.id.as_deref()), &asked)?;
    let mut request = request(asked)?;
    let sandbox = server.parts.sandboxes.open(&id).await?;
    server.connect(&person, &*sandbox, &mut request).await?;
    let now = sandbox.generation();
    let life = server.parts.sandboxes.exec_life(&id, &request.id, Some(now))?;
    if life.is_some_and(|life| life != *now) {
        return Err(of_another_life(&request.id));
    }
    keyed.done(&server.keys);
    let info = waited(&*sandbox, request, wait).await;
    let info = info.map_err(|error| server.ended_by(error.into(), &id))?;
    let is_over = info.state == ExecState::Ended;
    Ok((if is_over { StatusCode::OK } else { StatusCode::ACCEPTED }, Json(info)))
}

/// How a command stands, also after the server was restarted; waits for its end where that is
/// asked for.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/execs/{exec}",
    operation_id = "get_command", tag = "sandboxes",
    params(
        ("id" = String, Path, description = "The sandbox"),
        ("exec" = String, Path, description = "The command"),
        WaitQuery,
    ),
    responses(
        (status = 200, body = ExecInfo),
        ReadProblems,
    ))]
pub(crate) async fn one(
    Extract(server): Extract<Server>,
    person: Person,
    NamePair(sandbox, exec): NamePair,
    QueryParams(query): QueryParams<WaitQuery>,
) -> Result<Json<ExecInfo>, RequestError> {
    let (sandbox, exec) = server.with_exec(&person, (&sandbox, &exec), SandboxUse::Look).await?;
    let info = waited(&*sandbox, attach(exec.clone()), query.wait).await;
    info.map(Json).map_err(|error| match error {
        // It was asked for, and did not begin.
        SandboxError::CannotStart { .. } => {
            RequestError::not_found(format!("there is no command `{exec}`"))
        }
        error => server.ended_by(error.into(), sandbox.id()),
    })
}

/// Follows the output of a command from its first byte, in order: `event: stdout` and `event:
/// stderr` have an `OutputFrame`, and an `id` from which it goes on; `event: end` an `ExecInfo`
/// without the output.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/execs/{exec}/stream",
    operation_id = "follow_command", tag = "sandboxes",
    params(
        ("id" = String, Path, description = "The sandbox"),
        ("exec" = String, Path, description = "The command"),
        LastOutput,
    ),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        ReadProblems,
    ))]
pub(crate) async fn follow(
    Extract(server): Extract<Server>,
    person: Person,
    NamePair(sandbox, exec): NamePair,
    headers: HeaderMap,
) -> Result<Frames, RequestError> {
    let from = last_event(&headers, OutputPosition::parse)?.unwrap_or_default();
    let to = AdmittedTo::Sandbox(sandbox.clone(), SandboxUse::Look);
    let admission = Admission::new(&server, &headers, to);
    let (sandbox, exec) = server.with_exec(&person, (&sandbox, &exec), SandboxUse::Look).await?;
    Ok(sse(follow_output(sandbox, exec, from, server.ends.clone()), admission))
}

/// Gives a command with a terminal something to read, or its terminal another size.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/execs/{exec}/input",
    operation_id = "type_to_command", tag = "sandboxes", request_body = ExecInput,
    params(
        ("id" = String, Path, description = "The sandbox"),
        ("exec" = String, Path, description = "The command"),
    ),
    responses(
        (status = 204, description = "Its terminal took it"),
        ChangeProblems,
    ))]
pub(crate) async fn input(
    Extract(server): Extract<Server>,
    person: Person,
    NamePair(sandbox, exec): NamePair,
    Body(typed): Body<ExecInput>,
) -> Result<StatusCode, RequestError> {
    let (sandbox, exec) = server.with_exec(&person, (&sandbox, &exec), SandboxUse::Drive).await?;
    if let Some(asked) = typed.size {
        sandbox.input(&exec, Input::Size(size(asked)?)).await.map_err(untaken)?;
    }
    if !typed.text.is_empty() {
        let wait = Duration::from_secs(EXEC_WAIT_SECONDS_MAX.into());
        let taken = sandbox.input(&exec, Input::Bytes(typed.text.into_bytes()));
        let late = || RequestError::new(ProblemCode::Conflict, "the command does not read");
        timeout(wait, taken).await.map_err(|_| late())?.map_err(untaken)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// What a command that is there does not take: it has no terminal, or ended.
fn untaken(error: SandboxError) -> RequestError {
    match &error {
        SandboxError::Invalid(_) => RequestError::of(ProblemCode::Conflict, &error),
        _ => error.into(),
    }
}

/// Kills a command with all its processes. One that ended is fine.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/execs/{exec}/kill",
    operation_id = "kill_command", tag = "sandboxes",
    params(
        ("id" = String, Path, description = "The sandbox"),
        ("exec" = String, Path, description = "The command"),
    ),
    responses(
        (status = 204, description = "Nothing of it runs any more"),
        ChangeProblems,
    ))]
pub(crate) async fn kill(
    Extract(server): Extract<Server>,
    person: Person,
    NamePair(sandbox, exec): NamePair,
    OptionalBody(NoFields {}): OptionalBody<NoFields>,
) -> Result<StatusCode, RequestError> {
    let (sandbox, exec) = server.with_exec(&person, (&sandbox, &exec), SandboxUse::Drive).await?;
    sandbox.kill(&exec).await?;
    Ok(StatusCode::NO_CONTENT)
}
