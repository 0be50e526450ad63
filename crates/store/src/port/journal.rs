//! The journal port: what is promised about appending, loading and listing.

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_agent::{Digest, Event, Record, Seq, SessionId};

use super::accounts::Charge;
use crate::Error;

/// Sessions' events, append-only.
///
/// Every implementation passes [`crate::conformance`]. Several processes may
/// work on one journal at once. Dropping a future of [`Journal::append`] does
/// not take the append back: it may still come about.
#[async_trait]
pub trait Journal: Send + Sync + Debug {
    /// Appends events in one transaction and makes them durable: all or none.
    /// The first takes the place after `after`, which is `Seq(0)` for a new
    /// session. Gives the place of the last. What the summary says is taken in with
    /// them in the same transaction; of a session that there is also without any event,
    /// which is fenced all the same.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the session is not at `after`; [`Error::Superseded`] where
    /// another process has the lease that this journal appends under; [`Error::Budget`] where
    /// an account has no room for the charge;
    /// [`Error::TooLarge`] above [`crate::limits::APPEND_EVENTS_MAX`] or
    /// [`crate::limits::EVENT_BYTES_MAX`]; [`Error::Uncertain`] where it may have
    /// been stored; else what the disk says, and nothing was stored.
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: SessionSummary,
    ) -> Result<Seq, Error>;

    /// The events after a place, in order and without a gap: at most
    /// [`crate::limits::PAGE_EVENTS_MAX`] of them and about
    /// [`crate::limits::PAGE_BYTES_MAX`]. Every link of the chain is checked.
    /// A place at or after the last one gives an empty page.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Damaged`], [`Error::Newer`].
    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error>;

    /// The place of the last event, also of one that another process appended;
    /// `Seq(0)` for a session that does not exist. Cheap enough to poll.
    ///
    /// # Errors
    /// What the disk says.
    async fn head(&self, session: &SessionId) -> Result<Seq, Error>;

    /// Sessions in the order of their creation, newest first, at most `limit`
    /// and [`crate::limits::PAGE_SESSIONS_MAX`]. `before` continues a listing.
    ///
    /// # Errors
    /// What the disk says.
    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error>;

    /// One session as a listing shows it; nothing for one that does not exist.
    ///
    /// # Errors
    /// What the disk says.
    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error>;

    /// Keeps a folded state, so that loading need not begin at the first event.
    /// It is a cache: only the newest of a session is kept, and losing it loses nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] where the session has no event at that place;
    /// [`Error::TooLarge`] above [`crate::limits::SNAPSHOT_BYTES_MAX`].
    async fn keep_snapshot(
        &self,
        session: &SessionId,
        snapshot: SessionSnapshot,
    ) -> Result<(), Error>;

    /// The newest folded state, if it was made by this version of the fold and
    /// belongs to this very journal.
    ///
    /// # Errors
    /// What the disk says; a snapshot that cannot be used is none.
    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<CachedSnapshot, Error>;

    /// Reads the whole session and checks every link, blob and the head.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the first event that was edited, moved or
    /// removed; [`Error::NotFound`], [`Error::Newer`].
    async fn verify(&self, session: &SessionId) -> Result<VerifiedSession, Error>;
}

/// What a listing shows of a session. What is `None` stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionSummary {
    /// What it is about; cut at [`crate::limits::TITLE_BYTES_MAX`].
    pub title: Option<String>,
    /// How it stands, for example `answered`; cut at [`crate::limits::STATUS_BYTES_MAX`].
    pub status: Option<String>,
    /// How soon a signed checkpoint is to cover the events.
    pub cover: Cover,
    /// What the session has spent and reserved in all, if the events change that.
    pub charge: Option<Charge>,
}

impl SessionSummary {
    /// Whether a listing stays as it was.
    pub(crate) fn tells_nothing(&self) -> bool {
        self.title.is_none() && self.status.is_none()
    }
}

/// How soon a signed checkpoint covers events, in a journal that has a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Cover {
    /// When others are covered: after [`crate::limits::ANCHOR_MS_MAX`] or
    /// [`crate::limits::ANCHOR_EVENTS_MAX`], whichever comes first.
    #[default]
    Soon,
    /// In the same transaction: the session rests now, and the process may end.
    Now,
}

/// Some events of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The events.
    pub records: Vec<Record>,
    /// Where to go on, if there is more.
    pub more_after: Option<Seq>,
}

/// A session in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// When its first event was appended, milliseconds since 1970.
    pub created_at_ms: u64,
    /// When its last event was appended, milliseconds since 1970.
    pub last_at_ms: u64,
    /// The place of its last event.
    pub head: Seq,
    /// What it is about; empty if nobody said.
    pub title: String,
    /// How it stands; empty if nobody said.
    pub status: String,
}

/// Where a listing goes on: after the row that it was taken from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Before {
    /// Its creation.
    pub created_at_ms: u64,
    /// Its name.
    pub session: SessionId,
}

impl From<&SessionRow> for Before {
    fn from(row: &SessionRow) -> Self {
        Self { created_at_ms: row.created_at_ms, session: row.session.clone() }
    }
}

/// A folded state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSnapshot {
    /// The last event that is folded in.
    pub seq: Seq,
    /// The version of the fold that made it.
    pub version: u32,
    /// The state, in the fold's own form.
    pub state: Vec<u8>,
}

/// What was found where a snapshot is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedSnapshot {
    /// Nothing.
    Missing,
    /// One of another version of the fold.
    OtherVersion {
        /// Its version.
        found: u32,
    },
    /// One that is damaged, or belongs to another journal. Replay, and keep a new one.
    Damaged {
        /// What is wrong with it.
        what: &'static str,
    },
    /// One to begin with.
    Usable(SessionSnapshot),
}

impl CachedSnapshot {
    /// The snapshot, if it can be used.
    #[must_use]
    pub fn usable(self) -> Option<SessionSnapshot> {
        match self {
            Self::Usable(snapshot) => Some(snapshot),
            Self::Missing | Self::OtherVersion { .. } | Self::Damaged { .. } => None,
        }
    }
}

/// A session of which everything is as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSession {
    /// The place of its last event.
    pub head: Seq,
    /// The link of its last event, which stands for all of them.
    pub link: Digest,
}

/// Hands every event after a place to `each`, page by page.
///
/// # Errors
/// As [`Journal::load`].
pub async fn load_all(
    journal: &dyn Journal,
    session: &SessionId,
    after: Seq,
    mut each: impl FnMut(Record) + Send,
) -> Result<(), Error> {
    let mut next = Some(after);
    while let Some(after) = next {
        let page = journal.load(session, after).await?;
        page.records.into_iter().for_each(&mut each);
        next = page.more_after;
    }
    Ok(())
}
