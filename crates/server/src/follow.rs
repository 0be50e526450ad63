//! Follows one session: its events in order and without a gap, with live output between.

use axum::response::sse::Event as Frame;
use outrigger_agent::{Event, Record, Seq, SessionId};
use outrigger_api::{LiveFrame, LiveKind};
use outrigger_engine::{LiveOutput, Notice};
use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::server::ended;
use crate::{RequestError, Server, convert, limits};

/// Somebody who follows a session.
pub(crate) struct Follower {
    server: Server,
    session: SessionId,
    notices: Receiver<Notice>,
    /// The last event that was given.
    given: Seq,
    /// Events that come next.
    queue: VecDeque<Record>,
    /// What effects that were under way at the beginning had put out.
    early: VecDeque<(Seq, LiveOutput)>,
    /// Whether the queue reaches to where the journal ended when it was looked at last.
    is_current: bool,
    ends_at: Instant,
}

/// What comes next.
pub(crate) enum Followed {
    Event(Record),
    Live(LiveFrame),
    /// The stream ends; whoever follows begins again where it was.
    End,
}

impl Follower {
    pub(crate) fn new(server: &Server, session: SessionId, after: Seq) -> Self {
        // Before the first look into the journal, so that nothing falls between.
        let (notices, early) = server.hub.follow(&session);
        let ends_at = Instant::now() + Duration::from_millis(limits::STREAM_MS_MAX);
        let (server, queue) = (server.clone(), VecDeque::new());
        Self { server, session, notices, given: after, queue, early, is_current: false, ends_at }
    }

    /// What comes next. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Followed, RequestError> {
        loop {
            self.look().await?;
            if let Some(record) = self.queue.pop_front() {
                self.given = record.seq;
                if let Event::Settled { effect, .. } = &record.event {
                    self.early.retain(|(of, _)| of != effect);
                }
                return Ok(Followed::Event(record));
            }
            if let Some((effect, live)) = self.early.pop_front() {
                // Not before every event that there was, the end of the effect among them.
                return Ok(Followed::Live(frame(effect, live)));
            }
            tokio::select! {
                biased;
                () = ended(self.server.ends.clone()) => return Ok(Followed::End),
                notice = self.notices.recv() => match notice {
                    Ok(Notice::Appended(record)) if record.seq == self.given.next() => {
                        self.queue.push_back((*record).clone());
                    }
                    Ok(Notice::Appended(record)) if record.seq <= self.given => {}
                    Ok(Notice::Elsewhere(head)) if head <= self.given => {}
                    Ok(Notice::Appended(_) | Notice::Elsewhere(_)) | Err(RecvError::Lagged(_)) => {
                        self.is_current = false;
                    }
                    Ok(Notice::Live(effect, live)) => {
                        return Ok(Followed::Live(frame(effect, live)));
                    }
                    Ok(Notice::Warning(warning)) => {
                        let text = RequestError::of(outrigger_api::ProblemCode::Internal, &warning);
                        let (effect, kind) = (0, LiveKind::Warning);
                        return Ok(Followed::Live(LiveFrame { effect, kind, text: text.detail }));
                    }
                    Err(RecvError::Closed) => self.notices = self.server.hub.follow(&self.session).0,
                },
                () = tokio::time::sleep(Duration::from_millis(limits::FOREIGN_POLL_MS)) => {
                    if Instant::now() >= self.ends_at {
                        return Ok(Followed::End);
                    }
                    let Server { listing, parts, .. } = &self.server;
                    // One look at all sessions does for everybody who follows one.
                    let head = match listing.looked_head(&self.session) {
                        Some(head) => head,
                        None => parts.journal.head(&self.session).await?,
                    };
                    self.is_current = head <= self.given;
                }
            }
        }
    }

    /// Takes what the journal has beyond what was given, a page of it.
    async fn look(&mut self) -> Result<(), RequestError> {
        if self.queue.is_empty() && !self.is_current {
            let page = self.server.parts.journal.load(&self.session, self.given).await?;
            self.is_current = page.more_after.is_none();
            self.queue.extend(page.records);
        }
        Ok(())
    }
}

fn frame(effect: Seq, live: LiveOutput) -> LiveFrame {
    let (kind, text) = match live {
        LiveOutput::Attempt(number) => (LiveKind::Attempt, number.to_string()),
        LiveOutput::Retrying { wait_ms, reason } => {
            let seconds = wait_ms.div_ceil(1_000);
            (LiveKind::Retrying, format!("{reason}; asked again in {seconds} s"))
        }
        LiveOutput::Text(text) => (LiveKind::Text, text),
        LiveOutput::Thinking(text) => (LiveKind::Thinking, text),
        LiveOutput::Calling(tool) => (LiveKind::Calling, tool),
        LiveOutput::Output(bytes) => {
            (LiveKind::Output, String::from_utf8_lossy(&bytes).into_owned())
        }
    };
    LiveFrame { effect: effect.0, kind, text }
}

impl Followed {
    /// Whether somebody may not see the session any more from here on. One of a subagent is shared
    /// in the journal of the session above, which its own followers don't read.
    pub(crate) fn may_end_access(&self, session: &str) -> bool {
        let Self::Event(record) = self else { return false };
        let is_child = SessionId::new(session).is_some_and(|id| id.root() != id);
        is_child || matches!(record.event, Event::Shared { .. })
    }

    /// As it stands in a stream; nothing for its end.
    pub(crate) fn frame(self) -> Option<Frame> {
        match self {
            Self::Event(record) => {
                let event = convert::event(&record);
                Some(named("event", &event).id(event.seq.to_string()))
            }
            Self::Live(live) => Some(named("live", &live)),
            Self::End => None,
        }
    }
}

/// A frame of a stream. What we say to clients can always be written as JSON.
pub(crate) fn named(name: &str, data: &impl Serialize) -> Frame {
    let data = serde_json::to_string(data).unwrap_or_default();
    Frame::default().event(name).data(data)
}
