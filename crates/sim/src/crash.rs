//! A journal that dies with its process, right before or right after a chosen
//! write, or at which something else happens first: somebody says something, stops
//! the turn, ends the session, or the sandbox is lost.

use async_trait::async_trait;
use outrigger_agent::{Author, Event, Message, Seq, SessionId};
use outrigger_sandbox::{Backend, Suspend};
use outrigger_sandbox_testing::fake::{Disk, Fake};
use outrigger_store::{
    Before, CachedSnapshot, Error, Journal, Page, SessionRow, SessionSnapshot, SessionSummary,
    VerifiedSession,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::Disorder;
use crate::spec::SANDBOX;
use crate::store::{Batch, Store};
use crate::tally::Happening;

/// What befalls a process, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Death {
    /// It lives.
    #[default]
    Never,
    /// It dies at this write, from 0; nothing of it is stored.
    Before(u64),
    /// It dies at this write, from 0; it is stored, and nobody is told.
    After(u64),
    /// It lives, but at this write, from 0, somebody else says something first.
    Overtaken(u64),
    /// It lives, but at this write, from 0, somebody else stops the turn first.
    Interrupted(u64),
    /// It lives, but at this write, from 0, somebody else ends the session first.
    Cancelled(u64),
    /// It lives, but at this write, from 0, its sandbox is lost first.
    Lost(u64, Disk),
    /// It lives, but at this write, from 0, its sandbox is suspended first, unless it is busy.
    Suspended(u64, Suspend),
}

/// Who does what the simulated process does not do itself.
const OTHER: &str = "person:other";

impl Death {
    /// What is left of it for the next process, after one that wrote so often and did not
    /// get there.
    pub(crate) fn after_writes(self, writes: u64) -> Option<Self> {
        let later = |at: u64| at.checked_sub(writes);
        Some(match self {
            Self::Never => return None,
            Self::Before(at) => Self::Before(later(at)?),
            Self::After(at) => Self::After(later(at)?),
            Self::Overtaken(at) => Self::Overtaken(later(at)?),
            Self::Interrupted(at) => Self::Interrupted(later(at)?),
            Self::Cancelled(at) => Self::Cancelled(later(at)?),
            Self::Lost(at, disk) => Self::Lost(later(at)?, disk),
            Self::Suspended(at, how) => Self::Suspended(later(at)?, how),
        })
    }

    /// What somebody else appends right before a write.
    fn foreign(self, write: u64) -> Option<Event> {
        let by = || OTHER.to_owned();
        match self {
            Self::Overtaken(at) if at == write => {
                let author = Author::Person(by());
                let said = Message::new(author, "wait, this too".to_owned());
                let said = Message { after_turn: at % 2 == 1, ..said };
                Some(Event::Said(Arc::new(said)))
            }
            Self::Interrupted(at) if at == write => Some(Event::Interrupted { by: by() }),
            Self::Cancelled(at) if at == write => {
                Some(Event::Cancelled { by: by(), reason: "simulated".to_owned() })
            }
            _ => None,
        }
    }
}

/// The journal as one process sees it.
#[derive(Debug)]
pub(crate) struct Mortal {
    store: Store,
    sandboxes: Fake,
    death: Death,
    /// What the store does wrong, if anything.
    disorder: Option<Disorder>,
    /// The session that people began.
    root: SessionId,
    writes: AtomicU64,
}

impl Mortal {
    pub(crate) fn new(
        store: Store,
        sandboxes: Fake,
        death: Death,
        disorder: Option<Disorder>,
        root: SessionId,
    ) -> Self {
        Self { store, sandboxes, death, disorder, root, writes: AtomicU64::new(0) }
    }

    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.store.life.is_dead()
    }

    /// Kills the process: what of it still goes on reaches nothing.
    pub(crate) fn kill(&self, how: Happening) {
        self.store.life.end();
        self.store.witness.count(how);
    }

    fn alive(&self) -> Result<(), Error> {
        if self.is_dead() { Err(dead()) } else { Ok(()) }
    }

    /// Whether the store did something wrong, so that the process may stop with an error.
    pub(crate) fn was_disturbed(&self) -> bool {
        self.disorder.as_ref().is_some_and(Disorder::struck)
    }

    fn die(&self, how: Happening) -> Error {
        self.kill(how);
        dead()
    }

    /// Somebody else appends, to the session that is written or to the one that people
    /// began.
    async fn meddle(&self, event: Event, write: u64, batch: &Batch) -> Result<(), Error> {
        let below = batch.session != self.root;
        // What is not opened yet is nobody's.
        let at_root = below && (batch.after == Seq(0) || write.is_multiple_of(2));
        if below && !at_root {
            self.store.witness.count(Happening::ChildMeddled);
        }
        if matches!(event, Event::Said(_)) {
            self.store.witness.count(Happening::Steered);
        }
        let (session, after) = match at_root {
            true => (self.root.clone(), self.store.inner.head(&self.root).await?),
            false => (batch.session.clone(), batch.after),
        };
        let (events, summary, at_ms) = (vec![event], SessionSummary::default(), batch.at_ms);
        self.store.write(Batch { session, after, at_ms, events, summary }).await.map(drop)
    }

    /// What is to happen at this write before it.
    async fn befall(&self, write: u64, batch: &Batch) -> Result<(), Error> {
        if let Some(event) = self.death.foreign(write) {
            self.meddle(event, write, batch).await?;
        }
        let id = || outrigger_engine::sandbox_id(&batch.session, SANDBOX);
        match self.death {
            Death::Lost(at, disk) if at == write => {
                self.sandboxes.lose(&id(), disk);
                self.store.witness.count(match disk {
                    Disk::Kept => Happening::LostLife,
                    Disk::Dropped => Happening::LostDisk,
                });
            }
            Death::Suspended(at, how) if at == write => {
                let suspended = self.sandboxes.suspend(&id(), how).await;
                if suspended.is_ok() {
                    self.store.witness.count(Happening::Suspended);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What a dead process sees; nobody acts on it.
fn dead() -> Error {
    Error::Closed
}

#[async_trait]
impl Journal for Mortal {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: SessionSummary,
    ) -> Result<Seq, Error> {
        self.alive()?;
        let write = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.death == Death::Before(write) {
            return Err(self.die(Happening::KilledBefore));
        }
        let events = events.to_vec();
        let batch = Batch { session: session.clone(), after, at_ms, events, summary };
        self.befall(write, &batch).await?;
        let appended = match &self.disorder {
            None => self.store.write(batch).await,
            Some(disorder) => match disorder.append(&self.store, batch).await {
                Ok(appended) => appended,
                Err(()) => return Err(self.die(Happening::Torn)),
            },
        };
        if self.death == Death::After(write) {
            return Err(self.die(Happening::KilledAfter));
        }
        appended
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        self.alive()?;
        if let Some(disorder) = &self.disorder {
            disorder.read().await;
        }
        self.store.read(session, after).await
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        self.alive()?;
        self.store.inner.head(session).await
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        self.store.inner.sessions(before, limit).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        self.store.inner.session(session).await
    }

    async fn keep_snapshot(
        &self,
        session: &SessionId,
        snapshot: SessionSnapshot,
    ) -> Result<(), Error> {
        self.store.inner.keep_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<CachedSnapshot, Error> {
        self.store.inner.snapshot(session, version).await
    }

    async fn verify(&self, session: &SessionId) -> Result<VerifiedSession, Error> {
        self.store.inner.verify(session).await
    }
}
