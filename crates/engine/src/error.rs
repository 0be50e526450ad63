//! What can stop a driver. Everything else is an event.

use outrigger_agent::{Seq, SessionId, Unanswerable};

/// What can stop a driver. Nothing is lost by any of them: the session can be
/// driven again from its journal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal could not be read or written.
    #[error("the journal of session {session} failed")]
    Journal {
        /// Whose journal.
        session: SessionId,
        /// How it failed, and whether a retry helps.
        #[source]
        source: outrigger_store::Error,
    },
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// Somebody else appends to the session all the time.
    #[error("session {0} is in use by another process")]
    Contended(SessionId),
    /// The session was ended; nothing further can be said in it.
    #[error("session {0} was ended")]
    Ended(SessionId),
    /// A session that takes nothing more while a turn runs.
    #[error("a turn of session {0} runs, and it takes nothing more meanwhile")]
    Busy(SessionId),
    /// What only the session above may do.
    #[error("session {session} is a subagent of {parent}, which says how far it goes")]
    Subagent {
        /// The session.
        session: SessionId,
        /// The one above.
        parent: SessionId,
    },
    /// Another model than the subagents under way were begun with.
    #[error("session {0} has subagents under way, which ask the model that it has now")]
    SubagentsRun(SessionId),
    /// An answer that changes nothing.
    #[error("{source}: {}", session.effect(*effect))]
    Unanswerable {
        /// The session.
        session: SessionId,
        /// The effect.
        effect: Seq,
        /// Why.
        source: Unanswerable,
    },
    /// The rules ask somebody else.
    #[error("{by} may not approve this; the rules ask {approvers}")]
    NotEntitled {
        /// Who answered.
        by: String,
        /// Whom they ask.
        approvers: String,
    },
    /// The rules in force forbid what was approved.
    #[error("it can't be approved: {0}")]
    Forbidden(String),
    /// Nothing is judged without rules.
    #[error("the rules in force can't be read")]
    Rules(#[source] crate::RuleSourceError),
    /// A session has no checkpoint there.
    #[error("session {session} has no checkpoint {place}: {why}")]
    NoCheckpoint {
        /// The session.
        session: SessionId,
        /// Where.
        place: String,
        /// Why not.
        why: String,
    },
    /// A message is too large for a conversation.
    #[error("the message has {bytes} bytes; at most {max} are accepted")]
    MessageTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A picture can't be shown to a model.
    #[error(transparent)]
    Picture(#[from] crate::PictureFault),
    /// What is stored beside the journal could not be read or written.
    #[error(transparent)]
    Blob(outrigger_store::Error),
    /// The model of a session is known to see no pictures.
    #[error("{0} does not see pictures")]
    SeesNoPictures(String),
    /// A message has too many pictures.
    #[error("the message has {count} pictures; a message may have {max}")]
    TooManyPictures {
        /// How many it has.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// A conversation would have more pictures than a request has room for.
    #[error(
        "the conversation would have {count} pictures of {bytes} bytes; it may have {} of {} bytes together",
        outrigger_agent::limits::PICTURES_MAX,
        outrigger_agent::limits::PICTURES_BYTES_MAX
    )]
    PicturesTooLarge {
        /// With those that are in it.
        count: usize,
        /// All of them.
        bytes: u64,
    },
    /// Too many sessions run in this process.
    #[error("{0} sessions run already")]
    TooManySessions(usize),
    /// The workspace could not be copied in or out.
    #[error("the workspace could not be copied")]
    Workspace(#[source] crate::workspace::Error),
    /// No sandbox of that name is configured here.
    #[error(
        "no sandbox `{0}` is configured here, and the session was opened with one: add it to the configuration again, or begin a new session"
    )]
    NoSuchSandbox(String),
    /// A backend could not do what a session needs.
    #[error("the sandbox could not be reached")]
    Sandbox(#[source] outrigger_sandbox::Error),
    /// Our own bug: a driver ended without an answer.
    #[error("session {0} stopped unexpectedly")]
    Driver(SessionId),
}

impl Error {
    pub(crate) fn journal(session: &SessionId, source: outrigger_store::Error) -> Self {
        Self::Journal { session: session.clone(), source }
    }
}
