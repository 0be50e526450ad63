//! What is done to a store now and then: sessions are removed and taken in, and the database
//! is made smaller. Each in a transaction of its own.

use crate::sql::{self, SqlText};
use outrigger_agent::{Seq, SessionId};
use tokio::sync::oneshot;

use super::{Message, Thread, Writer};
use crate::Error;
use crate::sql::fault;
use crate::sql::journal::import::{self, Import};
use crate::sql::journal::remove;

impl Writer {
    /// Removes a session that is at `head`.
    pub(in crate::database) async fn remove(
        &self,
        session: SessionId,
        head: Seq,
    ) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let message = Message::Remove(session, head, answer);
        self.queue.send(message).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Takes sessions in.
    pub(in crate::database) async fn import(&self, import: Import) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let message = Message::Import(Box::new(import), answer);
        self.queue.send(message).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Makes the database smaller.
    pub(in crate::database) async fn compact(&self) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(Message::Compact(answer)).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }
}

impl Thread {
    pub(super) async fn remove(&mut self, session: &SessionId, head: Seq) -> Result<(), Error> {
        self.connection().await?;
        let Self { connection: Some(connection), batch, .. } = self else {
            return Err(Error::Closed);
        };
        match remove::remove(connection, batch, session, head).await {
            Ok(added) => {
                self.copy(Some(added)).await;
                self.lingers = true;
                self.shred().await;
                Ok(())
            }
            Err(error) => {
                // Closing takes back what was not committed.
                self.disconnect().await;
                Err(error)
            }
        }
    }

    pub(super) async fn import(&mut self, import: &Import) -> Result<(), Error> {
        self.connection().await?;
        let Self { connection: Some(connection), batch, .. } = self else {
            return Err(Error::Closed);
        };
        match import::take(connection, batch, import).await {
            Ok(added) => {
                self.copy(Some(added)).await;
                Ok(())
            }
            Err(error) => {
                // Closing takes back what was not committed.
                self.disconnect().await;
                Err(error)
            }
        }
    }

    pub(super) async fn compact(&mut self) -> Result<(), Error> {
        let connection = self.connection().await?;
        // SQLite writes the whole database anew first, which is too much for memory.
        const COMPACT: SqlText = SqlText::Apart {
            sqlite: "PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY",
            postgres: "VACUUM FULL events, snapshots, contents, versions, entries, proposals",
        };
        let done = sql::query(COMPACT).execute(&mut *connection).await;
        if let Err(error) = done {
            self.disconnect().await;
            return Err(fault::of("making the database smaller", error));
        }
        // Else what was written anew stands in the log as well.
        self.lingers = true;
        self.shred().await;
        Ok(())
    }
}
