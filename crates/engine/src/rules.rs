//! Where the rules in force come from.

use outrigger_policy::RuleSet;
use std::fmt::Debug;

/// Knows which rules are in force. They may change while sessions run.
pub trait RuleSource: Send + Sync + Debug {
    /// The rules in force now. Asked before every judgement and every start, so it must be
    /// cheap where nothing changed.
    ///
    /// # Errors
    /// [`RuleSourceError`]: then nothing is judged, and nothing starts.
    fn current(&self) -> Result<RuleSet, RuleSourceError>;
}

/// The rules in force are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RuleSourceError {
    /// What is wrong with which file, and what to do.
    pub reason: String,
}

/// Rules that never change.
impl RuleSource for RuleSet {
    fn current(&self) -> Result<RuleSet, RuleSourceError> {
        Ok(self.clone())
    }
}
