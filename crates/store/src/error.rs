//! What can go wrong with a store, whose fault it is, and whether a retry helps.

use std::sync::Arc;

use outrigger_agent::{Limit, Seq, SessionId, Shortfall};

/// The cause below an error. Shared, because one failed commit answers many callers.
pub type ErrorSource = Arc<dyn std::error::Error + Send + Sync>;

/// Why a store did not do what it was asked. Unless the variant says otherwise,
/// nothing was changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Somebody else appended first: the caller's view of the session is old.
    #[error("session {session} is at event {found}, not at {expected}")]
    Conflict {
        /// The session.
        session: SessionId,
        /// Where the caller believed it to be.
        expected: Seq,
        /// Where it is.
        found: Seq,
    },
    /// Whoever drives the session now is another process: this one was taken for dead.
    #[error("session {session} is driven by another process now")]
    Superseded {
        /// The session.
        session: SessionId,
    },
    /// An account has no room for what would start.
    #[error("{}", .0.shortfall)]
    Budget(Box<BudgetRefusal>),
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What was asked for, by name.
        what: String,
    },
    /// More than a limit of [`crate::limits`] allows.
    #[error("{what} has {size}, and at most {size_max} are possible")]
    TooLarge {
        /// What is too large, with the unit.
        what: &'static str,
        /// How much it is.
        size: u64,
        /// How much it may be.
        size_max: u64,
    },
    /// The disk, the quota or the configured size of the database is used up.
    #[error("no space is left while {doing}")]
    NoSpace {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: ErrorSource,
    },
    /// Another process held the database for longer than
    /// [`crate::Settings::busy_wait_ms`].
    #[error("the database is in use by another process while {doing}")]
    Busy {
        /// What was being done.
        doing: &'static str,
        /// What the database said.
        #[source]
        source: ErrorSource,
    },
    /// Reading or writing failed.
    #[error("input or output failed while {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: ErrorSource,
    },
    /// What is stored is not what was written. It is not repaired, and not overwritten.
    #[error("{place} is damaged: {what}")]
    Damaged {
        /// Which file, session and event.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// It was written by a newer program.
    #[error("{place} has format {found}, and this program knows formats up to {known}")]
    Newer {
        /// Which file, or session and event.
        place: String,
        /// Its format.
        found: u64,
        /// The newest format that this program knows.
        known: u64,
    },
    /// It was written by a program from before there were releases.
    #[error("{place} has format {found}, and this program knows formats from {known} on")]
    Older {
        /// Which file.
        place: String,
        /// Its format.
        found: u64,
        /// The oldest format that this program knows.
        known: u64,
    },
    /// The commit failed at its last moment: the events may be stored or not.
    /// The next load says which.
    #[error("it is not known whether the events were stored")]
    Uncertain {
        /// What the database said.
        #[source]
        source: ErrorSource,
    },
    /// The store was closed, or its writer has ended.
    #[error("the store is closed")]
    Closed,
}

/// That nothing was started, because an account stands against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRefusal {
    /// The account, and what stands against it.
    pub shortfall: Shortfall,
    /// The most that the session may be charged in all, spent and reserved, by the limits of
    /// all its accounts: what stays within it would have started. Nothing where it is no
    /// matter of how much.
    pub charged_max: Option<Limit>,
}

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Responsibility {
    /// Whoever called: the request cannot be fulfilled as it is.
    Caller,
    /// Whoever runs the machine: its disk, its permissions, its versions.
    Operator,
    /// What is stored was changed from outside, or broke.
    Data,
}

/// Whether doing the same again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// After a while, unchanged.
    Later,
    /// After the session was loaded again, and what is to be appended decided again.
    AfterLoad,
    /// Only after a person changed something.
    Never,
}

impl Error {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Responsibility {
        match self {
            Self::Conflict { .. }
            | Self::Superseded { .. }
            | Self::Budget(_)
            | Self::NotFound { .. }
            | Self::TooLarge { .. } => Responsibility::Caller,
            Self::Damaged { .. } => Responsibility::Data,
            Self::NoSpace { .. }
            | Self::Busy { .. }
            | Self::Io { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Uncertain { .. }
            | Self::Closed => Responsibility::Operator,
        }
    }

    /// Whether a retry can help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Conflict { .. } | Self::Uncertain { .. } => Retry::AfterLoad,
            Self::NoSpace { .. } | Self::Busy { .. } | Self::Io { .. } => Retry::Later,
            Self::Superseded { .. }
            | Self::Budget(_)
            | Self::NotFound { .. }
            | Self::TooLarge { .. }
            | Self::Damaged { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Closed => Retry::Never,
        }
    }

    /// Of a file operation.
    pub(crate) fn io(doing: &'static str, error: std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let full = matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        let source: ErrorSource = Arc::new(error);
        if full { Self::NoSpace { doing, source } } else { Self::Io { doing, source } }
    }

    pub(crate) fn damaged(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { place: place.into(), what: what.into() }
    }

    /// Of an event that is not what it should be.
    pub(crate) fn damaged_event(session: &SessionId, seq: Seq, what: impl Into<String>) -> Self {
        Self::damaged(format!("event {seq} of session {session}"), what)
    }

    pub(crate) fn no_session(session: &SessionId) -> Self {
        Self::NotFound { what: format!("session {session}") }
    }

    /// Passes a size that is within its limit.
    pub(crate) fn within(what: &'static str, size: u64, size_max: u64) -> Result<(), Self> {
        if size <= size_max { Ok(()) } else { Err(Self::TooLarge { what, size, size_max }) }
    }
}

impl From<outrigger_audit::Error> for Error {
    fn from(error: outrigger_audit::Error) -> Self {
        match error {
            outrigger_audit::Error::Io { doing, source } => Self::io(doing, source),
            outrigger_audit::Error::Damaged { place, what } => Self::Damaged { place, what },
        }
    }
}
