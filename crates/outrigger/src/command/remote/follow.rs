//! A server's session, shown live until it waits or ends.

use futures_util::StreamExt;
use outrigger_agent::{Seq, SessionId, State};
use outrigger_client::StreamFrame;
use outrigger_store::load_all;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

use super::connection::Remote;
use super::questions::RemoteQuestions;
use super::watch::{AWAY, SessionNews, WatchError, WatchedSession};
use crate::command::ask::{AskOutcome, Asker};
use crate::command::drive::Interrupts;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::show::{Screen, Tone};

/// What Ctrl-C does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnInterrupt {
    /// It stops the turn; pressed again, only the watching.
    StopTurn,
    /// It stops the watching.
    Leave,
}

/// A session that is shown.
struct Following<'a> {
    watched: WatchedSession<'a>,
    /// Whether whoever sits there is asked what the session asks.
    asker: Asker<RemoteQuestions<'a>>,
    on_interrupt: OnInterrupt,
    /// How often Ctrl-C came.
    interrupted: u32,
}

/// What a frame, a key or the time led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    /// Nothing happens any more by itself.
    Parked,
}

/// Shows what comes after a place, until the session waits or ends, and gives how it stands
/// then.
pub(super) async fn follow(
    remote: &Remote,
    session: &SessionId,
    after: Seq,
    on_interrupt: OnInterrupt,
    screen: &mut Screen,
) -> Outcome<State> {
    let asker = Asker::new(RemoteQuestions::new(remote, session));
    let mut records = Vec::new();
    load_all(&remote.journal, session, Seq::default(), |record| records.push(record)).await?;
    let shown = records.iter().filter(|record| record.seq <= after);
    let shown = shown.inspect(|record| screen.learn(record)).fold(State::default(), State::apply);
    let watched = WatchedSession::new(remote, session, shown);
    let mut following = Following { watched, asker, on_interrupt, interrupted: 0 };
    let mut interrupts = Interrupts::listen()?;
    loop {
        match following.watch(screen, &mut interrupts).await {
            Ok(()) => return Ok(following.watched.state),
            Err(WatchError::Failed(failure)) => return Err(failure),
            Err(WatchError::Away(failure)) => {
                let (pause, attempts) = following.watched.pause();
                if attempts > limits::RECONNECTS_MAX {
                    return Err(failure);
                }
                if attempts == 1 {
                    screen.note(Tone::Warning, format!("! {AWAY}"));
                }
                interrupts.or_left(session, sleep(pause)).await?;
            }
        }
    }
}

impl Following<'_> {
    async fn catch_up(&mut self, screen: &mut Screen) -> Result<(), WatchError> {
        self.watched.catch_up().await?.iter().for_each(|record| screen.event(record));
        Ok(())
    }

    /// Follows one stream after the other, until the session is parked.
    async fn watch(
        &mut self,
        screen: &mut Screen,
        interrupts: &mut Interrupts,
    ) -> Result<(), WatchError> {
        loop {
            self.catch_up(screen).await?;
            let WatchedSession { remote, session, .. } = self.watched;
            let after = self.watched.state.seq().0;
            let stream = remote.client.follow(session.as_str(), after).await?;
            let mut stream = std::pin::pin!(stream);
            screen.begin_anew();
            let mut ticks = screen.ticks();
            let mut looked = Instant::now();
            loop {
                let step = tokio::select! {
                    biased;
                    frame = stream.next() => match frame {
                        Some(Ok(frame)) => self.frame(frame, screen).await?,
                        // Whatever it was, it is told when it comes again.
                        Some(Err(_)) | None => break,
                    },
                    () = interrupts.next() => self.interrupt(screen).await?,
                    line = screen.line(), if self.asker.is_open() => {
                        if self.asker.take(line?, screen).await? != AskOutcome::Open {
                            self.watched.look_again();
                        }
                        Step::On
                    }
                    () = self.asker.patience() => {
                        self.asker.leave(screen, "nobody answered");
                        self.watched.look_again();
                        Step::On
                    }
                    _ = ticks.tick() => {
                        screen.tick();
                        let due = looked.elapsed() >= Duration::from_millis(limits::REMOTE_LOOK_MS);
                        if due { looked = Instant::now(); }
                        self.look(due, screen).await?
                    }
                };
                if step == Step::Parked {
                    return Ok(());
                }
            }
        }
    }

    async fn frame(&mut self, frame: StreamFrame, screen: &mut Screen) -> Result<Step, WatchError> {
        for news in self.watched.take(frame).await? {
            match news {
                SessionNews::Event(record) => screen.event(&record),
                SessionNews::Live(effect, output) => screen.live(effect, &output),
                SessionNews::Warning(text) => screen.note(Tone::Warning, format!("! {text}")),
            }
        }
        self.look(false, screen).await
    }

    /// Looks whether the session waits, and asks whoever sits there.
    async fn look(&mut self, due: bool, screen: &mut Screen) -> Result<Step, WatchError> {
        if self.asker.is_open() {
            if due {
                self.asker.is_over(screen).await?;
            }
            return Ok(Step::On);
        }
        let Some(standing) = self.watched.look(due).await? else { return Ok(Step::On) };
        let came = match standing.may_ask {
            true => self.asker.look(screen).await?,
            false => AskOutcome::Left,
        };
        if came == AskOutcome::Answered {
            self.watched.look_again();
        }
        let parked = came == AskOutcome::Left && standing.rests;
        Ok(if parked { Step::Parked } else { Step::On })
    }

    async fn interrupt(&mut self, screen: &Screen) -> Result<Step, WatchError> {
        let session = self.watched.session;
        self.interrupted += 1;
        let leaves = self.interrupted > 1 || self.on_interrupt == OnInterrupt::Leave;
        if leaves || self.asker.is_open() {
            let text = format!("session {session} goes on at the server");
            let failure = Failure::new(Kind::Interrupted, text);
            return Err(failure
                .hint(format!("`outrigger attach {session}` shows it again."))
                .into());
        }
        screen.note(Tone::Warning, "! stopping; press Ctrl-C again to leave at once");
        let path = format!("/v1/sessions/{session}/interrupt");
        self.watched.remote.client.command(&path, &json!({})).await?;
        Ok(Step::On)
    }
}

async fn sleep(pause: Duration) -> Outcome {
    tokio::time::sleep(pause).await;
    Ok(())
}
