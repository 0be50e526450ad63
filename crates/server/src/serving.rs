//! Serves: answers requests, hands on what drivers tell, looks how sessions stand.

use std::future::IntoFuture;
use tokio::net::TcpListener;

use crate::router::router;
use crate::server::{Server, ended};

/// Serves until it is to end, and every request that was begun has its answer.
///
/// # Errors
/// Where the listener fails.
pub async fn serve(server: Server, listener: TcpListener) -> std::io::Result<()> {
    let feed = server.parts.engine.feed().clone();
    let serving = axum::serve(listener, router(server.clone()));
    let served = serving.with_graceful_shutdown(ended(server.ends.clone()));
    tokio::select! {
        served = served.into_future() => served,
        () = server.hub.clone().forward(feed) => Ok(()),
        () = server.listing.clone().watch(&server.parts) => Ok(()),
    }
}
