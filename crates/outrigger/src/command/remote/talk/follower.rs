//! Follows a server's session for a conversation, and does there what is said to it.

use futures_util::StreamExt;
use outrigger_agent::{SessionId, State};
use outrigger_api::ProblemCode;
use outrigger_client::{Error, StreamFrame};
use serde_json::json;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::order::Order;
use crate::command::ask::{AnswerReceipt, QuestionSource};
use crate::command::converse::over;
use crate::command::remote::connection::{Remote, cut_off};
use crate::command::remote::questions::RemoteQuestions;
use crate::command::remote::watch::{AWAY, SessionNews, WatchError, WatchedSession};
use crate::conversation::Input;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::question::{Decision, Question};
use crate::show::Tone;

/// A session that is followed for a conversation.
pub(super) struct Follower<'a> {
    watched: WatchedSession<'a>,
    questions: RemoteQuestions<'a>,
    /// What is to be done, in order. What was begun stays until it was answered.
    orders: VecDeque<Order>,
    /// Whether the conversation takes it for one that goes on.
    driven: bool,
    /// Whether it shows questions.
    asked: bool,
    /// Whether it knows that the server is away.
    away: bool,
    tells: Sender<Outcome<Vec<Input>>>,
}

/// Why nobody is told anything any more.
enum End {
    /// Nobody is there to be told.
    Left,
    Watch(WatchError),
}

