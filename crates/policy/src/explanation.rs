//! Why a verdict is as it is.

use crate::Verdict;

/// A verdict with what led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The verdict.
    pub verdict: Verdict,
    /// Everybody who had to be permitted: agents, the person, the organisation.
    pub subjects: Vec<Subject>,
    /// Why the situation could not be put to the rules; it is forbidden then.
    pub malformed: Option<String>,
}

/// What the rules say of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Who.
    pub who: String,
    /// The rules that permit it; if there are none, it is forbidden.
    pub permitting: Vec<String>,
    /// The rules that forbid it or ask.
    pub denying: Vec<String>,
}
