//! A journal that dies with its process, right before or right after a chosen
//! write, or at which something else happens first: somebody says something, stops
//! the turn, ends the session, or the sandbox is lost.

use async_trait::async_trait;
use outrigger_agent::{Author, Event, Message, Seq, SessionId};
use outrigger_engine::Engine;
use outrigger_sandbox::fake::{Disk, Fake};
use outrigger_sandbox::{Backend, Suspend};
use outrigger_store::{
    Before, Cached, Error, Journal, Memory, Page, SessionRow, Snapshot, Summary, Verified,
};
use std::sync::{Arc, Mutex};

use crate::world::SANDBOX;

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
    /// The same, and somebody else stops the turn.
    Interrupted(u64),
    /// The same, and somebody else ends the session.
    Cancelled(u64),
    /// It lives, but at this write, from 0, its sandbox is lost first.
    Lost(u64, Disk),
    /// It lives, but at this write, from 0, its sandbox is suspended first, unless it is busy.
    Suspended(u64, Suspend),
}

/// Who does what the simulated process does not do itself.
const OTHER: &str = "person:other";

impl Death {
    /// What somebody else appends right before a write.
    fn foreign(self, write: u64) -> Option<Event> {
        let by = || OTHER.to_owned();
        match self {
            Self::Overtaken(at) if at == write => {
                let author = Author::Person(by());
                let said = Message { author, text: "wait, this too".to_owned() };
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
    inner: Memory,
    sandboxes: Fake,
    death: Death,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    writes: u64,
    dead: bool,
}

impl Mortal {
    pub(crate) fn new(inner: Memory, sandboxes: Fake, death: Death) -> Self {
        Self { inner, sandboxes, death, progress: Mutex::default() }
    }

    pub(crate) fn writes(&self) -> u64 {
        self.progress.lock().expect("no writer panics").writes
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.progress.lock().expect("no writer panics").dead
    }

    fn alive(&self) -> Result<(), Error> {
        if self.is_dead() { Err(dead()) } else { Ok(()) }
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
        events: Vec<Event>,
        summary: Summary,
    ) -> Result<Seq, Error> {
        self.alive()?;
        let write = {
            let mut progress = self.progress.lock().expect("no writer panics");
            let write = progress.writes;
            progress.writes += 1;
            if self.death == Death::Before(write) {
                progress.dead = true;
                return Err(dead());
            }
            write
        };
        if let Some(event) = self.death.foreign(write) {
            self.inner.append(session, after, at_ms, vec![event], Summary::default()).await?;
        }
        if let Death::Lost(at, disk) = self.death
            && at == write
        {
            self.sandboxes.lose(&Engine::sandbox_id(session, SANDBOX), disk);
        }
        if let Death::Suspended(at, how) = self.death
            && at == write
        {
            drop(self.sandboxes.suspend(&Engine::sandbox_id(session, SANDBOX), how).await);
        }
        let appended = self.inner.append(session, after, at_ms, events, summary).await;
        if self.death == Death::After(write) {
            self.progress.lock().expect("no writer panics").dead = true;
            return Err(dead());
        }
        appended
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        self.alive()?;
        self.inner.load(session, after).await
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        self.alive()?;
        self.inner.head(session).await
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        self.inner.sessions(before, limit).await
    }

    async fn keep_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<(), Error> {
        self.inner.keep_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<Cached, Error> {
        self.inner.snapshot(session, version).await
    }

    async fn verify(&self, session: &SessionId) -> Result<Verified, Error> {
        self.inner.verify(session).await
    }
}
