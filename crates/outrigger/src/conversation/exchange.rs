//! What comes into a conversation, what is to be done about it, and how it stands.

use outrigger_agent::{Record, Seq, SessionId};
use outrigger_engine::{EgressQuestion, LiveOutput};
use std::sync::Arc;

use super::key::Key;
use super::slash::Slash;
use crate::limits;
use crate::network::HostChoice;
use crate::question::{Decision, Question};
use crate::show::row::Row;
use crate::show::{Room, Tone};

/// What comes in.
#[derive(Debug)]
pub(crate) enum Input {
    Key(Key),
    Paste(String),
    Resize(Size),
    /// Time went by.
    Tick,
    /// An event of the session became durable.
    Event(Arc<Record>),
    EventBelow(SessionId, Arc<Record>),
    /// Something is under way, of an effect of the session or of a subagent's.
    Live(Option<Seq>, LiveOutput),
    /// Something is said beside the session.
    Note(Tone, String),
    /// Something is done that no event tells of.
    Busy(String),
    /// That is over, and the session is driven on.
    Working,
    /// Nothing is under way any more.
    Idle,
    /// Nothing is under way, and a person has to answer before it goes on.
    Waiting,
    /// What waits for an answer, all of it.
    Asked(Vec<Question>),
    /// The hosts that the sandbox asks for now, all of them.
    Hosts(Vec<EgressQuestion>),
    /// The files of the directory.
    Files(Vec<String>),
    /// What the last row says.
    Footer(String),
    /// What was said here was heard by nobody: it can be written anew.
    Unsaid(String),
    /// Why nothing is heard of the session now.
    Away(String),
    /// It is heard again, and what is under way from its beginning.
    Back,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Action {
    /// These rows stay.
    Print(Vec<Row>),
    /// Begins a turn, or is heard in the running one.
    Say(String),
    Interrupt,
    /// With the effect about which the same was answered, if the answer stands.
    Answer(Box<Question>, Decision, Option<Seq>),
    AnswerHost(EgressQuestion, HostChoice),
    Command(Slash),
    /// Look again what waits for an answer.
    Look,
    ListFiles,
    Redraw,
    Leave,
}

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    pub(super) fn room(self) -> Room {
        let columns = self.columns.saturating_sub(1).max(limits::COLUMNS_MIN);
        Room { columns, open_rows_max: self.rows / 2 }
    }
}

/// What is under way.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Something that no event tells of.
    Busy {
        what: String,
        since_ms: u64,
    },
    Working {
        since_ms: u64,
    },
}

/// Rows that stay.
pub(super) fn print(rows: Vec<Row>) -> Vec<Action> {
    vec![Action::Print(rows)]
}

/// Lines that are no event.
pub(super) fn note(tone: Tone, text: &str) -> Vec<Action> {
    print(text.lines().map(|line| Row::note(tone, line)).collect())
}
