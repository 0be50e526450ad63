//! What a connection from inside says first: CONNECT, or requests with whole URLs, or, where a
//! name led it here, requests for a path.
//!
//! Owns which of them is which, and that a request goes where it says in every place where
//! it says it.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Parts};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;

use super::answer::{Denial, Denied};
use super::body::Outgoing;
use super::names::{hosts_agree, mismatch};
use super::opaque::{self, Opaque};
use super::relay::relay;
use super::session::Session;
use super::socket::Socket;
use super::strict::Strict;
use super::{caller, captured, serving};
use crate::host::{Target, parse_authority};
use crate::network::Scheme;

type Inside = TokioIo<Strict<Socket>>;

/// Where a connection goes on after CONNECT.
pub(super) enum Onward {
    /// To TLS for a host.
    Tls(Target),
    /// To a host that is there.
    Opaque(Opaque),
}

type OnwardCell = Mutex<Option<(Onward, OnUpgrade)>>;

/// Serves what comes on a connection. Gives where it goes on, and what is read there.
pub(super) async fn serve(
    session: &Arc<Session>,
    socket: Socket,
) -> Option<(Onward, Strict<Socket>)> {
    let stream = Strict::new(socket, Arc::clone(&session.activity));
    let fault = stream.fault();
    let onward = OnwardCell::default();
    let service = service_fn(|request: Request<Incoming>| {
        let (fault, onward) = (&fault, &onward);
        async move {
            if let Some(fault) = fault.get() {
                return Ok::<_, std::convert::Infallible>(serving::faulty(session, None, fault));
            }
            Ok(answer(session, onward, request).await)
        }
    });
    let connection = serving::one().serve_connection(TokioIo::new(stream), service);
    let connection = pin!(connection.with_upgrades());
    serving::drive(connection, session, None).await;
    if let Some(websocket) = session.switched() {
        websocket.pass::<Socket>().await;
        return None;
    }
    let onward = onward.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (onward, upgrade) = onward?;
    match upgrade.await.ok()?.downcast::<Inside>() {
        // The stream gives nothing behind CONNECT before it is opened.
        Ok(Parts { io, read_buf, .. }) if read_buf.is_empty() => {
            Some((onward, io.into_inner().open()))
        }
        _ => None,
    }
}

async fn answer(
    session: &Arc<Session>,
    cell: &OnwardCell,
    mut request: Request<Incoming>,
) -> Response<Outgoing> {
    if session.sandbox.authority.is_none() {
        return Box::pin(caller::answer(session, request)).await;
    }
    if request.method() == Method::CONNECT {
        let connected = Box::pin(connect(session, &request)).await;
        return match connected {
            Ok(onward) => {
                let upgrade = hyper::upgrade::on(&mut request);
                *cell.lock().unwrap_or_else(PoisonError::into_inner) = Some((onward, upgrade));
                Response::new(Outgoing::empty())
            }
            Err((target, denial)) => {
                session.refused(target.as_ref(), denial.refusal, None);
                denial.connect_response()
            }
        };
    }
    match whole(&request) {
        Ok(target) => {
            session.hold(&target).await;
            Box::pin(relay(session, &target, request)).await
        }
        Err((target, denial)) => {
            session.count();
            session.refused(target.as_ref(), denial.refusal, None);
            denial.response()
        }
    }
}

async fn connect(session: &Session, request: &Request<Incoming>) -> Result<Onward, Denied> {
    let uri = request.uri();
    let authority = uri.authority().map(|authority| parse_authority(authority.as_str()));
    let Some(Some((host, Some(port)))) = authority else {
        let words = "what CONNECT names is not HOST:PORT in its one spelling.";
        return Err((None, Denial::malformed(words)));
    };
    let target = Target { scheme: Scheme::Https, host, port };
    if !hosts_agree(request, &target) {
        return Err((Some(target), mismatch()));
    }
    let connected = match opaque::granted(session, &target) {
        Some(stream) => Opaque::open(session, &stream).await.map(Onward::Opaque),
        None => {
            session.hold(&target).await;
            session.ask_host(&target).map(|()| Onward::Tls(target.clone()))
        }
    };
    connected.map_err(|denial| (Some(target), denial))
}

/// The target of a request with a whole URL, or of one that a name led here.
fn whole(request: &Request<Incoming>) -> Result<Target, Denied> {
    let uri = request.uri();
    let malformed = |words: &str| Err((None, Denial::malformed(words)));
    let authority = match (uri.scheme_str(), uri.authority()) {
        (Some("http"), Some(authority)) => authority,
        (Some("https"), _) => {
            return malformed("https goes through CONNECT, not through a request with its URL.");
        }
        (Some(_), _) => return malformed("only http and https are passed on."),
        (None, _) => {
            if let Some(target) = captured::target(request) {
                return agreed(request, target);
            }
            return malformed("this is a proxy, which takes CONNECT and requests with whole URLs.");
        }
    };
    let Some((host, port)) = parse_authority(authority.as_str()) else {
        return malformed("the URL does not name a host in its one spelling.");
    };
    let target = Target { scheme: Scheme::Http, host, port: port.unwrap_or(Scheme::Http.port()) };
    agreed(request, target)
}

fn agreed(request: &Request<Incoming>, target: Target) -> Result<Target, Denied> {
    if hosts_agree(request, &target) { Ok(target) } else { Err((Some(target), mismatch())) }
}
