//! A server's session that is talked with.
//!
//! Owns that nothing that is said is lost or said twice where the connection breaks or the server
//! begins anew: what is said waits in a queue, is sent under a key by which the server knows it
//! again, and leaves the queue when it was answered. All of it is done by a task of its own, so
//! that whoever sits there is heard meanwhile.

mod follower;
mod order;

use async_trait::async_trait;
use outrigger_agent::{Message, Seq, State};
use outrigger_api::SendMessage;
use std::rc::Rc;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::session_work::RemoteWork;
use crate::command::converse::source::{SessionWork, Talk};
use crate::conversation::Input;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::question::{Decision, Question};
use follower::Follower;
use order::Order;

/// A server's session that is talked with.
pub(super) struct RemoteTalk {
    work: Rc<RemoteWork>,
    orders: Sender<Order>,
    news: Receiver<Outcome<Vec<Input>>>,
    came: Option<Outcome<Vec<Input>>>,
    /// Whether it was not heard yet that it waits.
    driven: bool,
    /// Ends with this.
    _follows: JoinSet<()>,
}

impl RemoteTalk {
    /// A session that stands like this.
    pub(super) fn new(work: Rc<RemoteWork>, state: State) -> Self {
        let driven = state.in_turn();
        Self::with(work, state, driven)
    }

    /// One that goes on in any case: it has just begun.
    pub(super) fn driven(work: Rc<RemoteWork>, state: State) -> Self {
        Self::with(work, state, true)
    }

    fn with(work: Rc<RemoteWork>, state: State, driven: bool) -> Self {
        let (orders, ordered) = channel(limits::TALK_ORDERS_MAX);
        let (tells, news) = channel(limits::TALK_NEWS_MAX);
        let mut follows = JoinSet::new();
        let followed = Rc::clone(&work);
        follows.spawn_local(async move {
            let RemoteWork { remote, session, .. } = &*followed;
            Follower::new(remote, session, state, driven, tells).follow(ordered).await;
        });
        Self { work, orders, news, came: None, driven, _follows: follows }
    }

    fn order(&mut self, order: Order) -> Outcome {
        self.orders.try_send(order).map_err(|_| {
            let text = format!("session {} is not followed any more", self.work.session);
            let again = "leave, and go on with it with `outrigger --continue`";
            Failure::new(Kind::ServerFailed, text).hint(again)
        })
    }
}

#[async_trait(?Send)]
impl Talk for RemoteTalk {
    fn work(&self) -> Rc<dyn SessionWork> {
        Rc::clone(&self.work) as Rc<dyn SessionWork>
    }

    fn is_driven(&self) -> bool {
        self.driven
    }

    async fn wait(&mut self) {
        if self.came.is_none() {
            self.came = match self.news.recv().await {
                Some(came) => Some(came),
                // Why it is not followed any more was told.
                None => std::future::pending().await,
            };
        }
    }

    async fn take(&mut self) -> Outcome<Vec<Input>> {
        let came = self.came.take().unwrap_or_else(|| Ok(Vec::new()));
        // The conversation takes it for one that waits until it hears otherwise.
        self.driven &= came.is_ok();
        let inputs = came?;
        for input in &inputs {
            match input {
                Input::Working => self.driven = true,
                Input::Idle | Input::Waiting => self.driven = false,
                _ => {}
            }
        }
        Ok(inputs)
    }

    async fn say(&mut self, message: Message) -> Outcome {
        let key = uuid::Uuid::new_v4().to_string();
        let pictures = self.work.remote.pictures.take(&message);
        let said = SendMessage { pictures, ..SendMessage::new(message.text) };
        self.order(Order::Say { said, key })?;
        self.driven = true;
        Ok(())
    }

    async fn interrupt(&mut self) -> Outcome {
        self.order(Order::Interrupt)
    }

    async fn answer(
        &mut self,
        question: &Question,
        decision: &Decision,
        _standing: Option<Seq>,
    ) -> Outcome {
        self.order(Order::Answer(Box::new(question.clone()), decision.clone()))?;
        self.driven = true;
        Ok(())
    }

    async fn look(&mut self) -> Outcome<Vec<Input>> {
        self.order(Order::Look)?;
        Ok(Vec::new())
    }
}
