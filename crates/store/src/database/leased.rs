//! The journal of who drives a session: what it appends is refused once another process has it.
//!
//! Must never look before the commit whether the lease is still held: it may be lost in between.

use std::sync::Arc;

use async_trait::async_trait;
use outrigger_agent::{Event, Seq, SessionId};

use super::store::Database;
use crate::{
    Before, CachedSnapshot, Error, Journal, Page, SessionRow, SessionSnapshot, SessionSummary,
    VerifiedSession,
};

/// A journal in which one session, with its subagents, is appended to under a lease.
#[derive(Debug)]
pub(super) struct LeasedJournal {
    pub(super) database: Arc<Database>,
    pub(super) session: SessionId,
}

#[async_trait]
impl Journal for LeasedJournal {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: SessionSummary,
    ) -> Result<Seq, Error> {
        let is_leased = session.root() == self.session;
        self.database.write(session, (after, at_ms), events, (summary, is_leased)).await
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        self.database.load(session, after).await
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        self.database.head(session).await
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        self.database.sessions(before, limit).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        self.database.session(session).await
    }

    async fn keep_snapshot(
        &self,
        session: &SessionId,
        snapshot: SessionSnapshot,
    ) -> Result<(), Error> {
        self.database.keep_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<CachedSnapshot, Error> {
        self.database.snapshot(session, version).await
    }

    async fn verify(&self, session: &SessionId) -> Result<VerifiedSession, Error> {
        self.database.verify(session).await
    }
}
