//! What can go wrong with a gate.

use std::io;

/// Why a gate did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gate does not know the sandbox, for example because it was started again.
    /// Opening the sandbox helps.
    #[error("the gate does not know this sandbox")]
    Unknown,
    /// Another gate has the directory. A retry helps if that one is on its way out.
    #[error("another gate has the directory and does not serve it")]
    Busy,
    /// The gate could not be started; its own words.
    #[error("the gate could not start: {0}")]
    Start(String),
    /// What was asked for can't be: the caller's fault. A retry does not help.
    #[error("{0}")]
    Refused(String),
    /// Nothing came back in time, or what came was cut off.
    #[error("cannot {what}")]
    Io {
        /// What failed.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The gate answered something else than what was asked: a fault of the program.
    #[error("the gate gave an answer to another question")]
    Protocol,
}

impl Error {
    /// A failure of the system, with what it kept from being done.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
