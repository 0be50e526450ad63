//! WebSockets (RFC 6455): requests behind which a connection carries frames.
//!
//! Owns which request is one, and the way of the frames, both ways at once. They are counted and
//! not looked through: what they are for is between the program and the host.

use std::sync::Arc;

use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_KEY,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Parts};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;

use super::activity::UnderWay;
use super::stream;
use super::strict::Strict;
use crate::sandbox::Row;

/// What a grant has to allow, as if it were a method: one that lists methods has it not. Who may
/// send a host anything may do so in frames; who may read alone may not.
pub(super) const METHOD: &str = "websocket";

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// A connection that is to carry frames, once the answer to its request is sent.
#[derive(Debug)]
pub(super) struct WebSocket {
    pub(super) inside: OnUpgrade,
    pub(super) outside: OnUpgrade,
    pub(super) row: Arc<Row>,
    /// The request stays under way.
    pub(super) under_way: UnderWay,
    /// Its place among the connections to the outside.
    pub(super) room: OwnedSemaphorePermit,
}

/// Whether a header has a word in one of its lists.
pub(super) fn lists(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    headers.get_all(name).iter().any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    })
}

fn names_it_alone(headers: &HeaderMap) -> bool {
    let mut upgrades = headers.get_all(UPGRADE).iter();
    let first = upgrades.next().is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
    first && upgrades.next().is_none() && lists(headers, &CONNECTION, "upgrade")
}

/// Whether a request asks for one (4.1).
pub(super) fn is_wished<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_11
        && request.method() == Method::GET
        && names_it_alone(request.headers())
        && request.headers().contains_key(SEC_WEBSOCKET_KEY)
        && ![CONTENT_LENGTH, TRANSFER_ENCODING].iter().any(|it| request.headers().contains_key(it))
}

/// Whether a host agrees (4.2.2). What it proves by it is for the program to check.
pub(super) fn is_agreed<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS && names_it_alone(response.headers())
}

/// Says it to the next hop.
pub(super) fn say(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, WEBSOCKET);
}

impl WebSocket {
    /// Passes frames on until one side has broken off or both have ended. `S`: what the
    /// connection from inside is a stream of.
    pub(super) async fn pass<S>(self)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Self { inside, outside, row, under_way, room } = self;
        let (Ok(inside), Ok(outside)) = (inside.await, outside.await) else { return };
        let inside = match inside.downcast::<TokioIo<Strict<S>>>() {
            // A program waits for the answer (4.1). What came before it was read as requests.
            Ok(Parts { io, read_buf, .. }) if read_buf.is_empty() => io.into_inner(),
            Ok(_) | Err(_) => return,
        };
        if inside.fault().get().is_some() {
            return;
        }
        // Both have ended by themselves, or one of them has not.
        let _ = stream::pass(inside.open(), TokioIo::new(outside), &row).await;
        drop((under_way, room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wished(headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        is_wished(&request.body(()).unwrap())
    }

    #[test]
    fn a_handshake_asks_for_websockets_alone() {
        let key = ("sec-websocket-key", "x");
        assert!(wished(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket"), key]));
        for headers in [
            &[("connection", "Upgrade"), ("upgrade", "websocket")][..],
            &[("connection", "keep-alive"), ("upgrade", "websocket"), key],
            &[("connection", "Upgrade"), ("upgrade", "websocket, h2c"), key],
            &[("connection", "Upgrade"), ("upgrade", "h2c"), ("upgrade", "websocket"), key],
            &[("connection", "Upgrade"), key],
            &[("connection", "Upgrade"), ("upgrade", "websocket"), key, ("content-length", "1")],
        ] {
            assert!(!wished(headers), "{headers:?}");
        }
    }
}
