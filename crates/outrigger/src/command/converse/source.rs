//! Where the sessions of a conversation are, how one of them is talked with, and what else is
//! done with it. On this machine that is done by an engine of this process (`own`), at a server
//! over its API (`command::remote`).
//!
//! Owns what a conversation needs of a session, so that there is one conversation for both. What
//! one of the two can't do, it says in an error.

use async_trait::async_trait;
use outrigger_agent::{Message, Record, Seq, SessionId, State};
use outrigger_engine::EgressQuestion;
use outrigger_repository::Change;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::rc::Rc;

use crate::command::finish::WrittenChanges;
use crate::conversation::Input;
use crate::exit::Outcome;
use crate::network::{HostChoice, Words};
use crate::question::{Decision, Question};
use crate::show::row::Row;

/// Where the sessions of a conversation are.
#[async_trait(?Send)]
pub(crate) trait SessionSource {
    /// What the next session talks with: the model, and where it is asked.
    fn name(&self) -> String;

    /// Chooses the model of the next session.
    fn choose(&self, model: &str) -> Outcome;

    /// Lets the next session reach more, or nothing.
    fn widen(&self, words: &Words);

    /// What the next session may reach.
    fn network(&self) -> String;

    /// What a person says, with the pictures that they name, and what they are told of these.
    async fn message(&self, text: &str) -> Outcome<(Message, Vec<Row>)>;

    /// Begins a session of the directory with what is said.
    async fn begin(&self, message: Message) -> Outcome<OpenedTalk>;

    /// Takes up a session, shows where it stands, and lets it go on if it was cut off.
    async fn go_on(&self, session: &str) -> Outcome<OpenedTalk>;

    /// Sessions, newest first.
    async fn list(&self, which: Listing) -> Outcome<Vec<ListedSession>>;
}

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// So many of the newest.
    Newest(usize),
    /// The last one of the directory that can go on.
    LastHere,
}

/// A session in a list.
#[derive(Debug)]
pub(crate) struct ListedSession {
    pub(crate) session: SessionId,
    pub(crate) last_at_ms: u64,
    /// How it stands, in a word or two.
    pub(crate) standing: String,
    pub(crate) title: String,
    /// Whether it is in the hands of another process, and can't be taken up.
    pub(crate) is_held: bool,
}

/// A session that a conversation goes on with.
pub(crate) struct OpenedTalk {
    pub(crate) talk: Box<dyn Talk>,
    /// What happened in it before.
    pub(crate) before: Vec<Record>,
    /// What is told of it.
    pub(crate) rows: Vec<Row>,
}

/// A session that is talked with. Nothing here takes longer than what is on this machine: where
/// it is elsewhere, what is said is on its way when this returns, and what became of it comes
/// like everything else.
#[async_trait(?Send)]
pub(crate) trait Talk {
    /// What else is done with it.
    fn work(&self) -> Rc<dyn SessionWork>;

    /// Whether it was not heard yet that it waits.
    fn is_driven(&self) -> bool;

    /// Ends when something came. Dropping it loses nothing.
    async fn wait(&mut self);

    /// What came, as it is to the conversation.
    async fn take(&mut self) -> Outcome<Vec<Input>>;

    /// Begins a turn, or is heard in the running one.
    async fn say(&mut self, message: Message) -> Outcome;

    /// Stops the turn.
    async fn interrupt(&mut self) -> Outcome;

    /// Answers a question. `standing`: the effect about which the same was answered before.
    async fn answer(
        &mut self,
        question: &Question,
        decision: &Decision,
        standing: Option<Seq>,
    ) -> Outcome;

    /// Looks again what waits for an answer; what is there to be told at once.
    async fn look(&mut self) -> Outcome<Vec<Input>>;
}

/// What is done with a session beside talking with it: what it changed.
#[async_trait(?Send)]
pub(crate) trait SessionWork: SessionControl {
    fn session(&self) -> &SessionId;

    /// How it stands.
    async fn state(&self) -> Outcome<State>;

    /// The directory of this machine into which its changes go back.
    async fn source(&self) -> Outcome<PathBuf>;

    /// What it changed, while it waits.
    async fn changes(&self) -> Outcome<Vec<Change>>;

    /// What of that was written back.
    fn written(&self) -> Outcome<WrittenChanges>;

    /// What it changed, to be looked at, also while it works.
    async fn diff(&self) -> Outcome<WorkspaceDiff>;

    /// It waits: what it changed is kept, and it rests. How many files that are, and what is
    /// told.
    async fn rest(&self) -> Outcome<(usize, Vec<Row>)>;

    /// Makes a branch of what was committed in it; what is told.
    async fn branch(&self) -> Outcome<Vec<Row>>;
}

/// What a session changed, as text.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceDiff {
    /// A unified diff; nothing where nothing changed.
    pub(crate) patch: String,
    /// What a person has to know before it is written back.
    pub(crate) warnings: Vec<String>,
}

/// What is done with a session beside talking with it: how it goes on.
#[async_trait(?Send)]
pub(crate) trait SessionControl {
    /// Has the conversation summarised before the model is asked again.
    async fn compact(&self) -> Outcome;

    /// Makes a copy of it where it stands.
    async fn fork(&self) -> Outcome<SessionId>;

    /// Takes it back to where it stood before.
    async fn rewind(&self, to: Option<NonZeroU64>) -> Outcome<OpenedTalk>;

    /// Has it ask the model that was chosen.
    async fn ask_model(&self, name: &str) -> Outcome<OpenedTalk>;

    /// Lets it reach more, or nothing, if that is said; what it may reach then.
    async fn reach(&self, more: Option<&Words>) -> Outcome<String>;

    /// Hosts that its sandbox asks for.
    async fn hosts(&self) -> Vec<EgressQuestion>;

    /// Acts on what a person said to one; a line about it.
    async fn answer_host(&self, question: &EgressQuestion, choice: HostChoice) -> Outcome<String>;
}
