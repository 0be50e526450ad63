//! How the program ends: an error with its kind, hints, and a documented exit code.

use serde::Serialize;
use serde_json::{Value, json};
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
    /// A person has to answer before it goes on.
    WaitsForApproval = 10,
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
    /// The audit found something that was changed, or a proof does not hold.
    AuditFailed = 16,
    /// The server can't be reached, or does not work.
    ServerFailed = 17,
    /// Stopped by Ctrl-C.
    Interrupted = 130,
}

impl Kind {
    /// All of them, by number.
    pub(crate) const ALL: [Self; 14] = [
        Self::AgentFailed,
        Self::Usage,
        Self::Auth,
        Self::NotFound,
        Self::Conflict,
        Self::WaitsForApproval,
        Self::BudgetExhausted,
        Self::Denied,
        Self::SandboxUnavailable,
        Self::ModelFailed,
        Self::Storage,
        Self::AuditFailed,
        Self::ServerFailed,
        Self::Interrupted,
    ];

    /// What it means, in a few words; in `--help` and in docs/exit-codes.md.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::AgentFailed => "the agent came to no answer",
            Self::Usage => "the command line, the configuration or the input is wrong",
            Self::Auth => "a key is missing or refused",
            Self::NotFound => "there is no such session or directory",
            Self::Conflict => "something changed meanwhile, or another process holds it",
            Self::WaitsForApproval => "a person has to approve something",
            Self::BudgetExhausted => {
                "a limit of steps, time, tokens or money is reached, or an account is stopped"
            }
            Self::Denied => "a rule or a person forbids it, or nobody accepted it",
            Self::SandboxUnavailable => "no sandbox can be made on this machine",
            Self::ModelFailed => "the model can't be asked",
            Self::Storage => "the disk is full, or what is stored can't be used",
            Self::AuditFailed => {
                "something stored is not as it was written, or a proof does not hold"
            }
            Self::ServerFailed => "the server can't be reached, or something is wrong in it",
            Self::Interrupted => "stopped by Ctrl-C",
        }
    }

    /// Whether nothing went wrong: it stopped, and goes on when a person says so.
    pub(crate) fn is_pause(self) -> bool {
        matches!(self, Self::WaitsForApproval | Self::BudgetExhausted | Self::Interrupted)
    }

    /// What to do about it; in docs/exit-codes.md.
    #[cfg(test)]
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::AgentFailed => {
                "Read the error: it says why, and whether the session can be resumed."
            }
            Self::Usage => "Correct what the error names. Nothing was done.",
            Self::Auth => {
                "Set the environment variable that the error names, then `outrigger sessions resume` if a session was begun."
            }
            Self::NotFound => "Check the name; `outrigger sessions ls` lists the sessions.",
            Self::Conflict => {
                "Look at what changed. After `--apply`, nothing was written back and the changes are kept in the patch."
            }
            Self::WaitsForApproval => {
                "`outrigger inbox` shows what waits; `outrigger approve` or `outrigger deny` answers and goes on."
            }
            Self::BudgetExhausted => {
                "`outrigger sessions resume` with a higher `--max-steps`, `--max-tokens` or `--max-dollars` goes on; `outrigger budget` shows, raises and allows what is above the session."
            }
            Self::Denied => {
                "Nothing was done; the error names what was refused. After `--apply`, the changes are kept in the patch."
            }
            Self::SandboxUnavailable => {
                "`outrigger doctor` says what is missing and what fixes it; then `outrigger sessions resume` if a session was begun."
            }
            Self::ModelFailed => {
                "Read what the provider said; `outrigger sessions resume` asks again."
            }
            Self::Storage => {
                "Free some disk space, or follow the hint; then `outrigger sessions resume`. What was acknowledged is not lost."
            }
            Self::AuditFailed => {
                "Keep the data directory as it is; [audit](how-to/audit.md) says what each finding means."
            }
            Self::ServerFailed => {
                "Look whether it runs, and at the address that `outrigger context ls` shows; what it acknowledged is not lost. `outrigger attach` shows a session again."
            }
            Self::Interrupted => "`outrigger sessions resume` goes on where it stopped.",
        }
    }

    /// The list at the end of `--help`.
    pub(crate) fn help() -> String {
        let mut text = String::from("Exit codes:\n    0  done\n");
        for kind in Self::ALL {
            text.push_str(&format!("  {:>3}  {}\n", kind as u8, kind.meaning()));
        }
        text.push_str("\ndocs/exit-codes.md says what to do about each.");
        text
    }
}

/// An error as a person sees it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// What went wrong, and where.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hints: Vec<String>,
    /// Whether a program was told of it already, in the object of its result.
    pub(crate) is_told: bool,
}

