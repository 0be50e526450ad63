//! What other processes change in a database of PostgreSQL, as they tell it.
//!
//! Must never be relied on: what is told while no connection hears it is lost, and found by
//! looking.

use std::sync::Arc;
use std::time::Duration;

use outrigger_agent::{Seq, SessionId};
use tokio::sync::mpsc;

use super::postgres::{PostgresAddress, PostgresServer};
use crate::limits;
use crate::sql::leases;

/// Tells what other processes change; nothing beside SQLite.
#[derive(Debug)]
pub struct Notices {
    told: mpsc::Receiver<(SessionId, Seq)>,
    /// Without it nothing would ever be told, at once.
    _open: Option<mpsc::Sender<(SessionId, Seq)>>,
}

impl Notices {
    pub(super) fn none() -> Self {
        let (open, told) = mpsc::channel(1);
        Self { told, _open: Some(open) }
    }

    pub(super) fn of(database: &Arc<PostgresServer>, process: i64) -> Self {
        let (tell, told) = mpsc::channel(limits::NOTICES_MAX);
        drop(database.sockets().spawn(listen(database.address().clone(), process, tell)));
        Self { told, _open: None }
    }

    /// A session and the place of its last event, or 0 for one that a server is to drive. Ends
    /// with the store.
    pub async fn next(&mut self) -> Option<(SessionId, Seq)> {
        self.told.recv().await
    }
}

async fn listen(address: PostgresAddress, process: i64, tell: mpsc::Sender<(SessionId, Seq)>) {
    while !tell.is_closed() {
        // What it ends with is no more than a reason to begin anew.
        drop(hear(&address, process, &tell).await);
        tokio::time::sleep(Duration::from_millis(limits::LISTEN_PAUSE_MS)).await;
    }
}

async fn hear(
    address: &PostgresAddress,
    process: i64,
    tell: &mpsc::Sender<(SessionId, Seq)>,
) -> Result<(), sqlx::Error> {
    let mut listener = address.listener().await?;
    listener.listen(leases::CHANNEL).await?;
    // Where the connection ends, this gives nothing.
    while let Some(notification) = listener.try_recv().await? {
        for told in leases::told(notification.payload(), process) {
            // What nobody looks at is found by looking.
            drop(tell.try_send(told));
        }
    }
    Ok(())
}
