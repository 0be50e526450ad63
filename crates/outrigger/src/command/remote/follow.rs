//! A server's session, shown live until it waits or ends.

use futures_util::StreamExt;
use outrigger_agent::{Event, Record, Seq, SessionId, State};
use outrigger_api::{LiveFrame, LiveKind, SessionGroup};
use outrigger_client::StreamFrame;
use outrigger_engine::LiveOutput;
use outrigger_store::load_all;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

use super::connection::Remote;
use super::questions::RemoteQuestions;
use crate::command::ask::{AskOutcome, Asker, asks};
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

/// A session that is followed.
pub(super) struct Following<'a> {
    remote: &'a Remote<'a>,
    session: &'a SessionId,
    state: State,
    /// Whether whoever sits there is asked what the session asks.
    asker: Asker<RemoteQuestions<'a>>,
    /// Whether something happened after which somebody may be asked.
    may_ask: bool,
    /// Since when its turn is one that nobody drives: a server that just began takes it up.
    cut_off: Option<Instant>,
    on_interrupt: OnInterrupt,
}

/// What a frame, a key or the time led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    /// The stream is gone: it is asked for anew.
    Broken,
    /// Nothing happens any more by itself.
    Parked,
}

/// Shows what comes after a place, until the session waits or ends, and gives how it stands
/// then.
pub(super) async fn follow(
    remote: &Remote<'_>,
    session: &SessionId,
    after: Seq,
    on_interrupt: OnInterrupt,
    screen: &mut Screen,
) -> Outcome<State> {
    let asker = Asker::new(RemoteQuestions::new(remote, session));
    let state = State::default();
    let mut following =
        Following { remote, session, state, asker, may_ask: true, cut_off: None, on_interrupt };
    following.learn(after, screen).await?;
    let mut interrupts = Interrupts::listen()?;
    let watching = following.watch(screen, &mut interrupts);
    watching.await?;
    Ok(following.state)
}