/// What commands return.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), is_told: false }
    }

    /// An error with the whole chain of its causes.
    pub(crate) fn from_error(kind: Kind, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(kind, outrigger_engine::workspace::explain(error))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// It stands in an object that a program was given.
    pub(crate) fn told(mut self) -> Self {
        self.is_told = true;
        self
    }

    /// For programs.
    pub(crate) fn object(&self) -> Value {
        let (code, exit) = (self.kind, self.kind as u8);
        json!({ "code": code, "exit_code": exit, "message": self.message, "hints": self.hints })
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
            Error::Journal { source, .. } | Error::Blob(source) => Self::from(source),
            Error::Picture(_) => Self::from_error(Kind::Usage, error),
            Error::NotFound(_) => Self::from_error(Kind::NotFound, error)
                .hint("`outrigger sessions ls` lists the sessions."),
            Error::Contended(_) | Error::Busy(_) | Error::Ended(_) => Self::from_error(Kind::Conflict, error),
            Error::MessageTooLarge { .. } => Self::from_error(Kind::Usage, error)
                .hint("Put long material into a file of the repository and name it in the task."),
            Error::SeesNoPictures(_) => Self::from_error(Kind::Usage, error)
                .hint("Name a model that does: --model, or /model in a conversation.")
                .hint("Or leave the pictures out."),
            Error::TooManyPictures { .. } => Self::from_error(Kind::Usage, error)
                .hint("Show the others with another message."),
            Error::PicturesTooLarge { .. } => Self::from_error(Kind::Usage, error)
                .hint("Show fewer or smaller ones. After `/compact` in a conversation the next answer makes room."),
            Error::TooManySessions(_) | Error::Driver(_) => {
                Self::from_error(Kind::AgentFailed, error)
            }
            Error::Unanswerable { .. } => Self::from_error(Kind::Conflict, error)
                .hint("`outrigger inbox` lists what waits for an answer."),
            Error::SubagentsRun(_) => Self::from_error(Kind::Conflict, error)
                .hint("Resume it without --model until they are done."),
            Error::Subagent { parent, .. } => Self::from_error(Kind::Conflict, error)
                .hint(format!("`outrigger sessions resume {parent}` goes on with all of it.")),
            Error::NoCheckpoint { .. } => Self::from_error(Kind::Conflict, error)
                .hint("`outrigger sessions checkpoints` lists where it can be forked or taken back to."),
            Error::NotEntitled { .. } => Self::from_error(Kind::Denied, error),
            Error::Forbidden(_) => Self::from_error(Kind::Denied, error)
                .hint("Nothing was answered. `outrigger deny` says no; rules that were changed back let it be approved."),
            Error::Rules(_) => Self::from_error(Kind::Usage, error)
                .hint("Nothing was judged without them: put the file right, then `outrigger sessions resume`."),
            Error::NoSuchSandbox(_) => Self::from_error(Kind::Usage, error),
            Error::Workspace(_) | Error::Sandbox(_) => {
                Self::from_error(Kind::SandboxUnavailable, error)
            }
        }
    }
}

impl From<&outrigger_store::Error> for Failure {
    fn from(error: &outrigger_store::Error) -> Self {
        use outrigger_store::Error;
        // A server's journal is read by requests.
        if let Error::Io { source, .. } = error
            && let Some(outrigger_client::Error::Problem(problem)) = source.downcast_ref()
        {
            return Self::from(outrigger_client::Error::Problem(problem.clone()));
        }
        let failure = Self::from_error(Kind::Storage, error);
        match error {
            Error::NoSpace { .. } => failure.hint(
                "Free some disk space; then `outrigger sessions resume` goes on where it stopped: nothing is lost.",
            ),
            Error::Newer { .. } => {
                failure.hint("Use the newer outrigger that wrote it. Nothing was changed.")
            }
            Error::Older { .. } => failure.hint(
                "Nothing was changed. Use the outrigger that wrote it, or move the data directory away to start with an empty one.",
            ),
            Error::Damaged { .. } => failure.hint(
                "Nothing was changed. Restore the data directory from a backup, or move it away to start with an empty one.",
            ),
            Error::NotFound { .. } => Self { kind: Kind::NotFound, ..failure },
            Error::Conflict { .. } | Error::Superseded { .. } => {
                Self { kind: Kind::Conflict, ..failure }
            }
            _ => failure,
        }
    }
}

impl From<outrigger_client::Error> for Failure {
    fn from(error: outrigger_client::Error) -> Self {
        use outrigger_api::ProblemCode;
        use outrigger_client::Error;
        match &error {
            Error::Address(_) | Error::Read(_) => Self::from_error(Kind::Usage, &error),
            Error::Key => Self::from_error(Kind::Auth, &error),
            // The server's advice is for whoever comes by a browser or a program of theirs.
            Error::Problem(problem) if problem.code == ProblemCode::Unauthenticated => {
                Self::new(Kind::Auth, problem.detail.clone()).hint(
                    "`outrigger login URL` lets you in; where OUTRIGGER_KEY is set, it has to be a key of that server.",
                )
            }
            Error::Problem(problem) => {
                let kind = match problem.code {
                    ProblemCode::InvalidRequest
                    | ProblemCode::MethodNotAllowed
                    | ProblemCode::IsDirectory
                    | ProblemCode::NotADirectory
                    | ProblemCode::InvalidPath
                    | ProblemCode::TooLarge => Kind::Usage,
                    ProblemCode::Unauthenticated | ProblemCode::WrongOrigin => Kind::Auth,
                    ProblemCode::NotFound | ProblemCode::FileNotFound => Kind::NotFound,
                    ProblemCode::Conflict
                    | ProblemCode::AlreadyExists
                    | ProblemCode::NoSpace
                    | ProblemCode::PreconditionFailed
                    | ProblemCode::PreconditionRequired => Kind::Conflict,
                    ProblemCode::Denied | ProblemCode::PermissionDenied => Kind::Denied,
                    ProblemCode::BudgetExhausted => Kind::BudgetExhausted,
                    ProblemCode::SandboxUnavailable => Kind::SandboxUnavailable,
                    ProblemCode::ProviderError => Kind::ModelFailed,
                    ProblemCode::RateLimited | ProblemCode::Internal => Kind::ServerFailed,
                };
                let failure = Self::new(kind, problem.detail.clone());
                problem.hints.iter().cloned().fold(failure, Self::hint)
            }
            Error::Machine(_)
            | Error::Unreached { .. }
            | Error::Broken { .. }
            | Error::Strange { .. } => Self::from_error(Kind::ServerFailed, &error),
        }
    }
}

impl From<outrigger_store::Error> for Failure {
    fn from(error: outrigger_store::Error) -> Self {
        Self::from(&error)
    }
}
