//! Connections from inside sandboxes.
//!
//! Owns what one connection is and when it ends: with its sandbox, with the grant of a host
//! that it has to do with, or when nothing moves on it.

mod activity;
mod answer;
mod body;
mod caller;
mod captured;
mod exchange;
mod http;
mod names;
mod opaque;
mod plain;
mod pool;
mod push;
mod relay;
mod secrets;
mod serving;
mod session;
mod sieve;
mod socket;
mod stream;
mod strict;
mod tunnel;
mod websocket;

use std::sync::Arc;

use crate::network::NAMED_PORTS;
use crate::sandbox::{Arrival, Sandbox};
use plain::Onward;
use session::Session;
use socket::Socket;

/// Serves a connection to its end.
pub(crate) async fn serve(Arrival { fd, captured, room }: Arrival, sandbox: Arc<Sandbox>) {
    sandbox.arrivals.turn().await;
    let session = Arc::new(Session::new(sandbox));
    // A socket that can't be waited for is closed, which is all that can be said on it.
    let Ok(socket) = Socket::new(fd, Arc::clone(&session.activity)) else { return };
    tokio::select! {
        () = Box::pin(begin(&session, socket, captured)) => {}
        () = session.sandbox.revoked(&session.targets) => {}
        () = session.activity.overdue() => {}
    }
    drop(room);
}

/// A handshake of TLS begins with it (RFC 8446, 5.1), and no request of HTTP does.
const TLS_HANDSHAKE: u8 = 22;

/// Serves what a connection says that it is. What came where matters only at a port where it can't
/// say that: each way is allowed the same.
async fn begin(session: &Arc<Session>, socket: Socket, captured: Option<u16>) {
    if let Some(port) = captured.filter(|port| !NAMED_PORTS.contains(port)) {
        return Box::pin(opaque::serve_port(session, port, socket)).await;
    }
    if session.sandbox.authority.is_some()
        && matches!(socket.first().await, Ok(Some(TLS_HANDSHAKE)))
    {
        return Box::pin(captured::serve(session, socket)).await;
    }
    // What came before CONNECT goes before the tunnel, and not with its end.
    let onward = Box::pin(plain::serve(session, socket)).await;
    match onward {
        Some((Onward::Tls(target), stream)) => {
            Box::pin(tunnel::serve(session, target, stream)).await;
        }
        Some((Onward::Opaque(opaque), stream)) => Box::pin(opaque.pass(session, stream)).await,
        None => {}
    }
}
