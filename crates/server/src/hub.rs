//! Hands what drivers tell to those who follow the session it is of.

use outrigger_agent::SessionId;
use outrigger_engine::{Feed, Notice};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::limits;

/// The followers of each session.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    followed: Mutex<HashMap<SessionId, Sender<Notice>>>,
}

impl Hub {
    fn followed(&self) -> MutexGuard<'_, HashMap<SessionId, Sender<Notice>>> {
        self.followed.lock().expect("nobody panics while they hold the table")
    }

    /// What is told of a session from now on.
    pub(crate) fn follow(&self, session: &SessionId) -> Receiver<Notice> {
        let mut followed = self.followed();
        // Those whom nobody follows any more leave here.
        followed.retain(|_, sender| sender.receiver_count() > 0);
        let sender = followed.entry(session.clone());
        sender.or_insert_with(|| broadcast::channel(limits::NOTICES_MAX).0).subscribe()
    }

    /// Forwards, as long as there is somebody who tells. What is missed here is in the journal,
    /// where followers look by themselves.
    pub(crate) async fn forward(self: Arc<Self>, feed: Feed) {
        let mut notices = feed.listen();
        loop {
            match notices.recv().await {
                Ok((session, notice)) => {
                    let sender = self.followed().get(&session).cloned();
                    // Fails only if the last follower left in between.
                    sender.into_iter().for_each(|sender| drop(sender.send(notice.clone())));
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}
