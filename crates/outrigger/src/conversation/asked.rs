//! A question that was put in a conversation, and what answers it now.

use outrigger_engine::EgressQuestion;

use crate::question::Question;

/// A question that somebody looks at.
#[derive(Debug)]
pub(super) struct AskedQuestion {
    pub(super) question: Question,
    pub(super) expects: Expects,
    pub(super) since_ms: u64,
    /// Whether all of it was shown.
    pub(super) is_shown: bool,
    /// Whether it is left to the inbox.
    pub(super) left: bool,
}

/// What answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expects {
    Choice,
    Reason,
    Instead,
}

impl AskedQuestion {
    pub(super) fn back_to_choice(&mut self) {
        self.expects = Expects::Choice;
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
