//! The journal in an SQLite database, with a directory of blobs beside it.
//!
//! Write-ahead log, synced at every commit; one writer, which commits together
//! what waits together; readers of their own. Several processes may have it
//! open. A file that is not ours, is damaged or newer is left as it is.

mod accounts;
mod anchor;
mod audit;
mod backup;
mod batch;
mod changes;
mod entries;
mod fault;
mod open;
mod prove;
mod readers;
mod recount;
mod remove;
mod schema;
mod session_file;
mod space;
mod statements;
mod walk;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use outrigger_agent::{AccountId, Digest, Event, Seq, SessionId};
use outrigger_audit::chain;

use self::batch::{Append, JournalWrite, Prepared};
use self::changes::Changes;
use self::entries::Known;
use self::readers::Readers;
use self::writer::Writer;
use crate::entries::Quotas;
use crate::entry::{self, Entry, Found, Walk};
use crate::{
    Account, Accounts, Before, Blobs, Cached, Change, Charged, Directory, Error, Journal, Page,
    SessionRow, Snapshot, Summary, Verified, limits,
};

pub use self::audit::{Audit, AuditRequest};
pub use self::backup::{Restored, SigningKey, restore};
pub use self::prove::EventText;
pub use self::schema::FORMAT;
pub use self::space::{Space, Unnamed};

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The size that the database may grow to; beyond it appends fail with
    /// [`Error::NoSpace`]. Not counted: the write-ahead log and blobs.
    pub database_bytes_max: Option<u64>,
    /// How long a commit waits for another process before it gives [`Error::Busy`].
    pub busy_wait_ms: u64,
    /// How much entries may take; without, as much as there is.
    pub quotas: Quotas,
}

impl Default for Settings {
    fn default() -> Self {
        let (database_bytes_max, quotas) = (None, Quotas::default());
        Self { database_bytes_max, busy_wait_ms: limits::BUSY_WAIT_MS, quotas }
    }
}

/// A journal in an SQLite database. Needs a tokio runtime around it.
#[derive(Debug)]
pub struct Sqlite {
    writer: Writer,
    readers: Readers,
    known: Known,
    blobs: Directory,
    path: PathBuf,
}

impl Sqlite {
    /// Opens the store in `directory`, or makes one there: `journal.db` and
    /// `blobs`, readable by their owner only.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a file that is no database of ours or is cut
    /// short, [`Error::Newer`] for one of a newer program: both change nothing.
    /// Else what the disk says.
    pub async fn open(directory: &Path, settings: Settings) -> Result<Self, Error> {
        let path = open::prepare(directory).await?;
        let connection = open::writing(&path, settings).await?;
        let blobs = Directory::open(&directory.join("blobs"))?;
        let changes = Arc::new(Changes::open(directory)?);
        let known = Known::new(Arc::clone(&changes));
        let writer = Writer::start(directory, &path, settings, connection, changes)?;
        Ok(Self { writer, readers: Readers::new(&path), known, blobs, path })
    }

    /// Where the database is.
    fn path(&self) -> &Path {
        &self.path
    }

    /// The blobs of this store.
    #[must_use]
    pub fn blobs(&self) -> &Directory {
        &self.blobs
    }

    /// Covers every event that is there with a signed checkpoint, and gives the newest one.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the log is not as we signed it, or its key can't be
    /// used: `audit` names what is wrong. [`Error::NotFound`] where there is no event.
    pub async fn checkpoint(&self) -> Result<String, Error> {
        self.writer.checkpoint().await
    }

    /// Covers and commits what waits, and closes the database; the last one to do so leaves
    /// it as a single file. Afterwards appends give [`Error::Closed`].
    /// Dropping the store instead loses nothing.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Puts a text that is too large for its row on disk, before the row can name it.
    async fn prepare(&self, entry: Entry) -> Result<Prepared, Error> {
        let Entry { text, digest, format } = entry;
        if text.len() <= limits::PAYLOAD_INLINE_BYTES_MAX {
            return Ok(Prepared { format, digest, payload: Some(text.into()) });
        }
        let digest = self.blobs.put(text.into_bytes()).await?;
        Ok(Prepared { format, digest, payload: None })
    }