impl Following<'_> {
    /// Takes note of what was shown before, and shows the rest of what there is.
    async fn learn(&mut self, after: Seq, screen: &mut Screen) -> Outcome {
        let mut records = Vec::new();
        load_all(&self.remote.journal, self.session, Seq::default(), |it| records.push(it)).await?;
        for record in records {
            if record.seq <= after {
                screen.learn(&record);
            } else {
                screen.event(&record);
            }
            self.take(&record);
        }
        Ok(())
    }

    fn take(&mut self, record: &Record) {
        self.may_ask |= asks(record) || matches!(record.event, Event::TurnEnded(_));
        self.state = std::mem::take(&mut self.state).apply(record);
    }

    async fn catch_up(&mut self, screen: &mut Screen) -> Outcome {
        let mut records = Vec::new();
        load_all(&self.remote.journal, self.session, self.state.seq(), |it| records.push(it))
            .await?;
        for record in records {
            screen.event(&record);
            self.take(&record);
        }
        Ok(())
    }

    /// Follows stream after stream, until the session is parked.
    async fn watch(&mut self, screen: &mut Screen, interrupts: &mut Interrupts) -> Outcome {
        let mut attempts = 0;
        let mut interrupted = 0;
        loop {
            let after = self.state.seq().0;
            let stream = self.remote.client.follow(self.session.as_str(), after).await;
            let stream = match stream {
                Err(error) if error.is_retryable() && attempts < limits::RECONNECTS_MAX => {
                    attempts += 1;
                    if attempts == 1 {
                        screen.note(Tone::Warning, "! the server is away; it is asked again");
                    }
                    let pause = Duration::from_millis(limits::RECONNECT_MS << attempts.min(5));
                    interrupts.or_left(self.session, sleep(pause)).await?;
                    continue;
                }
                stream => stream?,
            };
            attempts = 0;
            let mut stream = std::pin::pin!(stream);
            let mut ticks = screen.ticks();
            let mut looked = Instant::now();
            loop {
                let step = tokio::select! {
                    biased;
                    frame = stream.next() => match frame {
                        Some(Ok(frame)) => self.frame(frame, screen).await?,
                        // Whatever it was, it is told when it comes again.
                        Some(Err(_)) | None => Step::Broken,
                    },
                    () = interrupts.next() => {
                        interrupted += 1;
                        self.interrupt(interrupted, screen).await?
                    }
                    line = screen.line(), if self.asker.is_open() => {
                        self.may_ask |= self.asker.take(line?, screen).await? != AskOutcome::Open;
                        Step::On
                    }
                    () = self.asker.patience() => {
                        self.asker.leave(screen, "nobody answered");
                        self.may_ask = true;
                        Step::On
                    }
                    _ = ticks.tick() => {
                        screen.tick();
                        let due = looked.elapsed() >= Duration::from_millis(limits::REMOTE_LOOK_MS);
                        if due { looked = Instant::now(); }
                        self.look(due, screen).await?
                    }
                };
                match step {
                    Step::On => {}
                    Step::Broken => break,
                    Step::Parked => return Ok(()),
                }
            }
        }
    }

    async fn frame(&mut self, frame: StreamFrame, screen: &mut Screen) -> Outcome<Step> {
        match frame {
            StreamFrame::Event(seq) if Seq(seq) > self.state.seq() => self.catch_up(screen).await?,
            StreamFrame::Live(frame) => {
                let effect = Some(Seq(frame.effect)).filter(|_| frame.kind != LiveKind::Warning);
                match live(frame) {
                    Ok(output) => screen.live(effect, &output),
                    Err(warning) => screen.note(Tone::Warning, format!("! {warning}")),
                }
            }
            StreamFrame::Session(info) if info.group != SessionGroup::Running => {
                self.may_ask = true
            }
            StreamFrame::Event(_) | StreamFrame::Session(_) | StreamFrame::Presence(_) => {}
        }
        if self.may_ask { self.look(true, screen).await } else { Ok(Step::On) }
    }

    /// Looks whether the session waits, and asks whoever sits there. `due`: also where nothing
    /// was heard of it, as of what a subagent asks.
    async fn look(&mut self, due: bool, screen: &mut Screen) -> Outcome<Step> {
        if self.asker.is_open() {
            if due {
                self.asker.is_over(screen).await?;
            }
            return Ok(Step::On);
        }
        let below = due && self.state.subagents(self.session).next().is_some();
        let unsure = due && self.cut_off.is_some();
        if !std::mem::take(&mut self.may_ask) && !below && !unsure {
            return Ok(Step::On);
        }
        let info = self.remote.info(self.session).await?;
        if Seq(info.head) > self.state.seq() {
            // Its frame is on the way, and it is looked again then.
            self.may_ask = true;
            return Ok(Step::On);
        }
        let is_asked = info.approvals > 0 || below;
        let came = match is_asked {
            true => self.asker.look(screen).await?,
            false => AskOutcome::Left,
        };
        let is_cut_off = self.state.in_turn() && info.approvals == 0;
        if is_cut_off && info.group != SessionGroup::Running {
            let since = self.cut_off.get_or_insert_with(Instant::now);
            if since.elapsed() < Duration::from_millis(limits::TAKE_UP_MS_MAX) {
                return Ok(Step::On);
            }
        } else {
            self.cut_off = None;
        }
        match came {
            AskOutcome::Left if info.group != SessionGroup::Running => Ok(Step::Parked),
            came => {
                self.may_ask |= came == AskOutcome::Answered;
                Ok(Step::On)
            }
        }
    }

    async fn interrupt(&mut self, times: u32, screen: &Screen) -> Outcome<Step> {
        let session = self.session;
        if times > 1 || self.on_interrupt == OnInterrupt::Leave || self.asker.is_open() {
            let text = format!("session {session} goes on at the server");
            return Err(Failure::new(Kind::Interrupted, text)
                .hint(format!("`outrigger attach {session}` shows it again.")));
        }
        screen.note(Tone::Warning, "! stopping; press Ctrl-C again to leave at once");
        let path = format!("/v1/sessions/{session}/interrupt");
        self.remote.client.command(&path, &json!({})).await?;
        Ok(Step::On)
    }
}

async fn sleep(pause: Duration) -> Outcome {
    tokio::time::sleep(pause).await;
    Ok(())
}

/// What is under way, as drivers of this machine tell it; or a warning.
fn live(frame: LiveFrame) -> Result<LiveOutput, String> {
    let LiveFrame { kind, text, .. } = frame;
    Ok(match kind {
        LiveKind::Attempt => LiveOutput::Attempt(text.parse().unwrap_or(1)),
        LiveKind::Text => LiveOutput::Text(text),
        LiveKind::Thinking => LiveOutput::Thinking(text),
        LiveKind::Calling => LiveOutput::Calling(text),
        LiveKind::Output => LiveOutput::Output(text.into_bytes()),
        LiveKind::Retrying | LiveKind::Warning => return Err(text),
    })
}
