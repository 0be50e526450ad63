//! Who is let in: a link logs a browser in once, a browser shows its cookie, a program its key.
//!
//! Owns what a key looks like and how long it is good. Keys are kept by their digests. Must
//! never write a key anywhere but into the answer that gives it out.

use axum::extract::{FromRequestParts, Request, State as Extract};
use axum::http::request::Parts as RequestParts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use outrigger_agent::Digest;
use outrigger_api::ProblemCode;
use outrigger_store::{KeyKind, Keys, StoredKey};
use serde::Deserialize;

use crate::input::QueryParams;
use crate::problems::ChangeProblems;
use crate::{RequestError, Server, limits, page};

/// The cookie of a browser that is logged in.
const COOKIE: &str = "outrigger";
/// Keys begin with it, so that scanners for leaked keys know one.
const PREFIX: &str = "outrigger_";

/// A key that was made: it is shown this once.
#[derive(Debug)]
pub struct NewKey {
    /// The key.
    pub secret: String,
    /// What is kept of it.
    pub stored: StoredKey,
}

/// Makes a key that nobody can guess and keeps what is kept of it.
///
/// # Errors
/// What the store says, or where the kernel gives no randomness.
pub async fn new_key(
    keys: &dyn Keys,
    (kind, person, label): (KeyKind, &str, &str),
    (now_ms, lives_ms): (u64, u64),
) -> Result<NewKey, RequestError> {
    let secret = format!("{PREFIX}{}", Digest::from_sha256(random()?));
    let digest = Digest::of(secret.as_bytes());
    // Enough to name it by, and nothing of the key itself.
    let id = digest.as_str()[..12].to_owned();
    let stored = StoredKey {
        id,
        digest,
        kind,
        person: person.to_owned(),
        label: label.to_owned(),
        created_ms: now_ms,
        expires_ms: now_ms.saturating_add(lives_ms),
    };
    keys.put_key(stored.clone()).await?;
    Ok(NewKey { secret, stored })
}

/// The person of a request.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) name: String,
    key: String,
    /// Whether it is a program of theirs that asks.
    pub(crate) is_program: bool,
}

impl<S: Sync> FromRequestParts<S> for Person {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut RequestParts, _: &S) -> Result<Self, RequestError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(unauthenticated)
    }
}

fn unauthenticated() -> RequestError {
    RequestError::new(ProblemCode::Unauthenticated, "nobody is logged in, or not any more")
        .hint("In a browser: open the link that `outrigger serve` prints, or make one with `outrigger keys link`.")
        .hint("In a program: send `Authorization: Bearer KEY`; `outrigger keys create` makes a key.")
}

/// Lets a request through that comes by one of our own names and with a key. What changes
/// something comes from our own page, or from no page.
pub(crate) async fn admit(
    Extract(server): Extract<Server>,
    mut request: Request,
    next: Next,
) -> Response {
    match person(&server, &request.headers().clone()).await {
        Ok(person) => {
            request.extensions_mut().insert(person.clone());
            let mut response = next.run(request).await;
            // For what is told of the request.
            response.extensions_mut().insert(person);
            response
        }
        Err(error) => error.into_response(),
    }
}

/// Whether no browser sends it in a person's name: a probe, which tells nothing, or a program
/// with a key. Either may come by any name that leads here.
fn is_of_program(request: &Request) -> bool {
    matches!(request.uri().path(), "/healthz" | "/readyz") || bearer(request.headers()).is_some()
}

/// Refuses what comes by another name or from another page.
pub(crate) async fn of_ours(
    Extract(server): Extract<Server>,
    request: Request,
    next: Next,
) -> Response {
    let (headers, origins) = (request.headers(), &server.parts.origins);
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let refused = |what: String| RequestError::new(ProblemCode::WrongOrigin, what).into_response();
    let host = text(header::HOST).or_else(|| request.uri().authority().map(|it| it.as_str()));
    if !is_of_program(&request) && !host.is_some_and(|host| origins.has_host(host)) {
        let known = origins.first();
        return refused(format!("this server is reached as {known}, and by no other name"));
    }
    // A page elsewhere could open a WebSocket, and read what comes (RFC 6455, 10.2).
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD)
        || headers.contains_key(header::UPGRADE);
    if changes && text(header::ORIGIN).is_some_and(|origin| !origins.has(origin)) {
        return refused("a page of another site may not change anything here".to_owned());
    }
    next.run(request).await
}