impl From<WatchError> for End {
    fn from(error: WatchError) -> Self {
        Self::Watch(error)
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Watch(error.into())
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Watch(failure.into())
    }
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        remote: &'a Remote,
        session: &'a SessionId,
        state: State,
        driven: bool,
        tells: Sender<Outcome<Vec<Input>>>,
    ) -> Self {
        let questions = RemoteQuestions::new(remote, session);
        let watched = WatchedSession::new(remote, session, state);
        let (orders, asked, away) = (VecDeque::new(), false, false);
        Self { watched, questions, orders, driven, asked, away, tells }
    }

    /// Follows it until nobody talks with it any more, or it can't be.
    pub(super) async fn follow(mut self, mut ordered: Receiver<Order>) {
        loop {
            let end = match self.watch(&mut ordered).await {
                Err(End::Watch(WatchError::Away(_))) => self.come_back(&mut ordered).await,
                Err(end) => Err(end),
                Ok(()) => Ok(()),
            };
            match end {
                Ok(()) => {}
                Err(End::Left) => return,
                Err(End::Watch(error)) => {
                    let unsaid = self.orders.drain(..).filter_map(unsaid).collect();
                    drop(self.tells.send(Ok(unsaid)).await);
                    drop(self.tells.send(Err(error.into())).await);
                    return;
                }
            }
        }
    }

    /// Waits until a server is asked again that did not answer.
    async fn come_back(&mut self, ordered: &mut Receiver<Order>) -> Result<(), End> {
        let (pause, _) = self.watched.pause();
        if !std::mem::replace(&mut self.away, true) {
            self.tell(vec![Input::Away(AWAY.to_owned())]).await?;
        }
        let pause = tokio::time::sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => return Ok(()),
                order = ordered.recv() => self.orders.push_back(order.ok_or(End::Left)?),
            }
        }
    }

    /// Follows one stream.
    async fn watch(&mut self, ordered: &mut Receiver<Order>) -> Result<(), End> {
        self.catch_up().await?;
        let WatchedSession { remote, session, .. } = self.watched;
        let after = self.watched.state.seq().0;
        let stream = remote.client.follow(session.as_str(), after).await?;
        let mut stream = std::pin::pin!(stream);
        self.away = false;
        self.tell(vec![Input::Back]).await?;
        let mut ticks = interval(Duration::from_millis(limits::REMOTE_LOOK_MS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.perform_all().await?;
            tokio::select! {
                biased;
                frame = stream.next() => match frame {
                    Some(Ok(frame)) => self.frame(frame).await?,
                    // Whatever it was, it is told when it comes again.
                    Some(Err(_)) | None => return Ok(()),
                },
                order = ordered.recv() => self.orders.push_back(order.ok_or(End::Left)?),
                _ = ticks.tick() => self.look(true).await?,
            }
        }
    }

    async fn tell(&self, inputs: Vec<Input>) -> Result<(), End> {
        if inputs.is_empty() {
            return Ok(());
        }
        self.tells.send(Ok(inputs)).await.map_err(|_| End::Left)
    }

    /// Says that it goes on, where that is not known.
    async fn goes_on(&mut self) -> Result<(), End> {
        if std::mem::replace(&mut self.driven, true) {
            return Ok(());
        }
        self.tell(vec![Input::Working]).await
    }

    async fn catch_up(&mut self) -> Result<(), End> {
        let records = self.watched.catch_up().await?;
        let is_new = !records.is_empty();
        self.tell(records.into_iter().map(|it| Input::Event(it.into())).collect()).await?;
        // Others may say something as well.
        if is_new && self.watched.state.in_turn() {
            self.goes_on().await?;
        }
        Ok(())
    }

    async fn frame(&mut self, frame: StreamFrame) -> Result<(), End> {
        let news = self.watched.take(frame).await?;
        let has_event = news.iter().any(|it| matches!(it, SessionNews::Event(_)));
        let input = |news| match news {
            SessionNews::Event(record) => Input::Event(record.into()),
            SessionNews::Live(effect, output) => Input::Live(effect, output),
            SessionNews::Warning(text) => Input::Note(Tone::Warning, format!("! {text}")),
        };
        self.tell(news.into_iter().map(input).collect()).await?;
        if has_event && self.watched.state.in_turn() {
            self.goes_on().await?;
        }
        self.look(false).await
    }

    /// Looks whether the session waits, and what it asks.
    async fn look(&mut self, due: bool) -> Result<(), End> {
        let Some(standing) = self.watched.look(due).await? else { return Ok(()) };
        let asked = if standing.may_ask { self.questions.all().await? } else { Vec::new() };
        let is_asked = !asked.is_empty();
        if std::mem::replace(&mut self.asked, is_asked) || is_asked {
            self.tell(vec![Input::Asked(asked)]).await?;
        }
        if !standing.rests {
            return self.goes_on().await;
        }
        if is_asked {
            self.driven = false;
            return self.tell(vec![Input::Waiting]).await;
        }
        if !std::mem::take(&mut self.driven) {
            return Ok(());
        }
        let (state, session) = (&self.watched.state, self.watched.session);
        if standing.may_ask {
            let text = format!("! session {session} waits for an answer of somebody else");
            let note = Input::Note(Tone::Warning, text);
            return self.tell(vec![note, Input::Waiting]).await;
        }
        if state.in_turn() {
            let told = self.tells.send(Err(cut_off(session))).await;
            return told.map_err(|_| End::Left);
        }
        let inputs = over(state).into();
        self.tell(inputs).await
    }

    /// Does what is to be done, in order, until the server does not answer.
    async fn perform_all(&mut self) -> Result<(), End> {
        while let Some(order) = self.orders.front() {
            let longest = Duration::from_millis(limits::ORDER_MS_MAX);
            let performed = match timeout(longest, self.perform(order)).await {
                Ok(performed) => performed,
                Err(_) => {
                    let text = format!("{} gives no answer", self.watched.remote.client.server());
                    Err(WatchError::Away(Failure::new(Kind::ServerFailed, text)))
                }
            };
            let told = match performed {
                Err(error @ WatchError::Away(_)) => return Err(error.into()),
                Err(WatchError::Failed(failure)) => Err(failure),
                Ok(inputs) => Ok(inputs),
            };
            let order = self.orders.pop_front();
            self.watched.look_again();
            match told {
                Ok(inputs) => {
                    if !matches!(order, Some(Order::Look)) {
                        // Whatever was told before, it goes on behind that.
                        self.driven = true;
                        self.tell(vec![Input::Working]).await?;
                    }
                    self.tell(inputs).await?;
                }
                Err(failure) => {
                    self.driven = false;
                    self.tell(order.into_iter().filter_map(unsaid).collect()).await?;
                    self.tells.send(Err(failure)).await.map_err(|_| End::Left)?;
                }
            }
            self.look(false).await?;
        }
        Ok(())
    }

    /// Does one thing; what is told of it.
    async fn perform(&self, order: &Order) -> Result<Vec<Input>, WatchError> {
        let WatchedSession { remote, session, .. } = &self.watched;
        let path = |what| format!("/v1/sessions/{session}/{what}");
        match order {
            Order::Say { said, key } => {
                remote.client.command_once(&path("messages"), said, key).await?;
            }
            Order::Interrupt => {
                match remote.client.command(&path("interrupt"), &json!({})).await {
                    // It was over by then.
                    Err(Error::Problem(problem)) if problem.code == ProblemCode::Conflict => {}
                    done => done?,
                }
            }
            Order::Answer(question, decision) => return self.answer(question, decision).await,
            Order::Look => {}
        }
        Ok(Vec::new())
    }

    async fn answer(
        &self,
        question: &Question,
        decision: &Decision,
    ) -> Result<Vec<Input>, WatchError> {
        Ok(match self.questions.answer(question, decision, None).await? {
            // It was answered elsewhere: it goes on all the same.
            AnswerReceipt::Taken | AnswerReceipt::Over(_) => Vec::new(),
            AnswerReceipt::NotEntitled(why) => {
                vec![Input::Note(Tone::Warning, format!("! {why}"))]
            }
        })
    }
}

/// What was to be said and was not.
fn unsaid(order: Order) -> Option<Input> {
    match order {
        Order::Say { said, .. } => Some(Input::Unsaid(said.text)),
        Order::Interrupt | Order::Answer(..) | Order::Look => None,
    }
}
