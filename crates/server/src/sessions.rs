//! Sessions: listed, opened, spoken to, stopped.

use crate::budgets::check_stopped;
use crate::limits::MESSAGE_BYTES_MAX;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use outrigger_agent::{Author, Digest, Message, SessionId, WhenBusy};
use outrigger_api::limits::{PAGE_SESSIONS_DEFAULT, PAGE_SESSIONS_MAX};
use outrigger_api::{
    CancelSession, CreateSession, ProblemCode, ResumeSession, SendMessage, ServerInfo,
    ServerRights, SessionInfo, SessionLimits, SessionList,
};
use outrigger_policy::{AccessAction, SessionStanding};
use outrigger_store::Before;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::convert::when_busy;
use crate::headers::Idempotency;
use crate::input::{Body, Name, NoFields, OptionalBody, QueryParams};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::request_keys::key_of;
use crate::{RequestError, Server};

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// At most so many, from 1 to 200: what is beyond is the nearest of them.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// What the server is.
#[utoipa::path(get, path = "/v1/server",
    operation_id = "get_server", tag = "server", responses(
    (status = 200, body = ServerInfo),
    ReadProblems,
))]
pub(crate) async fn server(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Json<ServerInfo>, RequestError> {
    let rights = server.rights(&person)?;
    let rights = ServerRights {
        start: rights.permit_anywhere(AccessAction::Start),
        write_memory: rights.permit_anywhere(AccessAction::WriteMemory),
        administer: rights.permit_anywhere(AccessAction::Administer),
        audit: rights.permit(AccessAction::View, SessionStanding::None),
    };
    Ok(Json(ServerInfo { rights, ..server.parts.host.info(&person.name) }))
}

/// Sessions, newest first, without subagents.
#[utoipa::path(get, path = "/v1/sessions",
    operation_id = "list_sessions", tag = "sessions", params(ListQuery), responses(
    (status = 200, body = SessionList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<SessionList>, RequestError> {
    let limit = query.limit.unwrap_or(PAGE_SESSIONS_DEFAULT).clamp(1, PAGE_SESSIONS_MAX) as usize;
    let before = query.cursor.as_deref().map(read_cursor).transpose()?;
    let rights = server.rights(&person)?;
    let (page, next) = server.listing.page(&server.parts, &rights, before, limit).await?;
    let mut data = Vec::new();
    for info in page {
        data.extend(server.told(&rights, &info).await?);
    }
    Ok(Json(SessionList { data, next_cursor: next.as_ref().map(write_cursor) }))
}

fn write_cursor(before: &Before) -> String {
    format!("{}.{}", before.created_at_ms, before.session)
}

fn read_cursor(cursor: &str) -> Result<Before, RequestError> {
    let read = || {
        let (created_at_ms, session) = cursor.split_once('.')?;
        let session = SessionId::new(session)?;
        Some(Before { created_at_ms: created_at_ms.parse().ok()?, session })
    };
    read().ok_or_else(|| {
        let text = "`cursor` is none: give `next_cursor` of the page before, unchanged";
        RequestError::new(ProblemCode::InvalidRequest, text)
    })
}

/// One session.
#[utoipa::path(get, path = "/v1/sessions/{id}",
    operation_id = "get_session", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = SessionInfo),
        ReadProblems,
    ))]
pub(crate) async fn one(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<Json<SessionInfo>, RequestError> {
    let session = server.session(&person, &session, AccessAction::View).await?;
    server.shown(&person, &session).await.map(Json)
}

/// Opens a session and begins to work on what is said first. It is named after the idempotency
/// key, so that the same request opens one session however often it comes.
#[utoipa::path(post, path = "/v1/sessions",
    operation_id = "create_session", tag = "sessions", request_body = CreateSession,
    params(Idempotency),
    responses(
        (status = 201, body = SessionInfo, headers(("Location" = String, description = "Where it is"))),
        ChangeProblems,
    ))]
