//! A script without a turn for a request.

use std::fmt;

/// A script without a turn for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedRequest {
    /// The script's name.
    pub script: String,
    /// Which reply of the conversation was asked for, from 1.
    pub turn: usize,
    /// What a person, or the agent above, said last, as far as it is shown.
    pub message: String,
    /// The results since the last reply, each as far as it is shown.
    pub results: Vec<String>,
}

impl std::error::Error for UnmatchedRequest {}

impl fmt::Display for UnmatchedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script {:?} has no turn for reply {}", self.script, self.turn)?;
        match &self.results[..] {
            [] => write!(f, " to the message {:?}", self.message),
            results => write!(f, " to the results {results:?}"),
        }
    }
}
