//! Requests of callers: `POST /path`, and in `Host` where it goes.
//!
//! Owns that they go where the caller was granted something, by what is spoken there. The way
//! from a caller to the gate is a socket of this machine: TLS begins in the gate.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::{Request, Response, StatusCode};

use super::answer::{Denial, Denied};
use super::body::Outgoing;
use super::relay::relay;
use super::session::Session;
use crate::flow::Refusal;
use crate::host::{Target, parse_authority};
use crate::network::Scheme;

pub(super) async fn answer(
    session: &Arc<Session>,
    request: Request<Incoming>,
) -> Response<Outgoing> {
    match target(session, &request) {
        Ok(target) => relay(session, &target, request).await,
        Err((target, denial)) => {
            session.count();
            session.refused(target.as_ref(), denial.refusal, None);
            denial.response()
        }
    }
}

fn target(session: &Session, request: &Request<Incoming>) -> Result<Target, Denied> {
    let authority = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = authority.filter(|_| request.uri().authority().is_none());
    let Some((host, port)) = authority.and_then(parse_authority) else {
        let words = "a caller asks for a path, and names its host in its one spelling.";
        return Err((None, Denial::malformed(words)));
    };
    let port = port.unwrap_or(Scheme::Http.port());
    let rules = session.sandbox.rules();
    let of = |scheme| Target { scheme, host: host.clone(), port };
    let knows = |target: &Target| rules.as_ref().is_some_and(|rules| rules.knows(target));
    [Scheme::Https, Scheme::Http].map(of).into_iter().find(knows).ok_or_else(|| {
        let words = format!("{host}:{port} is not granted to this caller.");
        let denial = Denial::new(Refusal::NotGranted, StatusCode::FORBIDDEN, words);
        (Some(of(Scheme::Https)), denial)
    })
}