pub(crate) async fn create(
    Extract(server): Extract<Server>,
    person: Person,
    headers: HeaderMap,
    Body(mut request): Body<CreateSession, MESSAGE_BYTES_MAX>,
) -> Result<Response, RequestError> {
    if request.text.trim().is_empty() && request.agent.is_none() {
        let text = "`text` is empty: say what the agent is to do";
        return Err(RequestError::new(ProblemCode::InvalidRequest, text));
    }
    let (bytes, max) = (request.text.len(), outrigger_agent::limits::MESSAGE_BYTES_MAX);
    if bytes > max {
        return Err(outrigger_engine::Error::MessageTooLarge { bytes, max }.into());
    }
    server.permit(&person, AccessAction::Start)?;
    check_stopped(&server, &person).await?;
    let keyed = server.keys.keyed(&person.name, ("sessions", key_of(&headers)?), &request)?;
    let session = named(&person, &headers);
    let pictures = server.keep_pictures(std::mem::take(&mut request.pictures)).await?;
    server.parts.host.create(&person.name, &session, request, pictures).await?;
    keyed.done(&server.keys);
    let info = server.shown(&person, &session).await?;
    let location = format!("/v1/sessions/{session}");
    // For what is told of the request.
    let session = Extension(session);
    Ok((StatusCode::CREATED, session, [("location", location)], Json(info)).into_response())
}

/// A name of a session: of the key, else of chance.
pub(crate) fn named(person: &Person, headers: &HeaderMap) -> SessionId {
    match headers.get("idempotency-key") {
        Some(key) => session_name(&[person.name.as_bytes(), key.as_bytes()]),
        None => session_name(&[uuid::Uuid::new_v4().as_bytes()]),
    }
}

/// A name of twelve characters that are easy to read out, the same for the same parts.
#[must_use]
pub fn session_name(of: &[&[u8]]) -> SessionId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let seed = Digest::of(&of.join(&b'\n')).to_sha256();
    let name: String =
        seed.iter().take(12).map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect();
    SessionId::new(name).expect("the alphabet has only plain characters")
}

/// Says something to the agent: begins a turn. Where one runs, it becomes of it what the message
/// or the session says: it steers that one, waits for its end, stops it, or is refused. What comes
/// again under the same idempotency key within two days was said, and is answered as at first.
#[utoipa::path(post, path = "/v1/sessions/{id}/messages",
    operation_id = "send_message", tag = "sessions",
    params(("id" = String, Path, description = "The session"), Idempotency),
    request_body = SendMessage,
    responses(
        (status = 202, description = "It is written down, and the agent hears it"),
        ChangeProblems,
    ))]
pub(crate) async fn say(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    headers: HeaderMap,
    Body(said): Body<SendMessage, MESSAGE_BYTES_MAX>,
) -> Result<StatusCode, RequestError> {
    if said.text.trim().is_empty() {
        let text = "`text` is empty: say something";
        return Err(RequestError::new(ProblemCode::InvalidRequest, text));
    }
    let session = server.session(&person, &session, AccessAction::Speak).await?;
    let key = key_of(&headers)?;
    let keyed = server.keys.keyed(&person.name, (session.as_str(), key), &said)?;
    let data = said.data.into_iter().map(|it| Message::new(Author::Untrusted(it.name), it.text));
    // Two people may choose the same one.
    let request = key.map(|key| Digest::of(&[person.name.as_bytes(), key.as_bytes()].join(&b'\n')));
    let pictures = server.keep_pictures(said.pictures).await?;
    let message = Message::new(Author::Person(person.name), said.text);
    let message = Message { request, pictures, ..message };
    let state = server.parts.engine.state(&session).await?;
    let usual = state.spec().map_or(WhenBusy::Steer, |spec| spec.when_busy);
    let asked = match (usual, said.when_busy) {
        // Whoever opened it wants nobody to write into its turns.
        (WhenBusy::Refuse, _) | (_, None) => usual,
        (_, Some(asked)) => when_busy(asked),
    };
    server.parts.engine.say_all(&session, data.chain([message]).collect(), asked).await?;
    keyed.done(&server.keys);
    woken(&server, &session).await
}

/// Stops what the agent does now. It can go on later.
#[utoipa::path(post, path = "/v1/sessions/{id}/interrupt",
    operation_id = "interrupt_session", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 202, description = "It is written down, and the turn stops"),
        ChangeProblems,
    ))]
