//! What an audit found.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_agent::{Seq, SessionId};
use serde::Serialize;

/// Where something is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Location {
    /// An event of a session: the first one that is wrong.
    Event {
        /// The session.
        session: SessionId,
        /// Its place.
        seq: Seq,
    },
    /// An entry of the log.
    Entry {
        /// Its number, from 0.
        entry: u64,
        /// The session that it is of, if that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// The place in that session.
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<Seq>,
    },
    /// A checkpoint of the log in the database.
    Checkpoint {
        /// How many entries it stands for.
        size: u64,
    },
    /// A checkpoint that somebody kept.
    Kept {
        /// Which one.
        name: String,
        /// How many entries it stands for.
        size: u64,
    },
    /// A file, or a table as a whole.
    File {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { session, seq } => write!(f, "event {seq} of session {session}"),
            Self::Entry { entry, session: Some(session), seq: Some(seq) } => {
                write!(f, "entry {entry} of the log (session {session}, event {seq})")
            }
            Self::Entry { entry, .. } => write!(f, "entry {entry} of the log"),
            Self::Checkpoint { size } => write!(f, "the checkpoint of {size} entries"),
            Self::Kept { name, size } => write!(f, "{name} (a checkpoint of {size} entries)"),
            Self::File { name } => f.write_str(name),
        }
    }
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// Where.
    pub place: Location,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl Finding {
    /// Of an event of a session.
    pub fn event(session: &SessionId, seq: Seq, what: impl Into<String>) -> Self {
        Self { place: Location::Event { session: session.clone(), seq }, what: what.into() }
    }

    /// Whether it is of a checkpoint or a file of that name.
    #[must_use]
    pub fn is_of(&self, called: &str) -> bool {
        match &self.place {
            Location::Kept { name, .. } | Location::File { name } => name == called,
            Location::Event { .. } | Location::Entry { .. } | Location::Checkpoint { .. } => false,
        }
    }

    /// Of a file, or of a table as a whole.
    pub fn file(name: &str, what: impl Into<String>) -> Self {
        Self { place: Location::File { name: name.to_owned() }, what: what.into() }
    }
}

/// What was checked, and what is wrong.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Sessions whose events were read.
    pub sessions: u64,
    /// Sessions that are gone, and of which the log says that they were removed on purpose.
    pub removed: u64,
    /// Events that were read.
    pub events: u64,
    /// Events after the last entry of their session: no checkpoint covers them yet.
    pub uncovered: u64,
    /// Entries of the log.
    pub entries: u64,
    /// The newest checkpoint whose signature and root fit, as a signed note.
    pub checkpoint: Option<String>,
    /// What is wrong: of each session the first, at most
    /// [`crate::limits::FAULTS_MAX`].
    pub faults: Vec<Finding>,
    /// How many more there are.
    pub faults_left_out: u64,
}

impl Report {
    /// Whether everything is as it was written.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

/// How far an audit is, for whoever waits.
#[derive(Debug, Default)]
pub struct VerificationProgress {
    sessions: AtomicU64,
    sessions_done: AtomicU64,
    events_done: AtomicU64,
}

impl VerificationProgress {
    /// Sessions that are to be read, and of which the reading is over; events that were read.
    #[must_use]
    pub fn now(&self) -> (u64, u64, u64) {
        let of = |value: &AtomicU64| value.load(Ordering::Relaxed);
        (of(&self.sessions), of(&self.sessions_done), of(&self.events_done))
    }

    /// Counts from nothing again.
    pub fn restart(&self) {
        for value in [&self.sessions, &self.sessions_done, &self.events_done] {
            value.store(0, Ordering::Relaxed);
        }
    }

    /// So many sessions are to be read.
    pub fn expect_sessions(&self, count: u64) {
        self.sessions.store(count, Ordering::Relaxed);
    }

    /// The reading of a session is over.
    pub fn finish_session(&self) {
        self.sessions_done.fetch_add(1, Ordering::Relaxed);
    }

    /// An event was read.
    pub fn finish_event(&self) {
        self.events_done.fetch_add(1, Ordering::Relaxed);
    }
}
