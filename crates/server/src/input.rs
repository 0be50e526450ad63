//! What comes with a request, read; what can't be read is a problem that names it.

use axum::body::{Bytes, HttpBody as _};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use futures_util::{Stream, StreamExt as _};
use outrigger_api::ProblemCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::RequestError;
use crate::limits::REQUEST_BYTES_MAX;

/// The body: an object in JSON.
pub(crate) struct Body<T, const BYTES_MAX: usize = REQUEST_BYTES_MAX>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned, const BYTES_MAX: usize> FromRequest<S>
    for Body<T, BYTES_MAX>
{
    type Rejection = RequestError;

    async fn from_request(mut request: Request, state: &S) -> Result<Self, RequestError> {
        DefaultBodyLimit::max(BYTES_MAX).apply(&mut request);
        let (parts, body) = request.into_parts();
        let whole = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let bytes = whole.map_err(|it| unread(it.status(), &it.body_text(), BYTES_MAX))?;
        if bytes.is_empty() {
            return Err(refused(
                "it is empty; where nothing has to be said it is `{}`, with `Content-Type: application/json`",
            ));
        }
        // A list of the values of its fields would be read as well, which no contract says.
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err(refused("it is a list, and no object"));
        }
        let request = Request::from_parts(parts, bytes.into());
        let read = Json::<T>::from_request(request, state).await;
        read.map(|Json(body)| Self(body)).map_err(|it| refused(&plain(&it.body_text())))
    }
}

/// A body that may be left out, where nothing has to be said.
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = RequestError;

    async fn from_request(request: Request, state: &S) -> Result<Self, RequestError> {
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let read = Body::<Option<T>>::from_request(request, state).await;
        read.map(|Body(body)| Self(body.unwrap_or_default()))
    }
}

/// A body that says nothing: `{}`, or none.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

fn refused(why: &str) -> RequestError {
    RequestError::new(ProblemCode::InvalidRequest, format!("the body: {why}"))
}

fn unread(status: StatusCode, why: &str, bytes_max: usize) -> RequestError {
    if status != StatusCode::PAYLOAD_TOO_LARGE {
        return refused(why);
    }
    let text = format!("the body: {} MiB of JSON are the most", bytes_max >> 20);
    RequestError::new(ProblemCode::TooLarge, text)
        .hint("Files go into a sandbox by `files/content` and `archive`, which take more.")
}

/// What is wrong with a value, in words that name no type of ours.
fn plain(told: &str) -> String {
    const BEFORE: [&str; 4] = [
        "Failed to deserialize the JSON body into the target type: ",
        "Failed to parse the request body as JSON: ",
        "Failed to deserialize query string: ",
        "Expected request with ",
    ];
    let told = match BEFORE.iter().find_map(|before| told.strip_prefix(before)) {
        Some(header) if told.starts_with(BEFORE[3]) => format!("say that it is JSON, by {header}"),
        Some(rest) => rest.to_owned(),
        None => told.to_owned(),
    };
    let whole = ["u64", "u32", "u16", "usize", "i64", "nonzero u32"];
    let told = whole.iter().fold(told, |told, name| {
        told.replace(&format!("expected {name}"), "expected a whole number")
    });
    const WORDS: [(&str, &str); 4] = [
        ("invalid digit found in string", "expected a whole number"),
        ("cannot parse integer from empty string", "expected a whole number"),
        ("number too large to fit in target type", "the number is too large"),
        ("provided string was not `true` or `false`", "expected `true` or `false`"),
    ];
    let told = WORDS.iter().fold(told, |told, (theirs, ours)| told.replace(theirs, ours));
    match told.split_once("expected struct ") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|it: char| it.is_ascii_alphanumeric());
            format!("{before}expected an object{rest}")
        }
        None => told,
    }
}

/// A body that is not read whole: its pieces as they come, of at most so many bytes.
pub(crate) fn pieces(
    body: axum::body::Body,
    bytes_max: u64,
) -> impl Stream<Item = Result<Bytes, RequestError>> + Unpin {
    let mut bytes = 0;
    body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(|error| {
            RequestError::new(ProblemCode::InvalidRequest, format!("the body ended early: {error}"))
        })?;
        bytes += piece.len() as u64;
        if bytes > bytes_max {
            let text = format!("{} MiB are the most at once", bytes_max >> 20);
            return Err(RequestError::new(ProblemCode::TooLarge, text));
        }
        Ok(piece)
    })
}

/// What stands behind the question mark.
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestError> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(asked)| Self(asked))
            .map_err(|it| RequestError::new(ProblemCode::InvalidRequest, plain(&it.body_text())))
    }
}

/// The name in the address.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestError> {
        let read = Path::<String>::from_request_parts(parts, state).await;
        // What can't be read names nothing that there is.
        read.map(|Path(name)| Self(name)).map_err(|it| RequestError::not_found(it.body_text()))
    }
}

/// The two names in the address: of something, and of something in it.
pub(crate) struct NamePair(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for NamePair {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestError> {
        let read = Path::<(String, String)>::from_request_parts(parts, state).await;
        read.map(|Path((of, name))| Self(of, name))
            .map_err(|it| RequestError::not_found(it.body_text()))
    }
}
