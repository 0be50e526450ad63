//! Why something could not be measured.

use std::error::Error as StdError;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A part failed.
    #[error("{doing} failed")]
    Failed {
        /// What was done.
        doing: &'static str,
        /// What the part said.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// What was measured is not what was meant to be: the figures would lie.
    #[error("{0}")]
    Astray(String),
    /// It took too long.
    #[error("it is not over after {ms_max} ms; the machine is too busy to measure on")]
    TooLong {
        /// How long it may take.
        ms_max: u64,
    },
    /// Somebody stopped it.
    #[error("interrupted")]
    Interrupted,
}

/// What a measurement gives.
pub(crate) type Outcome<T> = Result<T, Error>;

/// Says what was done when something failed.
pub(crate) trait ErrorContext<T> {
    /// Says it.
    fn doing(self, what: &'static str) -> Outcome<T>;
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> ErrorContext<T> for Result<T, E> {
    fn doing(self, doing: &'static str) -> Outcome<T> {
        self.map_err(|error| Error::Failed { doing, source: error.into() })
    }
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
