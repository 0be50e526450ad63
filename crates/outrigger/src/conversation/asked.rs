//! A question that was put in a conversation, and what answers it now.

use outrigger_engine::EgressQuestion;

use crate::question::Question;

/// A question that somebody looks at.
#[derive(Debug)]
pub(super) struct AskedQuestion {
    pub(super) question: Question,
    pub(super) expects: Expects,
    pub(super) since_ms: u64,
    /// Whether it is left to the inbox.
    pub(super) left: bool,
}

/// What answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expects {
    Key,
    Reason,
    Instead,
}

impl AskedQuestion {
    pub(super) fn back_to_choice(&mut self) {
        self.expects = Expects::Key;
    }
}

/// A host that the sandbox asks for.
#[derive(Debug)]
pub(super) struct AskedHost {
    pub(super) question: EgressQuestion,
    /// What is asked, in a line.
    pub(super) title: String,
    pub(super) since_ms: u64,
}
