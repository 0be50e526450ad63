//! One request, from inside to the outside and back.
//!
//! Owns the order: what is asked is decided, counted, and only then sent.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode, Version};

use super::activity::UnderWay;
use super::answer::Denial;
use super::body::Outgoing;
use super::exchange::{exchange, line};
use super::http;
use super::pool::Key;
use super::secrets::Guard;
use super::session::Session;
use super::websocket::{self, WebSocket, lists};
use crate::flow::Refusal;
use crate::host::Target;
use crate::outside::Failure;
use crate::rule::RequestLine;
use crate::sandbox::Row;

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
            let says = matches!(denial.refusal, Refusal::Push | Refusal::Rule);
            let what = if says { &denial.words } else { &path };
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
    mut request: Request<Incoming>,
) -> Result<Response<Outgoing>, Denial> {
    session.count();
    let under_way = session.activity.begin();
    session.sandbox.requests.turn().await;
    // Callers have no use for them.
    let wished = session.sandbox.authority.is_some() && websocket::is_wished(&request);
    let method = if wished { websocket::METHOD } else { request.method().as_str() };
    let uri = request.uri();
    let asked = RequestLine { method, path: uri.path(), query: uri.query() };
    let permission = session.ask_request(target, asked)?;
    if !wished && wants_upgrade(&request) {
        let words = "the network of sandboxes passes on HTTP and websockets, and no other Upgrade.";
        return Err(Denial::new(Refusal::Malformed, StatusCode::NOT_IMPLEMENTED, words));
    }
    let inside = wished.then(|| hyper::upgrade::on(&mut request));
    let many = request.version() == Version::HTTP_2;
    let (mut head, mut body) = request.into_parts();
    http::clean_request(&mut head.headers);
    if wished {
        websocket::say(&mut head.headers);
    }
    let mut guard = Guard::new(session, &permission, target);
    let first = guard.begin(&mut head, &mut body).await?;
    let key = Key { target: target.clone(), private: permission.private };
    let line = line(session, &permission, key, many).await;
    let line = line.map_err(|failure| session.unsent(failure))?;
    let row = session.row(target, &permission)?;
    let length = head.uri.path_and_query().map_or(1, |path| path.as_str().len());
    if !row.sent(head.method.as_str().len() + length + http::size(&head.headers)) {
        return Err(spent());
    }
    // What the gate knows of the connection is for nobody outside.
    head.extensions = hyper::http::Extensions::new();
    let body = Outgoing::to_outside(first, body, guard.outside(), Arc::clone(&row));
    let request = Request::from_parts(head, body);
    let response = exchange(session, &permission, line, request).await;
    if let Some(denial) = guard.misplaced() {
        return Err(denial);
    }
    if response.is_err() && row.is_spent() {
        return Err(spent());
    }
    let asked = SentRequest { session, target, row, under_way, inside };
    asked.answer(guard, response?).await
}

fn spent() -> Denial {
    Denial::new(Refusal::Spent, StatusCode::TOO_MANY_REQUESTS, Refusal::Spent.words())
}

/// A request that was sent, and whose answer is there.
struct SentRequest<'a> {
    session: &'a Session,
    target: &'a Target,
    row: Arc<Row>,
    under_way: UnderWay,
    /// The connection from inside, if the request asked for a websocket.
    inside: Option<OnUpgrade>,
}

impl SentRequest<'_> {
    /// What goes back to the program.
    async fn answer(
        self,
        mut guard: Guard<'_>,
        mut response: Response<Incoming>,
    ) -> Result<Response<Outgoing>, Denial> {
        let Self { session, target, row, under_way, inside } = self;
        let inside = inside.filter(|_| websocket::is_agreed(&response));
        let switched = inside.map(|inside| (inside, hyper::upgrade::on(&mut response)));
        let (mut head, mut body) = response.into_parts();
        if switched.is_none() {
            is_fit(session, target, head.status)?;
        }
        http::clean_response(&mut head.headers);
        let first = guard.take_minted(&head.headers, &mut body).await?;
        let sieve = guard.inside(&mut head.headers)?;
        row.received(http::size(&head.headers));
        head.version = Version::HTTP_11;
        head.extensions = hyper::http::Extensions::new();
        if let Some((inside, outside)) = switched {
            websocket::say(&mut head.headers);
            let room = session.sandbox.outside_room_now().ok_or_else(Failure::crowded)?;
            session.switch(WebSocket { inside, outside, row, under_way, room });
            return Ok(Response::from_parts(head, Outgoing::empty()));
        }
        Ok(Response::from_parts(head, Outgoing::to_inside(first, body, sieve, row, under_way)))
    }
}

/// Whether a program is to see a status.
fn is_fit(session: &Session, target: &Target, status: StatusCode) -> Result<(), Denial> {
    let words = match status {
        // What the operator's proxy wants is for the operator, and hosts have no business with it.
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            format!("the proxy on the way to {} wants another password.", target.host)
        }
        // To callers this status is the gate's own word.
        StatusCode::MISDIRECTED_REQUEST if session.sandbox.is_caller() => {
            format!("{} says that it is another host (HTTP 421).", target.host)
        }
        status if status.is_informational() => {
            format!("{} changed the protocol without being asked.", target.host)
        }
        _ => return Ok(()),
    };
    Err(Denial::new(Refusal::Unreachable, StatusCode::BAD_GATEWAY, words))
}

/// Whether another protocol is asked for. HTTP/2 without TLS is not: the request can be
/// served as it is.
fn wants_upgrade<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let asks = headers.contains_key(UPGRADE) && lists(headers, &CONNECTION, "upgrade");
    asks && !lists(headers, &UPGRADE, "h2c") || request.method() == hyper::Method::CONNECT
}
