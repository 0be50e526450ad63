//! What a process tells its listeners while sessions run: appended events, and
//! live output that is never journalled.

use outrigger_agent::{Record, Seq, SessionId};
use std::sync::Arc;
use tokio::sync::broadcast;

use crate::{Warning, limits};

/// Something that a listener may want to show.
#[derive(Debug, Clone)]
pub enum Notice {
    /// An event is durable.
    Appended(Arc<Record>),
    /// Output of an effect that is under way. It is lost in a crash; the settled
    /// event takes the place of all of it.
    Live(Seq, LiveOutput),
    /// Another process appended, and the last event has this place.
    Elsewhere(Seq),
    /// Something went wrong beside the work. The turn goes on.
    Warning(Warning),
}

/// Output of an effect that is under way.
#[derive(Debug, Clone)]
pub enum LiveOutput {
    /// Another attempt at the model begins; what came of the one before is void.
    Attempt(u32),
    /// The model will be asked again.
    Retrying {
        /// After how long.
        wait_ms: u64,
        /// Why.
        reason: String,
    },
    /// Text of the model.
    Text(String),
    /// Reasoning of the model.
    Thinking(String),
    /// The model writes a call of this tool.
    Calling(String),
    /// Output of a command.
    Output(Vec<u8>),
}

/// Carries notices to any number of listeners. Slow ones miss some and are told so.
#[derive(Debug, Clone)]
pub struct Feed(broadcast::Sender<(SessionId, Notice)>);

impl Default for Feed {
    fn default() -> Self {
        Self(broadcast::Sender::new(limits::FEED_NOTICES_MAX))
    }
}

impl Feed {
    /// A listener that gets every notice from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<(SessionId, Notice)> {
        self.0.subscribe()
    }

    /// Tells the listeners where a session stands to which another process appended.
    pub fn tell_elsewhere(&self, session: &SessionId, head: Seq) {
        self.tell(session, || Notice::Elsewhere(head));
    }

    /// Whether anybody listens: if not, there is no need to keep what would be told.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Tells the listeners, if there are any.
    pub(crate) fn tell(&self, session: &SessionId, notice: impl FnOnce() -> Notice) {
        if self.is_heard() {
            // Fails only if the last listener left in between, which is fine.
            drop(self.0.send((session.clone(), notice())));
        }
    }
}
