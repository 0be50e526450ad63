//! Connections of programs that know no proxy: a name led them here.
//!
//! Owns that the host is the one that the program itself names, in TLS (SNI) or in `Host`. TLS for
//! one that is passed on unread is no more than its first message to us.
//! From there on all is as behind CONNECT, but for what is not granted: a program without a
//! proxy shows its user the answer to a request alone, so that is where it is told.

use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use hyper::header::HOST;

use super::opaque;
use super::session::Session;
use super::socket::Socket;
use super::strict::Strict;
use super::tunnel;
use crate::flow::Refusal;
use crate::host::{Host, Target, parse_authority};
use crate::network::Scheme;

/// Serves TLS that begins a connection.
pub(super) async fn serve(session: &Arc<Session>, socket: Socket) {
    let stream = Strict::new(socket, Arc::clone(&session.activity)).open();
    let hello = match Box::pin(tunnel::hello(stream)).await {
        Ok(hello) => hello,
        Err(refusal) => return session.refused(None, refusal, None),
    };
    let host = hello.name().and_then(|name| Host::parse(&name));
    let Some(host) = host else { return session.refused(None, Refusal::Unnamed, None) };
    let target = Target { scheme: Scheme::Https, host, port: Scheme::Https.port() };
    if let Some(target) = opaque::granted(session, &target) {
        return opaque::serve(session, target, hello.unread()).await;
    }
    session.hold(&target).await;
    let asked = session.ask_host(&target);
    match Box::pin(tunnel::handshake(session, &target, hello)).await {
        Ok(stream) => tunnel::serve_requests(session, &target, stream).await,
        // Who leaves before a request was not told what else would have been said.
        Err(refusal) => {
            let refusal = asked.err().map_or(refusal, |denial| denial.refusal);
            session.refused(Some(&target), refusal, None);
        }
    }
}

/// The target of a request for a path alone. `None`: it names no host to which a name could
/// have led it.
pub(super) fn target(request: &Request<Incoming>) -> Option<Target> {
    let host = request.headers().get(HOST)?.to_str().ok()?;
    let (scheme, port) = (Scheme::Http, Scheme::Http.port());
    match parse_authority(host)? {
        (host @ Host::Name(_), named) if named.is_none_or(|named| named == port) => {
            Some(Target { scheme, host, port })
        }
        _ => None,
    }
}
