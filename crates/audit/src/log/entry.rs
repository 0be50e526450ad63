//! An entry of the log: where the chain of a session stood.
//!
//! Must never change: every stored log rests on it. Another form is another tag.

use outrigger_agent::{Digest, Seq, SessionId};
use serde::{Deserialize, Serialize};
use tlog_tiles::Hash;

/// The first line of an entry's text.
const TAG: &str = "outrigger log entry 1";

/// Where the chain of a session stood. Its link stands for every event up to there.
/// At place 0, where no event is, it says that the session was removed on purpose, and where
/// it stood then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The session.
    pub session: SessionId,
    /// The place of the event.
    pub seq: Seq,
    /// The link of that event.
    pub link: Digest,
}

impl LogEntry {
    /// The place of an entry that says that a session was removed. What covers sessions
    /// never makes one, so that a database that was changed by hand gets none signed.
    pub const REMOVED: Seq = Seq(0);

    /// The text that the log is made of.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{TAG}\n{}\n{}\n{}\n", self.session, self.seq, self.link)
    }

    /// Its leaf hash.
    #[must_use]
    pub fn hash(&self) -> Hash {
        tlog_tiles::record_hash(self.text().as_bytes())
    }
}
