//! Keys by which requests are known again: whoever takes one for another request is told.
//!
//! Owns only that. What a request made has its name from the key, or the key written down beside
//! it, so that it is made once also where this is forgotten: with the process, or with more keys
//! than are kept.

use axum::http::HeaderMap;
use outrigger_agent::Digest;
use outrigger_api::ProblemCode;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::error::RequestError;
use crate::limits;

/// Digests of keys, with those of what was asked for under them.
#[derive(Debug, Default)]
pub(crate) struct RequestKeys(Mutex<HashMap<[u8; 32], [u8; 32]>>);

impl RequestKeys {
    fn all(&self) -> MutexGuard<'_, HashMap<[u8; 32], [u8; 32]>> {
        self.0.lock().expect("nobody panics while they hold the table")
    }

    /// A request about something, under a key. An error where a person's key was another
    /// request's.
    pub(crate) fn keyed(
        &self,
        person: &str,
        (about, key): (&str, Option<&str>),
        request: &impl Serialize,
    ) -> Result<KeyedRequest, RequestError> {
        let Some(key) = key else { return Ok(KeyedRequest(None)) };
        let of = Digest::of([person, about, key].join("\n").as_bytes()).to_sha256();
        let request = serde_json::to_vec(request)
            .map_err(|error| RequestError::of(ProblemCode::Internal, &error))?;
        let request = Digest::of(&request).to_sha256();
        match self.all().get(&of) {
            Some(known) if *known != request => {
                let text = format!("another request came under the key `{key}` before");
                Err(RequestError::new(ProblemCode::Conflict, text)
                    .hint("Nothing was done. Each request has a key of its own; only its repetition has the same."))
            }
            Some(_) | None => Ok(KeyedRequest(Some((of, request)))),
        }
    }
}

/// A request with its key, if it has one.
#[derive(Debug)]
pub(crate) struct KeyedRequest(Option<([u8; 32], [u8; 32])>);

impl KeyedRequest {
    /// It was done: the key is this request's from now on.
    pub(crate) fn done(self, keys: &RequestKeys) {
        let Some((key, request)) = self.0 else { return };
        let mut all = keys.all();
        if all.len() >= limits::REQUEST_KEYS_MAX {
            all.clear();
        }
        all.insert(key, request);
    }
}

/// The key of a request.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<&str>, RequestError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let wrong = |what| {
        let text = format!("`Idempotency-Key` {what}");
        RequestError::new(ProblemCode::InvalidRequest, text)
    };
    match key.to_str() {
        Ok("") => Err(wrong("is empty")),
        Ok(key) => Ok(Some(key)),
        Err(_) => Err(wrong("has characters that are none of ASCII")),
    }
}
