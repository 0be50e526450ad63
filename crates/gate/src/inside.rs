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
mod plain;
mod pool;
mod push;
mod relay;
mod secrets;
mod serving;
mod session;
mod sieve;
mod socket;
mod strict;
mod tunnel;
mod websocket;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::sandbox::Sandbox;
use session::Session;
use socket::Socket;

/// Serves a connection to its end.
pub(crate) async fn serve(fd: OwnedFd, sandbox: Arc<Sandbox>) {
    sandbox.arrivals.turn().await;
    let session = Arc::new(Session::new(sandbox));
    // A socket that can't be waited for is closed, which is all that can be said on it.
    let Ok(socket) = Socket::new(fd, Arc::clone(&session.activity)) else { return };
    tokio::select! {
        () = Box::pin(begin(&session, socket)) => {}
        () = session.sandbox.revoked(&session.targets) => {}
        () = session.activity.overdue() => {}
    }
}

/// A handshake of TLS begins with it (RFC 8446, 5.1), and no request of HTTP does.
const TLS_HANDSHAKE: u8 = 22;

/// Serves what a connection says that it is. What came where does not matter: each way is
/// allowed the same.
async fn begin(session: &Arc<Session>, socket: Socket) {
    if session.sandbox.authority.is_some()
        && matches!(socket.first().await, Ok(Some(TLS_HANDSHAKE)))
    {
        return Box::pin(captured::serve(session, socket)).await;
    }
    // What came before CONNECT goes before the tunnel, and not with its end.
    let onward = Box::pin(plain::serve(session, socket)).await;
    if let Some((target, stream)) = onward {
        Box::pin(tunnel::serve(session, target, stream)).await;
    }
}
