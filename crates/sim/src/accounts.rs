//! Accounts above the sessions of a concurrent run: what holds for them, and that nothing starts
//! beyond it.
//!
//! Owns a sum of its own over what sessions owe. Must never ask the store what it counted.

use outrigger_agent::{AccountId, Limit};
use outrigger_store::{AccountStop, Accounts, Terms, TermsChange};

use crate::Violation;
use crate::tally::Happening;
use crate::world::World;
use crate::{family, limits, subagents};

/// What holds for all sessions of a world together.
#[derive(Debug, Default)]
pub(crate) struct AccountTotals {
    tokens: Option<u64>,
    is_stopped: bool,
}

/// Whether a seed's concurrent runs have accounts with limits, and several sessions that share them.
pub(crate) fn has(seed: u64) -> bool {
    family::is_one_of(seed, 61, limits::PURSES_OF_256)
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
    pub(crate) fn allows(&self, all: &subagents::All) -> Result<(), Violation> {
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

impl World {
    /// Limits what all its sessions may spend together: by the organisation or by the user.
    pub(crate) async fn limit_all(&self, rng: &mut fastrand::Rng) {
        let tokens = rng.u64(limits::PURSE_TOKENS_MIN..limits::PURSE_TOKENS_MAX);
        let limit = Limit { tokens: Some(tokens), ..Limit::NONE };
        let change = TermsChange::Set(Terms { limit, ..Terms::default() });
        let account = match rng.bool() {
            true => AccountId::organisation(),
            false => AccountId::user("person:sim"),
        };
        let set = self.journal.set_terms(&account, change).await;
        set.expect("accounts in memory can be set");
        self.witness.accounts(|accounts| accounts.limit(tokens));
    }

    /// Throws the switch that stops everything, or takes it back.
    pub(crate) async fn switch(&self, is_stopped: bool) {
        let (by, reason, at_ms) = ("person:other".to_owned(), String::new(), self.now_ms());
        let change = match is_stopped {
            true => TermsChange::Stop(AccountStop { by, reason, at_ms }),
            false => TermsChange::Allow,
        };
        let set = self.journal.set_terms(&AccountId::organisation(), change).await;
        set.expect("accounts in memory can be set");
        self.witness.accounts(|accounts| accounts.stop(is_stopped));
        if is_stopped {
            self.witness.count(Happening::Switched);
        }
    }
}
