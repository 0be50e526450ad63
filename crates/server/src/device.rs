//! Programs that a person lets in: the program shows a code, and the person, who is logged in to
//! the page, says that it is theirs. As in RFC 8628, with keys of this server.
//!
//! What waits is kept in memory: a server that begins anew knows none of it, and the program asks
//! again.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use outrigger_agent::Digest;
use outrigger_api::{
    AnswerLogin, BeginLogin, DeviceLogin, LoginAnswer, LoginRequest, LoginState, PollLogin,
    ProblemCode,
};
use outrigger_store::KeyKind;

use crate::device_logins::{LoginOutcome, code_of, plain};
use crate::input::{Body, Name};
use crate::login::{Person, new_key, random};
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server, limits};

fn unknown(code: &str) -> RequestError {
    let text = format!("no program waits with the code `{code}`: it is too old, or was used");
    RequestError::not_found(text).hint("The program shows another one when it is begun again.")
}

/// Begins to let a program in: it shows the code and the address, and asks for its key now and
/// then. Nobody has to be logged in for that.
#[utoipa::path(post, path = "/v1/login/device", operation_id = "begin_device_login", tag = "server", request_body = BeginLogin,
    security(()),
    responses(
        (status = 201, body = DeviceLogin),
        ChangeProblems,
    ))]
pub(crate) async fn begin(
    Extract(server): Extract<Server>,
    Body(asked): Body<BeginLogin>,
) -> Result<(StatusCode, Json<DeviceLogin>), RequestError> {
    let (code, secret) = (code_of(random()?), Digest::from_sha256(random()?).to_string());
    let label = asked.label.chars().take(limits::KEY_LABEL_CHARS_MAX).collect();
    let digest = Digest::of(secret.as_bytes());
    if !server.devices.begin(&code, digest, label, server.now_ms()) {
        let text = "too many programs wait to be let in";
        let error = RequestError::new(ProblemCode::RateLimited, text);
        return Err(RequestError { retryable: true, ..error });
    }
    let url = format!("{}/device?code={code}", server.parts.origins.first());
    let (expires_in_seconds, poll_seconds) =
        (limits::DEVICE_MS_MAX / 1_000, limits::DEVICE_POLL_SECONDS);
    let begun = DeviceLogin { device_code: secret, code, url, expires_in_seconds, poll_seconds };
    Ok((StatusCode::CREATED, Json(begun)))
}

/// Gives the program its key, once somebody let it in.
#[utoipa::path(post, path = "/v1/login/device/key", operation_id = "poll_device_login", tag = "server", request_body = PollLogin,
    security(()),
    responses(
        (status = 200, body = LoginState),
        ChangeProblems,
    ))]
pub(crate) async fn poll(
    Extract(server): Extract<Server>,
    Body(asked): Body<PollLogin>,
) -> Result<Json<LoginState>, RequestError> {
    let secret = Digest::of(asked.device_code.as_bytes());
    let (person, label) = match server.devices.outcome(&secret, server.now_ms()) {
        LoginOutcome::Unknown => return Err(unknown("of this program")),
        LoginOutcome::Waiting => return Ok(Json(LoginState::Waiting)),
        LoginOutcome::Refused => return Ok(Json(LoginState::Refused)),
        LoginOutcome::Granted(person, label) => (person, label),
    };
    let of = (KeyKind::Bearer, person.as_str(), label.as_str());
    let lives = (server.now_ms(), limits::BEARER_MS_DEFAULT);
    let made = new_key(&*server.parts.keys, of, lives).await?;
    let expires_ms = made.stored.expires_ms;
    Ok(Json(LoginState::Granted { key: made.secret, person, expires_ms }))
}

/// A program that waits to be let in.
#[utoipa::path(get, path = "/v1/login/device/{code}", operation_id = "get_device_login", tag = "server",
    params(("code" = String, Path, description = "What the program shows")),
    responses(
        (status = 200, body = LoginRequest),
        ReadProblems,
    ))]
pub(crate) async fn one(
    Extract(server): Extract<Server>,
    _: Person,
    Name(code): Name,
) -> Result<Json<LoginRequest>, RequestError> {
    let code = plain(&code);
    let program = server.devices.waiting(&code, server.now_ms()).ok_or_else(|| unknown(&code))?;
    Ok(Json(LoginRequest { code, label: program.label, until_ms: program.until_ms }))
}

/// Lets a program in as the person who says so, or refuses it.
#[utoipa::path(post, path = "/v1/login/device/{code}", operation_id = "answer_device_login", tag = "server", request_body = AnswerLogin,
    params(("code" = String, Path, description = "What the program shows")),
    responses(
        (status = 204, description = "The program is told the next time that it asks"),
        ChangeProblems,
    ))]
pub(crate) async fn answer(
    Extract(server): Extract<Server>,
    person: Person,
    Name(code): Name,
    Body(said): Body<AnswerLogin>,
) -> Result<StatusCode, RequestError> {
    if person.is_program {
        // A key that makes others would outlive that it is revoked.
        let text = "a program lets no other in: that is for a person, in a browser";
        return Err(RequestError::new(ProblemCode::Denied, text));
    }
    let code = plain(&code);
    let person = match said.answer {
        LoginAnswer::Allow => Some(person.name),
        LoginAnswer::Refuse => None,
    };
    if !server.devices.answer(&code, person, server.now_ms()) {
        return Err(unknown(&code));
    }
    Ok(StatusCode::NO_CONTENT)
}
