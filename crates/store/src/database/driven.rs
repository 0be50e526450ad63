//! Which process drives a session of this store, and which sessions a server is to drive.

use std::sync::Arc;

use outrigger_agent::SessionId;

use super::leased::LeasedJournal;
use super::leases::{Lease, LeasePurpose};
use super::notices::Notices;
use super::store::Database;
use super::writer::RowChange;
use crate::sql::leases::{self, DueChange, DueSession};
use crate::{Error, Journal};

impl Database {
    /// Takes a session, so that nobody else drives it meanwhile. Nothing where another process
    /// does, or where it is at home at another server that lives. Who only looks at it is waited
    /// for.
    ///
    /// # Errors
    /// What the disk or the database says.
    pub async fn lease(
        &self,
        session: &SessionId,
        purpose: LeasePurpose,
    ) -> Result<Option<Lease>, Error> {
        self.leases.take(session, purpose).await
    }

    /// The journal for who drives under a lease. Once another process has the session, what is
    /// appended to it here is refused with [`Error::Superseded`], in the same transaction.
    #[must_use]
    pub fn journal_under(self: &Arc<Self>, lease: &Lease) -> Arc<dyn Journal> {
        match lease.may_be_lost() {
            None => Arc::clone(self) as _,
            Some(session) => {
                let (database, session) = (Arc::clone(self), session.clone());
                Arc::new(LeasedJournal { database, session })
            }
        }
    }

    /// Whether a process drives a session.
    ///
    /// # Errors
    /// What the disk or the database says.
    pub async fn is_leased(&self, session: &SessionId) -> Result<bool, Error> {
        if !self.leases.are_rows() {
            return Ok(self.leases.take(session, LeasePurpose::Look).await?.is_none());
        }
        leases::is_held(&mut *self.readers.connection().await?, session).await
    }

    /// Whether another server lives at which a session is at home: it alone has its sandboxes.
    ///
    /// # Errors
    /// What the database says.
    pub async fn is_elsewhere(&self, session: &SessionId) -> Result<bool, Error> {
        if !self.leases.are_rows() {
            return Ok(false);
        }
        let mut connection = self.readers.connection().await?;
        leases::is_elsewhere(&mut connection, session, self.leases.server).await
    }

    /// This process is a server: as long as it lives, no other one takes what is at home here.
    /// Gives what other processes change from now on.
    pub fn serve(&self) -> Notices {
        self.leases.serve()
    }

    /// A server is to drive a session: of several, the one at which it is at home.
    ///
    /// # Errors
    /// What the disk or the database says.
    pub async fn wake(&self, session: &SessionId) -> Result<(), Error> {
        let (session, process) = (session.clone(), self.leases.process);
        let wake = RowChange::Due(DueChange::Wake { session, process });
        self.writer.change_row(wake).await.map(drop)
    }

    /// How often a session was woken: 0 for one that never was.
    ///
    /// # Errors
    /// What the disk or the database says.
    pub async fn wakes(&self, session: &SessionId) -> Result<u64, Error> {
        leases::wakes(&mut *self.readers.connection().await?, session).await
    }

    /// No server is to drive a session any more, or none before a time in milliseconds since
    /// 1970. False where it was woken more often meanwhile: somebody may have appended what
    /// whoever drove it did not see.
    ///
    /// # Errors
    /// What the disk or the database says.
    pub async fn settle(
        &self,
        session: &SessionId,
        wakes: u64,
        due_ms: Option<u64>,
    ) -> Result<bool, Error> {
        let settle = DueChange::Settle { session: session.clone(), wakes, due_ms };
        self.writer.change_row(RowChange::Due(settle)).await
    }

    /// What a server is to drive by now: what is at home here, and what a server left that does
    /// not live. Beside SQLite also what is driven already.
    ///
    /// # Errors
    /// What the disk or the database says.
    pub async fn due(&self, now_ms: u64) -> Result<Vec<DueSession>, Error> {
        leases::due(&mut *self.readers.connection().await?, now_ms, self.leases.server).await
    }
}
