//! A journal that waits for its store.
//!
//! Owns that a store which is busy or full for a moment costs nothing but time: what a
//! driver knows already, a reply that was paid for or the answer of a tool outside, is held
//! until it can be written. Must never append twice: only what certainly was not stored is
//! tried again.

use async_trait::async_trait;
use outrigger_agent::{Event, Seq, SessionId};
use outrigger_store::{
    Before, CachedSnapshot, Error, Journal, Page, Retry, SessionRow, SessionSnapshot,
    SessionSummary, VerifiedSession,
};
use std::sync::Arc;
use std::time::Duration;

use crate::{Feed, Notice, Warning, limits};

/// A journal that tries again while its store is busy or full.
#[derive(Debug)]
pub(crate) struct RetryingJournal {
    inner: Arc<dyn Journal>,
    feed: Feed,
}

impl RetryingJournal {
    pub(crate) fn new(inner: Arc<dyn Journal>, feed: Feed) -> Self {
        Self { inner, feed }
    }

    /// Does something again until the store is back. What it waits for is told once.
    async fn persist<T, F: Future<Output = Result<T, Error>> + Send>(
        &self,
        session: &SessionId,
        attempt: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Error> {
        let (mut pause_ms, mut left_ms) = (limits::STORE_PAUSE_MS_MIN, limits::STORE_WAIT_MS_MAX);
        loop {
            let error = match attempt().await {
                Err(error) if error.retry() == Retry::Later && left_ms > 0 => error,
                done => return done,
            };
            if left_ms == limits::STORE_WAIT_MS_MAX {
                let reason = crate::workspace::explain(&error);
                self.feed.tell(session, || Notice::Warning(Warning::StoreAway { reason }));
            }
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            left_ms = left_ms.saturating_sub(pause_ms);
            pause_ms = (pause_ms * 2).min(limits::STORE_PAUSE_MS_MAX);
        }
    }
}

#[async_trait]
impl Journal for RetryingJournal {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: SessionSummary,
    ) -> Result<Seq, Error> {
        self.persist(session, || self.inner.append(session, after, at_ms, events, summary.clone()))
            .await
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        self.persist(session, || self.inner.load(session, after)).await
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        self.persist(session, || self.inner.head(session)).await
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        self.inner.sessions(before, limit).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        self.inner.session(session).await
    }

    /// A cache: nobody waits for it.
    async fn keep_snapshot(
        &self,
        session: &SessionId,
        snapshot: SessionSnapshot,
    ) -> Result<(), Error> {
        self.inner.keep_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<CachedSnapshot, Error> {
        self.persist(session, || self.inner.snapshot(session, version)).await
    }

    async fn verify(&self, session: &SessionId) -> Result<VerifiedSession, Error> {
        self.inner.verify(session).await
    }
}
