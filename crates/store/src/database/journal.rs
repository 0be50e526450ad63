//! Sessions and accounts of a store: appends go to the one writer, reads to connections of
//! their own.

use async_trait::async_trait;
use outrigger_agent::{AccountId, Event, Record, Seq, SessionId};
use outrigger_audit::chain;

use super::store::Database;
use crate::event::{self, ChainWalk};
use crate::sql::accounts;
use crate::sql::journal::batch::{Append, JournalWrite};
use crate::sql::journal::{read, snapshot};
use crate::{
    Account, Accounts, Before, CachedSnapshot, Error, Journal, Page, SessionCharge, SessionRow,
    SessionSnapshot, SessionSummary, TermsChange, VerifiedSession, limits,
};

#[async_trait]
impl Journal for Database {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: SessionSummary,
    ) -> Result<Seq, Error> {
        self.write(session, (after, at_ms), events, (summary, false)).await
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        let head = read::head(&mut *self.readers.connection().await?, session).await?;
        let (head, head_link) = head.ok_or_else(|| Error::no_session(session))?;
        let mut page = Page { records: Vec::new(), more_after: None };
        if after >= head {
            return Ok(page);
        }
        let link = match after {
            Seq(0) => chain::origin(session),
            after => read::link(&mut *self.readers.connection().await?, session, after).await?,
        };
        let mut connection = self.readers.connection().await?;
        let rows = read::rows(&mut connection, session, after, limits::PAGE_EVENTS_MAX).await;
        drop(connection);
        let (rows, more) = rows?;
        let mut walk = ChainWalk { session, seq: after, link };
        page.records.reserve(rows.len());
        for row in rows {
            let found = self.text_of(session, row).await?;
            page.records.push(walk.step(found)?);
            if walk.seq == head {
                walk.end(head, &head_link)?;
            }
        }
        if more {
            page.more_after = Some(walk.seq);
        } else {
            walk.end(head, &head_link)?;
        }
        Ok(page)
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        Ok(read::head(&mut *self.readers.connection().await?, session)
            .await?
            .map_or(Seq(0), |(seq, _)| seq))
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        read::sessions(&mut *self.readers.connection().await?, before, limit).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        read::session(&mut *self.readers.connection().await?, session).await
    }

    async fn keep_snapshot(
        &self,
        session: &SessionId,
        snapshot: SessionSnapshot,
    ) -> Result<(), Error> {
        let (size, size_max) = (snapshot.state.len(), limits::SNAPSHOT_BYTES_MAX);
        Error::within("a snapshot (bytes)", size as u64, size_max as u64)?;
        self.writer.perform(session.clone(), JournalWrite::Snapshot(snapshot)).await.map(drop)
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<CachedSnapshot, Error> {
        snapshot::read(&mut *self.readers.connection().await?, session, version).await
    }

    async fn verify(&self, session: &SessionId) -> Result<VerifiedSession, Error> {
        let mut last = Seq(0);
        crate::load_all(self, session, Seq(0), |record| last = record.seq).await?;
        let head = read::head(&mut *self.readers.connection().await?, session).await?;
        let (head, _) = head.ok_or_else(|| Error::no_session(session))?;
        // The head only grows, so what stands behind it was never appended.
        if last > head {
            return Err(Error::damaged_event(session, head.next(), "it was never appended"));
        }
        Ok(VerifiedSession {
            head: last,
            link: read::link(&mut *self.readers.connection().await?, session, last).await?,
        })
    }
}

impl Database {
    /// Appends; where it `is_leased`, only as long as this process has the lease of the session.
    pub(super) async fn write(
        &self,
        session: &SessionId,
        (after, at_ms): (Seq, u64),
        events: &[Event],
        (summary, is_leased): (SessionSummary, bool),
    ) -> Result<Seq, Error> {
        let mut entries = Vec::with_capacity(events.len());
        for event in event::encode_all(at_ms, events)? {
            entries.push(self.prepare(event).await?);
        }
        let summary = SessionSummary {
            title: summary.title.map(|text| event::cut(text, limits::TITLE_BYTES_MAX)),
            status: summary.status.map(|text| event::cut(text, limits::STATUS_BYTES_MAX)),
            cover: summary.cover,
            charge: summary.charge,
        };
        let work = JournalWrite::Append(Append { is_leased, after, at_ms, entries, summary });
        self.writer.perform(session.clone(), work).await
    }

    /// The first event of a session, which says what it was opened with. Nothing for one
    /// that is not there.
    ///
    /// # Errors
    /// As [`Journal::load`].
    pub async fn opening(&self, session: &SessionId) -> Result<Option<Record>, Error> {
        let mut connection = self.readers.connection().await?;
        let rows = read::rows(&mut connection, session, Seq(0), 1).await;
        drop(connection);
        let Some(row) = rows?.0.pop() else { return Ok(None) };
        let found = self.text_of(session, row).await?;
        let mut walk = ChainWalk { session, seq: Seq(0), link: chain::origin(session) };
        walk.step(found).map(Some)
    }
}

#[async_trait]
impl Accounts for Database {
    async fn accounts(&self) -> Result<Vec<Account>, Error> {
        accounts::all(&mut *self.readers.connection().await?).await
    }

    async fn set_terms(&self, account: &AccountId, change: TermsChange) -> Result<Account, Error> {
        self.writer.set_terms(account.clone(), change).await
    }

    async fn recount(&self) -> Result<(), Error> {
        self.writer.recount().await
    }

    async fn charged(&self, session: &SessionId) -> Result<Option<SessionCharge>, Error> {
        accounts::charged(&mut *self.readers.connection().await?, session).await
    }
}
