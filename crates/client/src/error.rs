//! What can go wrong between here and a server.

use outrigger_api::ProblemDetails;

/// What can go wrong. Unless it says otherwise, it is not known whether the request was done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the server is none.
    #[error(
        "`{0}` is no address of a server: name a scheme and a host, as in https://agents.example.com"
    )]
    Address(String),
    /// The key can't be sent.
    #[error("the key is none: it has characters that no key has")]
    Key,
    /// No client can be made: the machine's fault, for example because it has no certificates.
    #[error("no HTTPS client can be made; check that the system's CA certificates are installed")]
    Machine(#[source] reqwest::Error),
    /// The server was not reached: nothing was done.
    #[error("{server} can't be reached: {why}")]
    Unreached {
        /// Its address.
        server: String,
        /// Why.
        why: String,
    },
    /// The connection broke.
    #[error("the connection to {server} broke: {why}")]
    Broken {
        /// Its address.
        server: String,
        /// Why.
        why: String,
    },
    /// The server says why it was not done.
    #[error("{}", .0.detail)]
    Problem(Box<ProblemDetails>),
    /// What answers is no such server, or one of another version.
    #[error("{server} gave an answer that can't be read: {what}")]
    Strange {
        /// Its address.
        server: String,
        /// What was wrong with it.
        what: String,
    },
    /// What is sent can't be read.
    #[error("what is sent can't be read")]
    Read(#[source] std::io::Error),
}

/// What is at the bottom of an error: what stands above it says where, which is known.
pub(crate) fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

impl Error {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreached { .. } | Self::Broken { .. } => true,
            Self::Problem(problem) => problem.retryable,
            Self::Address(_)
            | Self::Key
            | Self::Machine(_)
            | Self::Strange { .. }
            | Self::Read(_) => false,
        }
    }
}
