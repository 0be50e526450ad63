//! The labels of a session, while its tools and programs read entries.
//!
//! Owns that a label is in the journal before the text that brings it can be used: a crash
//! may come at any moment after. So what is read with labels that the session has already,
//! which is nearly everything, costs nothing.

use outrigger_agent::{Event, Record, SessionId, Touched};
use outrigger_store::{Error as StoreError, Journal, SessionSummary};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Clock, Feed, Notice, limits};

/// The labels of a session, each in its journal before the text that brought it is used.
pub(super) struct SessionLabels {
    /// All that the journal has, and perhaps some that a person took back since.
    known: Mutex<BTreeSet<String>>,
    /// Nothing where no session is driven.
    journal: Option<(Arc<dyn Journal>, Feed)>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) session: SessionId,
}

impl fmt::Debug for SessionLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLabels").field("known", &self.known).finish_non_exhaustive()
    }
}

impl SessionLabels {
    pub(super) fn new(
        clock: &Arc<dyn Clock>,
        session: &SessionId,
        journal: Option<(Arc<dyn Journal>, Feed)>,
    ) -> Self {
        let (clock, session) = (Arc::clone(clock), session.clone());
        Self { known: Mutex::default(), journal, clock, session }
    }

    pub(super) fn all(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the journal has.
    pub(super) fn add(&self, labels: &BTreeSet<String>) {
        self.all().extend(labels.iter().cloned());
    }

    /// A text with these labels is about to be used.
    pub(super) async fn learn(&self, labels: &BTreeSet<String>) -> Result<(), StoreError> {
        let new: BTreeSet<String> = labels.difference(&self.all()).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        if let Some((journal, feed)) = &self.journal {
            self.append(&**journal, feed, &new).await?;
        }
        self.add(&new);
        Ok(())
    }

    /// A driver may append meanwhile: it finds this event as it finds any of another
    /// process, and decides again.
    async fn append(
        &self,
        journal: &dyn Journal,
        feed: &Feed,
        labels: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let touched = Touched { labels: labels.clone(), ..Touched::default() };
        let event = Event::Touched(Arc::new(touched));
        let mut attempts = 0;
        loop {
            let after = journal.head(&self.session).await?;
            let (at_ms, summary) = (self.clock.now_ms(), SessionSummary::default());
            let events = std::slice::from_ref(&event);
            match journal.append(&self.session, after, at_ms, events, summary).await {
                Ok(_) => {
                    let record = Record { seq: after.next(), at_ms, event };
                    feed.tell(&self.session, || Notice::Appended(Arc::new(record)));
                    return Ok(());
                }
                Err(StoreError::Conflict { .. } | StoreError::Uncertain { .. })
                    if attempts < limits::CONFLICTS_MAX =>
                {
                    attempts += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
