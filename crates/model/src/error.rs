//! Why a model gave no reply, in the words of people.
//!
//! Owns the typed errors of the port and their mapping to the journal's kinds.
//! Must never carry a key, a URL with its query, or an unbounded text.

use outrigger_agent::ModelFault;
use std::fmt;

use crate::scripted::UnmatchedRequest;

/// Why there is no reply. Retrying is already done where it helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The provider gave none.
    #[error("{cause}")]
    Provider {
        /// What kind of fault.
        fault: ModelFault,
        /// What went wrong in the last attempt.
        cause: ProviderFailure,
    },
    /// The script has no turn for this.
    #[error(transparent)]
    Script(#[from] UnmatchedRequest),
}

/// What went wrong in the last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFailure {
    /// The provider, by the host of its base URL.
    pub provider: String,
    /// Attempts that were made.
    pub attempts: u32,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// What the provider said, or what is wrong with its answer; at most
    /// [`crate::limits::ERROR_MESSAGE_BYTES_MAX`], and never the key.
    pub message: String,
    /// How long the provider wants to be left alone, in milliseconds, if it takes no more
    /// requests now and does later. Zero if it does not say how long.
    pub retry_after_ms: Option<u64>,
}

impl fmt::Display for ProviderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.provider)?;
        match self.status {
            Some(status) => write!(f, " answered {status}: {}", self.message)?,
            None => write!(f, ": {}", self.message)?,
        }
        match self.attempts {
            0 | 1 => Ok(()),
            attempts => write!(f, " (the last of {attempts} attempts)"),
        }
    }
}

impl Error {
    /// The journal's kind of it.
    #[must_use]
    pub fn fault(&self) -> ModelFault {
        match self {
            Self::Provider { fault, .. } => *fault,
            Self::Script(_) => ModelFault::Script,
        }
    }

    /// How long to wait before the provider is asked again, in milliseconds, if that helps:
    /// it takes no more requests now. Zero if it does not say how long.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Provider { cause, .. } => cause.retry_after_ms,
            Self::Script(_) => None,
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self.fault() {
            ModelFault::Auth => {
                "check that the key is set, belongs to this base URL and may use this model"
            }
            ModelFault::Invalid => "check the model's name, its base URL and its settings",
            ModelFault::ContextTooLong => {
                "start a new session, or set the model's `context_tokens` to what it really holds, so that the conversation is summarised in time"
            }
            ModelFault::RateLimited => "wait, or raise the account's limits",
            ModelFault::Unavailable => "check the network and the base URL, or wait and resume",
            ModelFault::Garbled => {
                "check that the base URL speaks the chosen wire, or wait and resume"
            }
            ModelFault::Script => "add a turn to the script whose `when` fits",
        }
    }

    /// What went wrong and what to do, in one text.
    #[must_use]
    pub fn detail(&self) -> String {
        format!("{self}; {}", self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_says_status_message_attempts_and_advice() {
        let cause = ProviderFailure {
            provider: "api.example".into(),
            attempts: 6,
            status: Some(429),
            message: "slow down".into(),
            retry_after_ms: Some(0),
        };
        expect_test::expect![
            "api.example answered 429: slow down (the last of 6 attempts); wait, or raise the account's limits"
        ]
        .assert_eq(&Error::Provider { fault: ModelFault::RateLimited, cause }.detail());
    }
}
