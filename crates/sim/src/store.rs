//! The journal that all harnesses of a world share, seen by the witness; and the same
//! with one safeguard taken away, to show that the simulation notices.

use outrigger_agent::{Event, Seq, SessionId};
use outrigger_store::{Error, Journal, Memory, Page, SessionSummary};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::ledger::Under;
use crate::limits;
use crate::tally::Happening;
use crate::witness::{AppendRecord, Witness};

/// A safeguard that can be taken away from outside the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// The store takes what is appended, wherever the writer believes the session to be.
    Fencing,
    /// The store says that an intent is durable before it is.
    Intent,
    /// The engine believes that the budget has no end.
    Reservation,
    /// The engine goes by the rules that were in force when the session was opened.
    Redecision,
}

/// The journal with its witness, as one harness reaches it.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) inner: Memory,
    pub(crate) witness: Arc<Witness>,
    pub(crate) without: Option<Without>,
    pub(crate) under: Under,
    /// Of which process.
    pub(crate) life: Arc<Life>,
}

/// A process, which may be dead.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) number: u64,
    dead: AtomicBool,
}

impl Life {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, dead: AtomicBool::new(false) }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Whatever of it still goes on reaches nothing any more.
    pub(crate) fn end(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }
}

/// What is to be written.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) session: SessionId,
    pub(crate) after: Seq,
    pub(crate) at_ms: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) summary: SessionSummary,
}

impl Batch {
    fn starts(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Started { .. }))
    }
}

impl Store {
    /// Appends.
    pub(crate) async fn write(&self, batch: Batch) -> Result<Seq, Error> {
        match self.without {
            Some(Without::Fencing) => {
                let after = self.inner.head(&batch.session).await?;
                let claimed = Seq(batch.after.0 + batch.events.len() as u64);
                let kept = self.keep(Batch { after, ..batch }).await;
                kept.map(|_| claimed)
            }
            Some(Without::Intent) if batch.starts() => {
                let claimed = Seq(batch.after.0 + batch.events.len() as u64);
                let store = self.clone();
                self.detach(async move {
                    tokio::time::sleep(Duration::from_millis(limits::INTENT_LATE_MS)).await;
                    drop(store.keep(batch).await);
                });
                Ok(claimed)
            }
            _ => self.keep(batch).await,
        }
    }

    async fn keep(&self, batch: Batch) -> Result<Seq, Error> {
        let Batch { session, after, at_ms, events, summary } = batch;
        let kept = self.inner.append(&session, after, at_ms, &events, summary).await;
        match &kept {
            Ok(_) => {
                let (session, events) = (&session, &events[..]);
                let (under, writer) = (self.under, self.life.number);
                let appended = AppendRecord { session, after, at_ms, events, under, writer };
                self.witness.appended(appended);
            }
            Err(Error::Conflict { .. }) => self.witness.count(Happening::Fenced),
            Err(Error::Budget(_)) => self.witness.unaffordable(&session, &events),
            Err(_) => {}
        }
        kept
    }

    /// Reads.
    pub(crate) async fn read(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        let mut page = self.inner.load(session, after).await?;
        if self.without == Some(Without::Reservation) {
            for record in &mut page.records {
                if let Event::Opened(spec) = &mut record.event {
                    let mut endless = (**spec).clone();
                    endless.budget = outrigger_agent::Limit::NONE;
                    *spec = Arc::new(endless);
                }
            }
        }
        Ok(page)
    }

    /// Lets something come about whatever becomes of who asked for it.
    #[expect(
        clippy::disallowed_methods,
        reason = "the world around the engine is no part of the engine's tasks"
    )]
    pub(crate) fn detach<T: Send + 'static>(
        &self,
        what: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        let witness = Arc::clone(&self.witness);
        witness.on_its_way(true);
        tokio::spawn(async move {
            let done = what.await;
            witness.on_its_way(false);
            done
        })
    }
}
