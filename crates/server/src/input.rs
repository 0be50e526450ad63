//! What comes with a request, read; what can't be read is a problem that names it.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use futures_util::{Stream, StreamExt as _};
use outrigger_api::ProblemCode;
use serde::de::DeserializeOwned;

use crate::RequestError;

/// The body: an object in JSON.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = RequestError;

    async fn from_request(request: Request, state: &S) -> Result<Self, RequestError> {
        let (parts, body) = request.into_parts();
        let whole = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let bytes = whole.map_err(|it| refused(it.status(), &it.body_text()))?;
        // A list of the values of its fields would be read as well, which no contract says.
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err(refused(StatusCode::BAD_REQUEST, "it is a list, and no object"));
        }
        let request = Request::from_parts(parts, bytes.into());
        let read = Json::<T>::from_request(request, state).await;
        read.map(|Json(body)| Self(body)).map_err(|it| refused(it.status(), &it.body_text()))
    }
}

fn refused(status: StatusCode, why: &str) -> RequestError {
    let is_large = status == StatusCode::PAYLOAD_TOO_LARGE;
    let code = if is_large { ProblemCode::TooLarge } else { ProblemCode::InvalidRequest };
    RequestError::new(code, format!("the body: {why}"))
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
            .map_err(|it| RequestError::new(ProblemCode::InvalidRequest, it.body_text()))
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