pub(crate) async fn interrupt(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    OptionalBody(NoFields {}): OptionalBody<NoFields>,
) -> Result<StatusCode, RequestError> {
    let session = server.session(&person, &session, AccessAction::Speak).await?;
    let state = server.parts.engine.state(&session).await?;
    if !state.in_turn() {
        let text = format!("session {session} does nothing now: it is `{}`", state.status());
        return Err(RequestError::new(ProblemCode::Conflict, text));
    }
    server.parts.engine.interrupt(&session, &person.name).await?;
    woken(&server, &session).await
}

/// Lets a turn that stopped before its answer go on, perhaps with other limits: those are for who
/// may manage the session.
#[utoipa::path(post, path = "/v1/sessions/{id}/resume",
    operation_id = "resume_session", tag = "sessions", request_body = Option<ResumeSession>,
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 202, description = "It goes on"),
        ChangeProblems,
    ))]
pub(crate) async fn resume(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    OptionalBody(ResumeSession { limits }): OptionalBody<ResumeSession>,
) -> Result<StatusCode, RequestError> {
    let is_raised = limits != SessionLimits::default();
    let right = if is_raised { AccessAction::Manage } else { AccessAction::Speak };
    let session = server.session(&person, &session, right).await?;
    let state = server.parts.engine.state(&session).await?;
    if is_raised && state.in_turn() {
        let text = format!("session {session} is at work");
        return Err(RequestError::new(ProblemCode::Conflict, text)
            .hint("It gets other limits when it stopped, or was interrupted."));
    }
    // A turn that was merely cut off goes on as if nothing had been.
    if !state.in_turn() {
        let change = server.parts.host.resumed(&state, limits);
        server.parts.engine.resume(&session, &person.name, change).await?;
    }
    woken(&server, &session).await
}

/// Has all that was said summarised before the model is asked again.
#[utoipa::path(post, path = "/v1/sessions/{id}/compact",
    operation_id = "compact_session", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 202, description = "It is written down, and done before the next answer"),
        ChangeProblems,
    ))]
pub(crate) async fn compact(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    OptionalBody(NoFields {}): OptionalBody<NoFields>,
) -> Result<StatusCode, RequestError> {
    let session = server.session(&person, &session, AccessAction::Speak).await?;
    server.parts.engine.compact(&session, &person.name).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Ends a session for good, and deletes its sandbox.
#[utoipa::path(post, path = "/v1/sessions/{id}/cancel",
    operation_id = "cancel_session", tag = "sessions",
    params(("id" = String, Path, description = "The session")), request_body = CancelSession,
    responses(
        (status = 202, description = "It is written down, and nothing further is started"),
        ChangeProblems,
    ))]
pub(crate) async fn cancel(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
    Body(asked): Body<CancelSession>,
) -> Result<StatusCode, RequestError> {
    let session = server.session(&person, &session, AccessAction::Manage).await?;
    server.parts.engine.cancel(&session, &person.name, &asked.reason).await?;
    woken(&server, &session).await
}

/// Removes a session that is over, with its subagents: what was said and done in it, its disk, its
/// changes. The audit log says that it was removed, and nothing of what was in it. What it spent
/// and wrote to memory stays.
#[utoipa::path(delete, path = "/v1/sessions/{id}",
    operation_id = "remove_session", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "It is gone for good"),
        ChangeProblems,
    ))]
pub(crate) async fn remove(
    Extract(server): Extract<Server>,
    person: Person,
    Name(session): Name,
) -> Result<StatusCode, RequestError> {
    let session = server.session(&person, &session, AccessAction::Remove).await?;
    server.parts.host.remove(&session).await?;
    server.listing.removed(&session);
    Ok(StatusCode::NO_CONTENT)
}

/// What was written down is acted on, here or by the process that drives the session.
pub(crate) async fn woken(
    server: &Server,
    session: &SessionId,
) -> Result<StatusCode, RequestError> {
    server.parts.host.wake(&session.root()).await.map_err(|error| {
        // Done again, it would be said again.
        let detail = format!("it is written down, and nobody acts on it yet: {}", error.detail);
        RequestError { detail, retryable: false, ..error }.hint("Resuming the session tries again.")
    })?;
    Ok(StatusCode::ACCEPTED)
}
