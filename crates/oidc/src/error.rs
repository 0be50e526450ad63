//! Why nobody is known to have logged in.

use crate::limits;

/// Why nobody is known to have logged in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A server of the provider could not be asked. It may answer later.
    #[error("{url} does not answer: {detail}")]
    Unreached {
        /// What was asked.
        url: String,
        /// A sentence.
        detail: String,
    },
    /// What a provider answers is not what the protocol says: its fault, or the configuration's.
    #[error("{url}: {detail}")]
    Provider {
        /// What was asked.
        url: String,
        /// What is wrong with the answer.
        detail: String,
    },
    /// The ID token is not to be believed.
    #[error("the ID token of the provider is refused: {0}")]
    Token(String),
    /// What came back from the browser is not of a login that this browser began.
    #[error("{0}")]
    Answer(String),
    /// The provider says who it is, in a way that names nobody here.
    #[error("{0}")]
    Claims(String),
}

impl Error {
    pub(crate) fn provider(url: &str, detail: impl Into<String>) -> Self {
        Self::Provider { url: url.to_owned(), detail: detail.into() }
    }

    /// Whether the same may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreached { .. })
    }
}

/// A text from elsewhere, so short and plain that it can stand in an error.
pub(crate) fn quoted(text: &str) -> String {
    let plain = text.chars().filter(|it| !it.is_control()).take(limits::QUOTED_CHARS_MAX);
    plain.collect()
}
