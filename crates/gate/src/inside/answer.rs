//! What the gate itself answers.
//!
//! Owns the form of a refusal: a status, the kind in a header for programs, and one sentence
//! for whoever reads it, also where only the status line is shown.

use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Outgoing;
use crate::flow::Refusal;
use crate::host::Target;

/// The kind of a refusal.
pub(super) const REFUSED: HeaderName = HeaderName::from_static("x-outrigger-refused");

/// Why a request is not passed on.
#[derive(Debug)]
pub(super) struct Denial {
    pub(super) refusal: Refusal,
    pub(super) status: StatusCode,
    /// One sentence, without who says it.
    pub(super) words: String,
    /// What says it in the terms of a protocol: its type, and the body of an answer that is no
    /// error of HTTP.
    pub(super) report: Option<(&'static str, Vec<u8>)>,
}

/// A request that goes nowhere, with its target where it names one.
pub(super) type Denied = (Option<Target>, Denial);

impl Denial {
    pub(super) fn new(refusal: Refusal, status: StatusCode, words: impl Into<String>) -> Self {
        Self { refusal, status, words: words.into(), report: None }
    }

    pub(super) fn malformed(words: impl Into<String>) -> Self {
        Self::new(Refusal::Malformed, StatusCode::BAD_REQUEST, words)
    }

    pub(super) fn response(self) -> Response<Outgoing> {
        let text = || format!("outrigger: {}\n", self.words).into_bytes();
        let (status, (kind, body)) = match self.report {
            Some(report) => (StatusCode::OK, report),
            None => (self.status, ("text/plain; charset=utf-8", text())),
        };
        let mut response = Response::new(Outgoing::text(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(REFUSED, HeaderValue::from_static(self.refusal.kind()));
        response
    }

    /// For CONNECT, of whose refusal clients show the status line alone. What came with it is
    /// not read as requests.
    pub(super) fn connect_response(self) -> Response<Outgoing> {
        let reason = match self.refusal {
            Refusal::NotGranted | Refusal::Declined => "Not in the sandbox's network",
            _ => "Refused by the sandbox's network",
        };
        let mut response = self.response();
        if let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes()) {
            response.extensions_mut().insert(reason);
        }
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}
