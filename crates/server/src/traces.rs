//! What sessions did, as spans: for `/metrics`, and for who is told of it.
//!
//! Owns that every event is looked at in the journal, where what the feed misses is as well.
//! Nothing waits for it: sessions go on whatever becomes of their spans.

use outrigger_agent::{Event, Seq, SessionId};
use outrigger_engine::{Feed, Notice};
use outrigger_telemetry::{Operation, SessionTrace, Span, SpanContext};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::server::ended;
use crate::{RequestError, Server, limits};

/// The sessions that are looked at.
pub(crate) struct Traces {
    server: Server,
    known: HashMap<SessionId, SessionTrace>,
    /// Where there is something to look at, with the first event that was told of.
    news: BTreeMap<SessionId, Seq>,
    began_ms: u64,
}

/// Looks, until the server ends.
pub(crate) async fn watch(server: Server, feed: Feed) {
    let mut notices = feed.listen();
    let (known, news, began_ms) = (HashMap::new(), BTreeMap::new(), server.now_ms());
    let ends = server.ends.clone();
    let mut traces = Traces { server, known, news, began_ms };
    let every = Duration::from_millis(limits::TRACES_LOOK_MS);
    let mut look_at = Instant::now() + every;
    loop {
        tokio::select! {
            biased;
            () = ended(ends.clone()) => break,
            () = tokio::time::sleep_until(look_at) => {
                traces.look().await;
                look_at = Instant::now() + every;
            }
            notice = notices.recv() => match notice {
                Ok((session, Notice::Appended(record))) => {
                    traces.news.entry(session).or_insert(record.seq);
                }
                // What another server drives it tells of itself.
                Ok((_, Notice::Elsewhere(_) | Notice::Live(..) | Notice::Warning(_))) => {}
                Err(RecvError::Lagged(_)) => traces.missed().await,
                Err(RecvError::Closed) => break,
            },
        }
    }
    traces.look().await;
}

impl Traces {
    /// Something was told that nobody heard: whatever is new is looked at.
    async fn missed(&mut self) {
        let journal = &self.server.parts.journal;
        // What can't be read now is told of by its next event.
        let rows = journal.sessions(None, limits::LISTING_SESSIONS_MAX).await.unwrap_or_default();
        for row in rows {
            let since = match self.known.get(&row.session) {
                Some(known) => known.head().next(),
                None => row.head,
            };
            if row.head >= since && row.last_at_ms >= self.began_ms {
                self.news.entry(row.session).or_insert(since);
            }
        }
    }

    /// Looks at what is new, and tells of what is over.
    async fn look(&mut self) {
        for (session, since) in std::mem::take(&mut self.news) {
            let Ok(spans) = self.of(&session, since).await else {
                self.news.insert(session, since);
                continue;
            };
            let metrics = &self.server.counters.spans;
            spans.iter().for_each(|span| metrics.count(span));
            if !spans.is_empty() {
                self.server.parts.observer.ended(&spans);
            }
        }
        if self.known.len() > limits::TRACED_SESSIONS_MAX {
            self.known.retain(|_, trace| trace.in_turn());
        }
    }

    /// The spans of a session that are over since it was looked at last. Of one that is looked
    /// at for the first time, those of the turn in which `since` is.
    async fn of(&mut self, session: &SessionId, since: Seq) -> Result<Vec<Span>, RequestError> {
        let journal = self.server.parts.journal.clone();
        let is_new = !self.known.contains_key(session);
        if is_new {
            let above = self.above(session).await?;
            let content = self.server.parts.observer.wants_content();
            let trace = SessionTrace::new(session.clone(), above, content);
            self.known.insert(session.clone(), trace);
        }
        let Some(trace) = self.known.get_mut(session) else { return Ok(Vec::new()) };
        let mut spans = Vec::new();
        loop {
            let page = match journal.load(session, trace.head()).await {
                Ok(page) => page,
                Err(error) => {
                    // What was made so far is made again.
                    self.known.remove(session);
                    return Err(error.into());
                }
            };
            for record in &page.records {
                let Some(span) = trace.apply(record) else { continue };
                let is_turn = matches!(span.operation, Operation::InvokeAgent { .. });
                spans.push(span);
                if is_new && is_turn && record.seq < since {
                    spans.clear();
                }
            }
            if page.more_after.is_none() {
                return Ok(spans);
            }
        }
    }

    /// The call that started a subagent.
    async fn above(&mut self, session: &SessionId) -> Result<Option<SpanContext>, RequestError> {
        if session.root() == *session {
            return Ok(None);
        }
        let first = self.server.parts.journal.load(session, Seq(0)).await?;
        let Some(Event::Opened(spec)) = first.records.first().map(|record| &record.event) else {
            return Ok(None);
        };
        let Some(parent) = spec.parent() else { return Ok(None) };
        if !self.known.contains_key(&parent.session) {
            // It tells of its own events itself; here it is known in time.
            Box::pin(self.of(&parent.session, Seq(u64::MAX))).await?;
        }
        Ok(self.known.get(&parent.session).map(|trace| trace.context(parent.effect)))
    }
}
