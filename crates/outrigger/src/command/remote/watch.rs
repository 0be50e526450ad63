//! A server's session as it goes on: what is heard of it, and whether it waits.
//!
//! Owns what of its journal was heard, so that nothing is heard twice or missed when the
//! connection breaks. Shows nothing.

use outrigger_agent::{Event, Record, Seq, SessionId, State};
use outrigger_api::{LiveFrame, LiveKind, SessionGroup};
use outrigger_client::{Error as ClientError, StreamFrame};
use outrigger_engine::LiveOutput;
use outrigger_store::{Error as StoreError, Retry, load_all};
use std::time::Duration;
use tokio::time::Instant;

use super::connection::Remote;
use crate::command::ask::asks;
use crate::exit::{Failure, Kind};
use crate::limits;

/// What is told where the server does not answer.
pub(super) const AWAY: &str = "the server is away; it is asked again";

/// A session that is followed.
#[derive(Debug)]
pub(super) struct WatchedSession<'a> {
    pub(super) remote: &'a Remote,
    pub(super) session: &'a SessionId,
    /// As far as it was heard.
    pub(super) state: State,
    /// Whether something happened after which it may wait.
    may_wait: bool,
    /// Since when its turn is one that nobody drives: a server that just began takes it up.
    cut_off: Option<Instant>,
    /// How often in a row the server did not answer.
    attempts: u32,
}

/// What is heard of a session.
#[derive(Debug)]
pub(super) enum SessionNews {
    Event(Record),
    Live(Option<Seq>, LiveOutput),
    Warning(String),
}

/// How a session stands of which everything was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionStanding {
    /// Whether nothing happens any more by itself.
    pub(super) rests: bool,
    /// Whether somebody may be asked, in it or in a subagent.
    pub(super) may_ask: bool,
}

/// Why no more is heard.
#[derive(Debug)]
pub(super) enum WatchError {
    /// The server may answer later.
    Away(Failure),
    Failed(Failure),
}

impl From<ClientError> for WatchError {
    fn from(error: ClientError) -> Self {
        match error.is_retryable() {
            true => Self::Away(error.into()),
            false => Self::Failed(error.into()),
        }
    }
}

impl From<StoreError> for WatchError {
    fn from(error: StoreError) -> Self {
        match error.retry() {
            Retry::Later => match Failure::from(&error) {
                refused if matches!(refused.kind, Kind::Auth | Kind::Denied) => {
                    Self::Failed(refused)
                }
                _ => Self::Away(Failure::from_error(Kind::ServerFailed, &error)),
            },
            Retry::AfterLoad | Retry::Never => Self::Failed(error.into()),
        }
    }
}

impl From<Failure> for WatchError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            Kind::ServerFailed => Self::Away(failure),
            _ => Self::Failed(failure),
        }
    }
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Self {
        let (WatchError::Away(failure) | WatchError::Failed(failure)) = error;
        failure
    }
}

impl<'a> WatchedSession<'a> {
    /// A session of which so much was heard.
    pub(super) fn new(remote: &'a Remote, session: &'a SessionId, state: State) -> Self {
        Self { remote, session, state, may_wait: true, cut_off: None, attempts: 0 }
    }

    /// What there is behind what was heard.
    pub(super) async fn catch_up(&mut self) -> Result<Vec<Record>, WatchError> {
        let mut records = Vec::new();
        let after = self.state.seq();
        load_all(&self.remote.journal, self.session, after, |it| records.push(it)).await?;
        for record in &records {
            self.may_wait |= asks(record) || matches!(record.event, Event::TurnEnded(_));
            self.state = std::mem::take(&mut self.state).apply(record);
        }
        self.attempts = 0;
        Ok(records)
    }

    /// What a frame of the stream brings.
    pub(super) async fn take(
        &mut self,
        frame: StreamFrame,
    ) -> Result<Vec<SessionNews>, WatchError> {
        Ok(match frame {
            StreamFrame::Event(seq) if Seq(seq) > self.state.seq() => {
                self.catch_up().await?.into_iter().map(SessionNews::Event).collect()
            }
            StreamFrame::Live(frame) => vec![live(frame)],
            StreamFrame::Session(info) => {
                self.may_wait |= info.group != SessionGroup::Running;
                Vec::new()
            }
            StreamFrame::Event(_) | StreamFrame::Presence(_) => Vec::new(),
        })
    }

    /// Something was done after which it may wait.
    pub(super) fn look_again(&mut self) {
        self.may_wait = true;
    }

    /// How it stands, where that may be otherwise than before and everything was heard. `due`:
    /// also where nothing was heard of it, as of what a subagent asks.
    pub(super) async fn look(&mut self, due: bool) -> Result<Option<SessionStanding>, WatchError> {
        let below = due && self.state.subagents(self.session).next().is_some();
        let unsure = due && self.cut_off.is_some();
        if !self.may_wait && !below && !unsure {
            return Ok(None);
        }
        let info = self.remote.client.get(&format!("/v1/sessions/{}", self.session)).await;
        let info: outrigger_api::SessionInfo = info?;
        self.attempts = 0;
        // Else its frame is on the way, and it is looked again then.
        self.may_wait = Seq(info.head) > self.state.seq();
        if self.may_wait {
            return Ok(None);
        }
        let runs = info.group == SessionGroup::Running;
        let is_cut_off = self.state.in_turn() && info.approvals == 0 && !runs;
        self.cut_off = self.cut_off.filter(|_| is_cut_off);
        let waits_to_be_taken_up = is_cut_off && {
            let since = self.cut_off.get_or_insert_with(Instant::now);
            since.elapsed() < Duration::from_millis(limits::TAKE_UP_MS_MAX)
        };
        Ok(Some(SessionStanding {
            rests: !runs && !waits_to_be_taken_up,
            may_ask: info.approvals > 0 || below,
        }))
    }

    /// How long it takes until a server is asked again that did not answer, and how often it
    /// was not.
    pub(super) fn pause(&mut self) -> (Duration, u32) {
        self.attempts += 1;
        // What was asked or answered last may not have come to anybody.
        self.may_wait = true;
        (Duration::from_millis(limits::RECONNECT_MS << self.attempts.min(5)), self.attempts)
    }
}

/// What is under way, as drivers of this machine tell it; or a warning.
fn live(frame: LiveFrame) -> SessionNews {
    let LiveFrame { kind, text, effect } = frame;
    let output = match kind {
        LiveKind::Attempt => LiveOutput::Attempt(text.parse().unwrap_or(1)),
        LiveKind::Text => LiveOutput::Text(text),
        LiveKind::Thinking => LiveOutput::Thinking(text),
        LiveKind::Calling => LiveOutput::Calling(text),
        LiveKind::Output => LiveOutput::Output(text.into_bytes()),
        LiveKind::Retrying | LiveKind::Warning => return SessionNews::Warning(text),
    };
    SessionNews::Live(Some(Seq(effect)), output)
}
