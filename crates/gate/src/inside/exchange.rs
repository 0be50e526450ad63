//! A request to the outside and its answer.
//!
//! Owns which connection it goes out on, and that one which was dead before anything was
//! sent costs the request nothing.

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::body::Outgoing;
use super::http::{self, Dialect};
use super::pool::{Key, Sender, Upstream};
use super::session::{Permission, Session};
use crate::limits;
use crate::outside::{Dialled, Failure, dial};
use crate::task;

/// A connection for a request.
pub(super) struct Line {
    key: Key,
    upstream: Upstream,
    fresh: bool,
}

/// Takes a connection that waits, or dials one. `many`: the inside has many requests at a
/// time, and HTTP/2 is of use.
pub(super) async fn line(
    session: &Session,
    permission: &Permission,
    key: Key,
    many: bool,
) -> Result<Line, Failure> {
    if let Some(upstream) = session.pool.take(&key, !many).await {
        return Ok(Line { key, upstream, fresh: false });
    }
    if !many {
        let upstream = fresh(session, permission, &key, false).await?;
        return Ok(Line { key, upstream, fresh: true });
    }
    // Many requests that find no connection wait for the first of them, whose may serve all.
    let dialling = session.dialling.lock().await;
    if let Some(upstream) = session.pool.take(&key, false).await {
        return Ok(Line { key, upstream, fresh: false });
    }
    let upstream = fresh(session, permission, &key, true).await?;
    if let Sender::Two(sender) = &upstream.sender {
        let sender = Sender::Two(sender.clone());
        session.pool.give(key.clone(), Upstream { sender, dialect: Dialect::Two });
    }
    drop(dialling);
    Ok(Line { key, upstream, fresh: true })
}

/// Sends a request. The answer's body comes while it is read.
pub(super) async fn exchange(
    session: &Session,
    permission: &Permission,
    line: Line,
    mut request: Request<Outgoing>,
) -> Result<Response<Incoming>, Failure> {
    let Line { key, mut upstream, fresh: mut is_fresh } = line;
    loop {
        http::adapt(&mut request, &key.target, &upstream.dialect);
        let mut failed = match upstream.send(request).await {
            Ok(response) => {
                session.pool.give(key, upstream);
                return Ok(response);
            }
            Err(failed) => failed,
        };
        // hyper gives a message back only if nothing of it was written.
        match failed.take_message() {
            Some(unsent) if !is_fresh => request = unsent,
            _ => return Err(Failure::broken(&key.target, &failed.into_error())),
        }
        let two = matches!(upstream.dialect, Dialect::Two);
        upstream = fresh(session, permission, &key, two).await?;
        is_fresh = true;
    }
}

async fn fresh(
    session: &Session,
    permission: &Permission,
    key: &Key,
    two: bool,
) -> Result<Upstream, Failure> {
    let room = session.sandbox.outside_room_now().ok_or_else(Failure::crowded)?;
    let outside = &session.sandbox.outside;
    let dialled = dial(outside, &permission.rules, &key.target, permission.private, two);
    let Dialled { stream, two, whole } = Box::pin(dialled).await?;
    let failed = |error: hyper::Error| Failure::broken(&key.target, &error);
    let io = TokioIo::new(stream);
    let ends = session.end();
    let end = async move {
        ends.await;
        drop(room);
    };
    if two {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(limits::HEAD_BYTES_MAX as u32)
            .handshake(io)
            .await
            .map_err(failed)?;
        run(connection, end);
        return Ok(Upstream { sender: Sender::Two(sender), dialect: Dialect::Two });
    }
    let (sender, connection) = http1::Builder::new()
        .max_headers(limits::HEADERS_MAX)
        .max_buf_size(limits::HEAD_BYTES_MAX)
        .handshake(io)
        .await
        .map_err(failed)?;
    run(connection.with_upgrades(), end);
    let dialect = whole.map_or(Dialect::One, Dialect::Whole);
    Ok(Upstream { sender: Sender::One(sender), dialect })
}

/// Runs a connection until it ends by itself or with the one from inside. What it meets is
/// told to the request that it is about.
fn run(
    connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static,
    end: impl Future<Output = ()> + Send + 'static,
) {
    // Once on the heap, and not twice in the task.
    let connection = Box::pin(connection);
    task::start(async move {
        tokio::select! {
            _ = connection => {}
            () = end => {}
        }
    });
}
