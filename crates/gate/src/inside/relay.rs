//! One request, from inside to the outside and back.
//!
//! Owns the order: what is asked is decided, counted, and only then sent.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::{Request, Response, StatusCode, Version};

use super::answer::Denial;
use super::body::Outgoing;
use super::exchange::{exchange, line};
use super::http;
use super::pool::Key;
use super::secrets::Guard;
use super::session::Session;
use crate::flow::Refusal;
use crate::host::Target;
use crate::outside::Failure;
use crate::rule::RequestLine;
use crate::sandbox::Outcome;

/// Passes a request on to its target, of which the caller knows that the request names it.
pub(super) async fn relay(
    session: &Arc<Session>,
    target: &Target,
    request: Request<Incoming>,
) -> Response<Outgoing> {
    let path = request.uri().path().to_owned();
    match try_relay(session, target, request).await {
        Ok(response) => response,
        Err(denial) => {
            let what = if denial.refusal == Refusal::Push { &denial.words } else { &path };
            session.refused(Some(target), denial.refusal, Some(what));
            denial.response()
        }
    }
}

impl From<Failure> for Denial {
    fn from(failure: Failure) -> Self {
        Self::new(failure.refusal, failure.status, failure.words)
    }
}

async fn try_relay(
    session: &Arc<Session>,
    target: &Target,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Denial> {
    session.count();
    let under_way = session.activity.begin();
    session.sandbox.requests.turn().await;
    let uri = request.uri();
    let asked =
        RequestLine { method: request.method().as_str(), path: uri.path(), query: uri.query() };
    let permission = session.ask_request(target, asked)?;
    if wants_upgrade(&request) {
        let words = "the network of sandboxes passes on no protocol but HTTP (no Upgrade).";
        return Err(Denial::new(Refusal::Malformed, StatusCode::NOT_IMPLEMENTED, words));
    }
    let many = request.version() == Version::HTTP_2;
    let (mut head, mut body) = request.into_parts();
    http::clean_request(&mut head.headers);
    let mut guard = Guard::new(session, &permission, target);
    let first = guard.begin(&mut head, &mut body).await?;
    let key = Key { target: target.clone(), private: permission.private };
    let line = line(session, &permission, key, many).await;
    let line = line.map_err(|failure| session.unsent(failure))?;
    let (host, grant) = (target.host.to_string(), permission.grant.clone());
    let row = session.sandbox.table.count(&host, target.port, Outcome::Granted(grant), None);
    let Some(row) = row else {
        // What is not counted does not leave.
        let words = "this sandbox reached as many hosts at once as are counted.";
        return Err(Denial::new(Refusal::Limit, StatusCode::TOO_MANY_REQUESTS, words));
    };
    let length = head.uri.path_and_query().map_or(1, |path| path.as_str().len());
    row.sent(head.method.as_str().len() + length + http::size(&head.headers));
    // What the gate knows of the connection is for nobody outside.
    head.extensions = hyper::http::Extensions::new();
    let body = Outgoing::to_outside(first, body, guard.outside(), Arc::clone(&row));
    let request = Request::from_parts(head, body);
    let response = exchange(session, &permission, line, request).await;
    if let Some(denial) = guard.misplaced() {
        return Err(denial);
    }
    let response = response?;
    let (mut head, mut body) = response.into_parts();
    // What the operator's proxy wants is for the operator, and hosts have no business with it.
    if head.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        let words = format!("the proxy on the way to {} wants another password.", target.host);
        return Err(Denial::new(Refusal::Unreachable, StatusCode::BAD_GATEWAY, words));
    }
    if head.status == StatusCode::MISDIRECTED_REQUEST && session.sandbox.is_caller() {
        // To callers this status is the gate's own word.
        let words = format!("{} says that it is another host (HTTP 421).", target.host);
        return Err(Denial::new(Refusal::Unreachable, StatusCode::BAD_GATEWAY, words));
    }
    if head.status.is_informational() {
        let words = format!("{} changed the protocol without being asked.", target.host);
        return Err(Denial::new(Refusal::Unreachable, StatusCode::BAD_GATEWAY, words));
    }
    http::clean_response(&mut head.headers);
    let first = guard.take_minted(&head.headers, &mut body).await?;
    let sieve = guard.inside(&mut head.headers)?;
    row.received(http::size(&head.headers));
    head.version = Version::HTTP_11;
    head.extensions = hyper::http::Extensions::new();
    Ok(Response::from_parts(head, Outgoing::to_inside(first, body, sieve, row, under_way)))
}

/// Whether another protocol is asked for. HTTP/2 without TLS is not: the request can be
/// served as it is.
fn wants_upgrade<B>(request: &Request<B>) -> bool {
    let has = |name, word: &str| {
        request.headers().get_all(name).iter().any(|value| {
            let value = value.to_str().unwrap_or_default();
            value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
        })
    };
    request.headers().contains_key(UPGRADE) && has(CONNECTION, "upgrade") && !has(UPGRADE, "h2c")
        || request.method() == hyper::Method::CONNECT
}