    async fn text_of(&self, session: &SessionId, row: readers::Row) -> Result<Found, Error> {
        let readers::Row { seq, at_ms, format, payload, blob, link } = row;
        let text = match (payload, blob) {
            (Some(text), _) => text,
            (None, Some(digest)) => {
                let damaged = |what| Error::damaged_event(session, seq, what);
                let digest = Digest::parse(&digest)
                    .ok_or_else(|| damaged("the digest of its text is no SHA-256".to_owned()))?;
                let wrong = |error| match error {
                    Error::NotFound { what } => damaged(format!("its text is missing: {what}")),
                    Error::Damaged { .. } => damaged(format!("its text is: {error}")),
                    other => other,
                };
                let bytes = self.blobs.get(&digest).await.map_err(wrong)?;
                let text = String::from_utf8(bytes);
                text.map_err(|_| Error::damaged_event(session, seq, "its blob is no text"))?
            }
            (None, None) => return Err(Error::damaged_event(session, seq, "its text is missing")),
        };
        Ok(Found { seq, at_ms, format, text, link })
    }
}

#[async_trait]
impl Journal for Sqlite {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: Summary,
    ) -> Result<Seq, Error> {
        let mut entries = Vec::with_capacity(events.len());
        for entry in entry::encode_all(at_ms, events)? {
            entries.push(self.prepare(entry).await?);
        }
        let summary = Summary {
            title: summary.title.map(|text| entry::cut(text, limits::TITLE_BYTES_MAX)),
            status: summary.status.map(|text| entry::cut(text, limits::STATUS_BYTES_MAX)),
            cover: summary.cover,
            charge: summary.charge,
        };
        let work = JournalWrite::Append(Append { after, at_ms, entries, summary });
        self.writer.perform(session.clone(), work).await
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        let head = self.readers.head(session).await?;
        let (head, head_link) = head.ok_or_else(|| Error::no_session(session))?;
        let mut page = Page { records: Vec::new(), more_after: None };
        if after >= head {
            return Ok(page);
        }
        let link = match after {
            Seq(0) => chain::origin(session),
            after => self.readers.link(session, after).await?,
        };
        let (rows, more) = self.readers.rows(session, after).await?;
        let mut walk = Walk { session, seq: after, link };
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
        Ok(self.readers.head(session).await?.map_or(Seq(0), |(seq, _)| seq))
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        self.readers.sessions(before, limit).await
    }

    async fn keep_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<(), Error> {
        let (size, size_max) = (snapshot.state.len(), limits::SNAPSHOT_BYTES_MAX);
        Error::within("a snapshot (bytes)", size as u64, size_max as u64)?;
        self.writer.perform(session.clone(), JournalWrite::Snapshot(snapshot)).await.map(drop)
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<Cached, Error> {
        self.readers.snapshot(session, version).await
    }

    async fn verify(&self, session: &SessionId) -> Result<Verified, Error> {
        let mut last = Seq(0);
        crate::load_all(self, session, Seq(0), |record| last = record.seq).await?;
        let head = self.readers.head(session).await?;
        let (head, _) = head.ok_or_else(|| Error::no_session(session))?;
        // The head only grows, so what stands behind it was never appended.
        if last > head {
            return Err(Error::damaged_event(session, head.next(), "it was never appended"));
        }
        Ok(Verified { head: last, link: self.readers.link(session, last).await? })
    }
}

#[async_trait]
impl Accounts for Sqlite {
    async fn accounts(&self) -> Result<Vec<Account>, Error> {
        accounts::all(&mut *self.readers.connection().await?).await
    }

    async fn set_terms(&self, account: &AccountId, change: Change) -> Result<Account, Error> {
        self.writer.set_terms(account.clone(), change).await
    }

    async fn recount(&self) -> Result<(), Error> {
        self.writer.recount().await
    }

    async fn charged(&self, session: &SessionId) -> Result<Option<Charged>, Error> {
        accounts::charged(&mut *self.readers.connection().await?, session).await
    }
}
