//! What can go wrong with the files of a log.

use std::io;

/// Why the key or the copy of the log could not be read or written. The operator's disk is
/// at fault, or who changed a file; nothing was changed, and what is damaged stays so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing failed.
    #[error("input or output failed while {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What is in a file is not what was written.
    #[error("{place} is damaged: {what}")]
    Damaged {
        /// Which file.
        place: String,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, source: io::Error) -> Self {
        Self::Io { doing, source }
    }

    pub(crate) fn damaged(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { place: place.into(), what: what.into() }
    }
}
