//! What comes with a request, read; what can't be read is a problem that names it.

use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use outrigger_api::ProblemCode;
use serde::de::DeserializeOwned;

use crate::RequestError;

/// The body, in JSON.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = RequestError;

    async fn from_request(request: Request, state: &S) -> Result<Self, RequestError> {
        let read = Json::<T>::from_request(request, state).await;
        read.map(|Json(body)| Self(body)).map_err(|rejection| refused(&rejection))
    }
}

fn refused(rejection: &JsonRejection) -> RequestError {
    let is_large = rejection.status() == StatusCode::PAYLOAD_TOO_LARGE;
    let code = if is_large { ProblemCode::TooLarge } else { ProblemCode::InvalidRequest };
    RequestError::new(code, format!("the body: {}", rejection.body_text()))
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
