//! Amounts of what a session spends: reserved before an effect, settled after it.

use serde::{Deserialize, Serialize};

/// An amount of each thing that is counted. As a limit, the most that may be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amounts {
    /// Model calls and tool calls.
    pub steps: u64,
    /// Tokens, input and output together.
    pub tokens: u64,
}

impl Amounts {
    /// More than anybody spends.
    pub const UNLIMITED: Self = Self { steps: u64::MAX, tokens: u64::MAX };

    /// The sum; stops at the largest number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            steps: self.steps.saturating_add(other.steps),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    /// The difference; stops at zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            steps: self.steps.saturating_sub(other.steps),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    /// Whether no part of it is above its part of `limit`.
    #[must_use]
    pub fn fits(self, limit: Self) -> bool {
        self.steps <= limit.steps && self.tokens <= limit.tokens
    }
}
