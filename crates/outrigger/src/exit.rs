//! How the program ends: an error with its kind, hints, and a documented exit code.

use serde::Serialize;
use std::process::ExitCode;

/// Kinds of ending. The number is the exit code, the name is `error.code` in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The agent did not come to an answer.
    AgentFailed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// A key is missing or refused.
    Auth = 3,
    /// There is no such session or directory.
    NotFound = 4,
    /// Something changed meanwhile, or somebody else holds it.
    Conflict = 5,
    /// A limit of steps, time or budget is reached; it can be resumed.
    BudgetExhausted = 11,
    /// The rules forbid it, or a person denied it.
    Denied = 12,
    /// No sandbox can be made here.
    SandboxUnavailable = 13,
    /// The model can't be asked.
    ModelFailed = 14,
    /// The disk is full, or the journal can't be used.
    Storage = 15,
    /// Stopped by Ctrl-C.
    Interrupted = 130,
}

/// An error as a person sees it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// What went wrong, and where.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hints: Vec<String>,
}

/// What commands return.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// An error with the whole chain of its causes.
    pub(crate) fn from_error(kind: Kind, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(kind, outrigger_engine::workspace::explain(error))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

impl From<outrigger_engine::Error> for Failure {
    fn from(error: outrigger_engine::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&outrigger_engine::Error> for Failure {
    fn from(error: &outrigger_engine::Error) -> Self {
        use outrigger_engine::Error;
        match error {
            Error::Journal { source, .. } => Self::from(source),
            Error::NotFound(_) => Self::from_error(Kind::NotFound, error)
                .hint("`outrigger sessions ls` lists the sessions."),
            Error::Contended(_) | Error::Ended(_) => Self::from_error(Kind::Conflict, error),
            Error::MessageTooLarge { .. } => Self::from_error(Kind::Usage, error)
                .hint("Put long material into a file of the repository and name it in the task."),
            Error::TooManySessions(_) | Error::Driver(_) => {
                Self::from_error(Kind::AgentFailed, error)
            }
            Error::Workspace(_) => Self::from_error(Kind::SandboxUnavailable, error),
        }
    }
}

impl From<&outrigger_store::Error> for Failure {
    fn from(error: &outrigger_store::Error) -> Self {
        use outrigger_store::Error;
        let failure = Self::from_error(Kind::Storage, error);
        match error {
            Error::NoSpace { .. } => failure.hint(
                "Free some disk space; then `outrigger sessions resume` goes on where it stopped: nothing is lost.",
            ),
            Error::Newer { .. } => {
                failure.hint("Use the newer outrigger that wrote it. Nothing was changed.")
            }
            Error::Damaged { .. } => failure.hint(
                "Nothing was changed. Restore the data directory from a backup, or move it away to start with an empty one.",
            ),
            Error::NotFound { .. } => Self { kind: Kind::NotFound, ..failure },
            Error::Conflict { .. } => Self { kind: Kind::Conflict, ..failure },
            _ => failure,
        }
    }
}

impl From<outrigger_store::Error> for Failure {
    fn from(error: outrigger_store::Error) -> Self {
        Self::from(&error)
    }
}
