//! Accounts above the sessions of a concurrent run: what holds for them, and that nothing starts
//! beyond it.
//!
//! Owns a sum of its own over what sessions owe. Must never ask the store what it counted.

use crate::seed::is_one_of;
use crate::session_facts::All;
use crate::{Violation, limits};

/// What holds for all sessions of a world together.
#[derive(Debug, Default)]
pub(crate) struct AccountTotals {
    tokens: Option<u64>,
    is_stopped: bool,
}

/// Whether a seed's concurrent runs have accounts with limits, and several sessions that share them.
pub(crate) fn has(seed: u64) -> bool {
    is_one_of(seed, 61, limits::PURSES_OF_256)
}

impl AccountTotals {
    pub(crate) fn limit(&mut self, tokens: u64) {
        self.tokens = Some(tokens);
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.tokens.is_some()
    }

    pub(crate) fn stop(&mut self, is_stopped: bool) {
        self.is_stopped = is_stopped;
    }

    /// Whether something may start that has become part of what these owe.
    pub(crate) fn allows(&self, all: &All) -> Result<(), Violation> {
        if self.is_stopped {
            return Err(Violation::StartedStopped);
        }
        // What subagents owe is reserved above them.
        let roots = all.values().filter(|own| own.subagents.parent().is_none());
        let owed: u64 = roots.map(|own| own.ledger.owed().tokens).sum();
        match self.tokens {
            Some(most) if owed > most => Err(Violation::AccountOverdrawn { owed, most }),
            _ => Ok(()),
        }
    }
}