pub(crate) async fn person(server: &Server, headers: &HeaderMap) -> Result<Person, RequestError> {
    let (secret, kind) = match bearer(headers) {
        Some(secret) => (secret, KeyKind::Bearer),
        None => (cookie(headers, COOKIE).ok_or_else(unauthenticated)?, KeyKind::Browser),
    };
    let digest = Digest::of(secret.as_bytes());
    let now_ms = server.now_ms();
    let found = server.parts.keys.key(&digest, now_ms).await?;
    let found = found.filter(|key| key.kind == kind).ok_or_else(unauthenticated)?;
    // Whoever has an account elsewhere shows now and then that they still have it.
    if server.parts.logins.ends_ms(&found.person)?.is_some_and(|ends_ms| ends_ms <= now_ms) {
        let text = format!("the login of {} is over", found.person);
        return Err(RequestError::new(ProblemCode::Unauthenticated, text).hint(
            "Log in on the page again: then the keys of your programs are good again, too.",
        ));
    }
    let is_program = kind == KeyKind::Bearer;
    Ok(Person { name: found.person, key: found.id, is_program })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// The cookie of a name.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|all| all.split(';')).filter_map(|one| one.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

/// What a link has.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkQuery {
    token: String,
    /// The page that it leads to.
    next: Option<String>,
}

/// Logs a browser in, once for each link. Whoever comes here is a person: they get a page.
pub(crate) async fn login(
    Extract(server): Extract<Server>,
    QueryParams(link): QueryParams<LinkQuery>,
) -> Response {
    match logged_in(&server, link).await {
        Err(error) if error.code == ProblemCode::Unauthenticated => {
            page::says(&error).into_response()
        }
        Err(error) => error.into_response(),
        Ok(response) => response,
    }
}

async fn logged_in(server: &Server, link: LinkQuery) -> Result<Response, RequestError> {
    let (keys, now_ms) = (&server.parts.keys, server.now_ms());
    let used = || {
        RequestError::new(ProblemCode::Unauthenticated, "this link was used, or is too old")
            .hint("`outrigger keys link` makes another one.")
    };
    let digest = Digest::of(link.token.as_bytes());
    let found = keys.key(&digest, now_ms).await?;
    let found = found.filter(|key| key.kind == KeyKind::Link).ok_or_else(used)?;
    if !keys.remove_key(&found.id).await? {
        return Err(used());
    }
    browser(server, (&found.person, &found.label), limits::BROWSER_MS_MAX, link.next).await
}

/// Logs a browser in as somebody, with what is written on its key.
pub(crate) async fn browser(
    server: &Server,
    (person, label): (&str, &str),
    lives_ms: u64,
    next: Option<String>,
) -> Result<Response, RequestError> {
    let of = (KeyKind::Browser, person, label);
    let made = new_key(&*server.parts.keys, of, (server.now_ms(), lives_ms)).await?;
    let seconds = lives_ms / 1_000;
    let secure = if server.parts.origins.is_secure() { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE}={}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
        made.secret
    );
    let next = page::leads_to(&place(next));
    Ok((StatusCode::OK, [(header::SET_COOKIE, cookie)], next).into_response())
}

/// A page of ours: `//elsewhere` would be another site, and so would what browsers read as that.
pub(crate) fn place(next: Option<String>) -> String {
    let next = next.filter(|next| next.starts_with('/') && !next.starts_with("//"));
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b',' | b';');
    let next = next.filter(|next| next.len() <= limits::NEXT_BYTES_MAX && next.bytes().all(plain));
    next.unwrap_or_else(|| "/".to_owned())
}

pub(crate) fn random() -> Result<[u8; 32], RequestError> {
    let mut bytes = [0; 32];
    let mut got = 0;
    while got < bytes.len() {
        let more =
            rustix::rand::getrandom(&mut bytes[got..], rustix::rand::GetRandomFlags::empty());
        got += more.map_err(|error| RequestError::of(ProblemCode::Internal, &error))?;
    }
    Ok(bytes)
}

/// Logs a browser out.
#[utoipa::path(post, path = "/v1/logout",
    operation_id = "log_out", tag = "server", responses(
    (status = 204, description = "The key that came with the request lets nobody in any more"),
    ChangeProblems,
))]
pub(crate) async fn logout(
    Extract(server): Extract<Server>,
    person: Person,
) -> Result<Response, RequestError> {
    server.parts.keys.remove_key(&person.key).await?;
    let gone = format!("{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response())
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_login_leads_to_pages_of_this_server() {
        for (next, to) in [
            ("/device?code=BCDF-GHJK", "/device?code=BCDF-GHJK"),
            ("/sessions/a#b", "/sessions/a#b"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("/\t/evil.example", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("/\"><script>", "/"),
            ("", "/"),
        ] {
            assert_eq!(place(Some(next.to_owned())), to, "{next}");
        }
        assert_eq!((place(None), place(Some("/a".repeat(999)))), ("/".to_owned(), "/".to_owned()));
    }
}
