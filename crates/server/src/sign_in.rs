//! Logging in with an account elsewhere: a browser is sent there, and comes back.
//!
//! Owns the cookie that binds a login to the browser that began it, and where it leads. Nothing
//! of a login that began is kept here: those who never come back cost nothing.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outrigger_agent::Digest;
use outrigger_api::{LoginProviderInfo, LoginWays, ProblemCode};
use serde::Deserialize;

use crate::input::QueryParams;
use crate::login::{browser, cookie, place, random};
use crate::problems::ReadProblems;
use crate::{Origins, ProviderAnswer, RequestError, Server, limits, page};

/// Where a login begins.
pub(crate) const BEGIN: &str = "/login/oidc/begin";
/// Where the browser comes back. Providers know it, to the letter.
pub(crate) const RETURN: &str = "/login/oidc";
/// Of the browser's secret, what is not where it leads.
const SECRET_CHARS: usize = 64;

/// The name of the cookie of a login that is under way. Over TLS nobody else may set it, not even
/// for a domain that this one is in.
fn name(origins: &Origins) -> &'static str {
    if origins.is_secure() { "__Host-outrigger-login" } else { "outrigger-login" }
}

/// The cookie: it comes along when another site sends the browser back, so it is not `Strict`.
fn under_way(origins: &Origins, secret: &str, seconds: u64) -> String {
    let secure = if origins.is_secure() { "; Secure" } else { "" };
    let name = name(origins);
    format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

fn redirect_uri(server: &Server) -> String {
    format!("{}{RETURN}", server.parts.origins.first())
}

/// How people log in here, beside by a link.
#[utoipa::path(get, path = "/v1/login", operation_id = "list_login_ways", tag = "server",
    security(()),
    responses(
        (status = 200, body = LoginWays),
        ReadProblems,
    ))]
pub(crate) async fn ways(Extract(server): Extract<Server>) -> Json<LoginWays> {
    let provider = server.parts.logins.name().map(|name| LoginProviderInfo {
        name: name.to_owned(),
        url: format!("{}{BEGIN}", server.parts.origins.first()),
    });
    Json(LoginWays { provider })
}

/// Where a login is to lead.
#[derive(Debug, Deserialize)]
pub(crate) struct NextPage {
    next: Option<String>,
}

/// Sends a browser to where it says who it is.
pub(crate) async fn begin(
    Extract(server): Extract<Server>,
    headers: HeaderMap,
    QueryParams(asked): QueryParams<NextPage>,
) -> Response {
    sent(&server, &headers, asked.next).await.unwrap_or_else(told)
}

async fn sent(
    server: &Server,
    headers: &HeaderMap,
    next: Option<String>,
) -> Result<Response, RequestError> {
    let origins = &server.parts.origins;
    let next = place(next);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(|host| origins.is_first(host)) {
        // The cookie has to be of the name that the browser comes back to.
        let next = next.replace('%', "%25").replace('&', "%26").replace('#', "%23");
        return redirected(&format!(
            "{}{BEGIN}?next={}",
            origins.first(),
            next.replace('+', "%2B")
        ));
    }
    let secret = format!("{}{next}", Digest::from_sha256(random()?));
    let url = server.parts.logins.begin(&secret, &redirect_uri(server)).await?;
    let cookie = under_way(origins, &secret, limits::SIGN_IN_MS_MAX / 1_000);
    Ok(([(header::SET_COOKIE, cookie)], redirected(&url)?).into_response())
}

fn redirected(url: &str) -> Result<Response, RequestError> {
    let to = HeaderValue::try_from(url);
    let to = to.map_err(|error| RequestError::of(ProblemCode::ProviderError, &error))?;
    let fresh = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, to), fresh]).into_response())
}

/// What a browser comes back with (RFC 6749, 4.1.2, and RFC 9207).
#[derive(Debug, Deserialize)]
pub(crate) struct ReturnQuery {
    state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Logs a browser in that comes back.
pub(crate) async fn end(
    Extract(server): Extract<Server>,
    headers: HeaderMap,
    QueryParams(asked): QueryParams<ReturnQuery>,
) -> Response {
    let ended = logged_in(&server, &headers, asked).await.unwrap_or_else(told);
    // Whatever came of it: it is used up.
    let gone = under_way(&server.parts.origins, "", 0);
    let mut ended = ended;
    if let Ok(gone) = HeaderValue::try_from(gone) {
        ended.headers_mut().append(header::SET_COOKIE, gone);
    }
    ended
}

/// Whoever comes here is a person: they get a page.
fn told(error: RequestError) -> Response {
    let error = error.hint("Go back to the page of this server, and begin again there.");
    page::says(&error).into_response()
}

async fn logged_in(
    server: &Server,
    headers: &HeaderMap,
    asked: ReturnQuery,
) -> Result<Response, RequestError> {
    let secret = cookie(headers, name(&server.parts.origins)).ok_or_else(|| {
        let text = "this browser began no login here, or it took longer than ten minutes";
        RequestError::new(ProblemCode::Unauthenticated, text)
    })?;
    let ReturnQuery { state, code, iss, error, error_description } = asked;
    let said = error_description.or(error).unwrap_or_else(|| "it sent no code".to_owned());
    let redirect_uri = redirect_uri(server);
    let answer = ProviderAnswer {
        secret,
        redirect_uri: &redirect_uri,
        state: state.as_deref().unwrap_or_default(),
        code: code.as_deref().ok_or(said.as_str()),
        issuer: iss.as_deref(),
    };
    let login = server.parts.logins.end(answer).await?;
    let label = server.parts.logins.name().unwrap_or_default();
    let next = secret.get(SECRET_CHARS..).map(str::to_owned);
    browser(server, (&login.person, label), login.lives_ms, next).await
}
