//! Hands what drivers tell to those who follow the session it is of, and keeps what effects that
//! are under way put out last, for those who begin to follow meanwhile.

use outrigger_agent::{Event, Seq, SessionId};
use outrigger_engine::{Feed, LiveOutput, Notice};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use crate::limits;

/// What is known of a session that somebody follows, or in which something is under way.
#[derive(Debug, Default)]
struct Channel {
    followers: Option<Sender<Notice>>,
    tails: BTreeMap<Seq, Tail>,
}

impl Channel {
    fn is_idle(&self) -> bool {
        let followed = self.followers.as_ref().is_some_and(|it| it.receiver_count() > 0);
        self.tails.is_empty() && !followed
    }
}

/// The last of what an effect put out.
#[derive(Debug, Default)]
struct Tail {
    pieces: VecDeque<LiveOutput>,
    bytes: usize,
}

/// The followers of each session.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    channels: Mutex<HashMap<SessionId, Channel>>,
}

impl Hub {
    fn channels(&self) -> MutexGuard<'_, HashMap<SessionId, Channel>> {
        self.channels.lock().expect("nobody panics while they hold the table")
    }

    /// What is told of a session from now on, and what effects put out that are under way.
    pub(crate) fn follow(
        &self,
        session: &SessionId,
    ) -> (Receiver<Notice>, VecDeque<(Seq, LiveOutput)>) {
        let mut channels = self.channels();
        channels.retain(|_, channel| !channel.is_idle());
        let channel = channels.entry(session.clone()).or_default();
        let tails = channel.tails.iter();
        let early =
            tails.flat_map(|(effect, tail)| tail.pieces.iter().map(|it| (*effect, it.clone())));
        let early = early.collect();
        let followers = channel.followers.get_or_insert_with(|| Sender::new(limits::NOTICES_MAX));
        (followers.subscribe(), early)
    }

    /// Forwards, as long as there is somebody who tells. What is missed here is in the journal,
    /// where followers look by themselves.
    pub(crate) async fn forward(self: Arc<Self>, feed: Feed) {
        let mut notices = feed.listen();
        loop {
            match notices.recv().await {
                Ok((session, notice)) => self.pass_on(&session, notice),
                // Of what was missed nobody knows which effect it is of.
                Err(RecvError::Lagged(_)) => {
                    self.channels().values_mut().for_each(|channel| channel.tails.clear());
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn pass_on(&self, session: &SessionId, notice: Notice) {
        let mut channels = self.channels();
        if let Notice::Live(effect, live) = &notice {
            let channel = channels.entry(session.clone()).or_default();
            channel.tails.entry(*effect).or_default().add(live);
        }
        let Some(channel) = channels.get_mut(session) else { return };
        if let Notice::Appended(record) = &notice
            && let Event::Settled { effect, .. } = &record.event
        {
            channel.tails.remove(effect);
        }
        // Fails where nobody follows any more.
        channel.followers.iter().for_each(|followers| drop(followers.send(notice.clone())));
        if channel.is_idle() {
            channels.remove(session);
        }
    }
}

impl Tail {
    fn add(&mut self, live: &LiveOutput) {
        if let LiveOutput::Attempt(_) = live {
            // What came of the one before is void.
            *self = Self::default();
        }
        self.bytes += bytes(live);
        self.pieces.push_back(live.clone());
        while self.bytes > limits::TAIL_BYTES_MAX || self.pieces.len() > limits::TAIL_PIECES_MAX {
            let Some(first) = self.pieces.pop_front() else { return };
            self.bytes -= bytes(&first);
        }
    }
}

fn bytes(live: &LiveOutput) -> usize {
    match live {
        LiveOutput::Text(text) | LiveOutput::Thinking(text) | LiveOutput::Calling(text) => {
            text.len()
        }
        LiveOutput::Output(bytes) => bytes.len(),
        LiveOutput::Attempt(_) | LiveOutput::Retrying { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_agent::{Amounts, Outcome, Record};

    #[test]
    fn who_comes_late_has_what_is_under_way_and_nothing_of_what_is_over() {
        let (hub, session) = (Hub::default(), SessionId::new("s").unwrap());
        let live =
            |effect, text: &str| Notice::Live(Seq(effect), LiveOutput::Text(text.to_owned()));
        let settled = |effect| {
            let (outcome, spent) = (Outcome::Cancelled, Amounts::default());
            let event = Event::Settled { effect: Seq(effect), outcome, spent, estimated: false };
            Notice::Appended(Arc::new(Record { seq: Seq(9), at_ms: 0, event }))
        };
        hub.pass_on(&session, live(1, "one"));
        hub.pass_on(&session, live(2, "two"));
        hub.pass_on(&session, Notice::Live(Seq(2), LiveOutput::Attempt(2)));
        hub.pass_on(&session, live(2, "again"));
        let early = |hub: &Hub| -> Vec<String> {
            let (_, early) = hub.follow(&session);
            early.into_iter().map(|(effect, live)| format!("{effect} {live:?}")).collect()
        };
        assert_eq!(early(&hub), ["1 Text(\"one\")", "2 Attempt(2)", "2 Text(\"again\")"]);
        hub.pass_on(&session, settled(2));
        assert_eq!(early(&hub), ["1 Text(\"one\")"]);
        hub.pass_on(&session, live(1, &"x".repeat(limits::TAIL_BYTES_MAX)));
        assert_eq!(early(&hub).len(), 1);
        hub.pass_on(&session, settled(1));
        assert!(hub.channels().is_empty());
    }
}
