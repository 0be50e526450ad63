//! Each request has an id: in its answer, in the problem that it may be answered with, and in
//! what an [`Observer`](crate::Observer) is told of it.

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State as Extract};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use outrigger_agent::SessionId;
use outrigger_api::{ProblemCode, ProblemDetails};
use std::time::Instant;

use crate::Server;
use crate::limits::REQUEST_ID_CHARS_MAX;
use crate::login::Person;
use crate::observer::AnsweredRequest;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SESSIONS: &str = "/v1/sessions/";
/// Why is told whoever runs the server, and has paths and names of it.
const FAILED: &str = "the server can't do it by a fault of its own: its log says why";

/// Gives a request its id, and tells of it once it is answered.
pub(crate) async fn observe(
    Extract(server): Extract<Server>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let id = id(request.headers());
    let method = request.method().to_string();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let named = request.uri().path().strip_prefix(SESSIONS).and_then(|rest| rest.split('/').next());
    let named = named.and_then(SessionId::new);
    let mut response = next.run(request).await;
    let extensions = response.extensions_mut();
    let person = extensions.remove::<Person>().map(|person| person.name);
    let session = extensions.remove::<SessionId>().or(named);
    let mut fault = None;
    if let Some(mut problem) = extensions.remove::<ProblemDetails>() {
        problem.request_id = Some(id.clone());
        if problem.code == ProblemCode::Internal {
            fault = Some(std::mem::replace(&mut problem.detail, FAILED.to_owned()));
        }
        *response.body_mut() = Body::from(serde_json::to_vec(&problem).unwrap_or_default());
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    let request = AnsweredRequest { id, method, route, status, took_ms, person, session, fault };
    server.parts.observer.answered(&request);
    response
}

/// That of the proxy or the program that asks, if it has one in a usual form, else a new one.
fn id(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let own = text("x-request-id").filter(|id| is_id(id));
    let id = own.or_else(|| text("traceparent").and_then(trace)).map(str::to_owned);
    id.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string())
}

fn is_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=REQUEST_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(plain)
}

/// The trace of a `traceparent` (www.w3.org/TR/trace-context, 3.2).
fn trace(parent: &str) -> Option<&str> {
    let parts: Vec<_> = parent.split('-').collect();
    let hex = |text: &str, chars| {
        text.len() == chars && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    match parts[..] {
        [version, trace, span, flags] => {
            let whole = hex(version, 2) && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
            let named = version != "ff" && trace.bytes().any(|b| b != b'0');
            (whole && named).then_some(trace)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_in_a_usual_form_and_else_made() {
        let of = |name: &'static str, value: &str| {
            id(&HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )]))
        };
        assert_eq!(of("x-request-id", "a-1_b.c"), "a-1_b.c");
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(of("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01")), trace);
        let long = "x".repeat(REQUEST_ID_CHARS_MAX + 1);
        for (name, value) in [
            ("x-request-id", "a b"),
            ("x-request-id", "{\"a\":1}"),
            ("x-request-id", &*long),
            ("traceparent", &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32))),
            ("traceparent", &format!("ff-{trace}-00f067aa0ba902b7-01")),
            ("traceparent", trace),
        ] {
            let made = of(name, value);
            assert!(made.len() == 32 && made != value && is_id(&made), "{name}: {value}: {made}");
        }
    }
}
