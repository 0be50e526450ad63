//! Serves: answers requests, hands on what drivers tell, looks how sessions stand.

use std::future::IntoFuture;
use tokio::net::TcpListener;

use crate::limits::TERMINALS_MAX;
use crate::router::router;
use crate::server::{Server, ended};
use crate::traces;

/// Serves until it is to end, and every request that was begun has its answer.
///
/// # Errors
/// Where the listener fails.
pub async fn serve(server: Server, listener: TcpListener) -> std::io::Result<()> {
    let feed = server.parts.engine.feed().clone();
    let serving = axum::serve(listener, router(server.clone()));
    let serving = serving.with_graceful_shutdown(ended(server.ends.clone()));
    let spans = traces::watch(server.clone(), feed.clone());
    let served = async {
        serving.into_future().await?;
        // A terminal is no request any more, and is told that the server ends.
        drop(server.terminals.acquire_many(TERMINALS_MAX).await);
        Ok(())
    };
    // What sessions did until the end is told of, too.
    let served = async { tokio::join!(served, spans).0 };
    tokio::select! {
        served = served => served,
        () = server.hub.clone().forward(feed) => Ok(()),
        () = server.listing.clone().watch(&server.parts) => Ok(()),
    }
}
