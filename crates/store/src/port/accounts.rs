//! Accounts above the session: what sessions charge to them, and what stands against it.
//!
//! A session says what it spent and reserved in all, and its accounts take in the
//! difference, in the transaction of the events that say so: what is kept of accounts
//! follows from the journals, so that all of it can be counted anew.

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_agent::{AccountId, Amounts, Limit, SessionId};
use serde::{Deserialize, Serialize};

use super::period::Period;
use crate::Error;

/// Looking at accounts, and setting what holds for them.
#[async_trait]
pub trait Accounts: Send + Sync + Debug {
    /// Every account that was charged or set, by name.
    ///
    /// # Errors
    /// What the disk says.
    async fn accounts(&self) -> Result<Vec<Account>, Error>;

    /// Changes what holds for an account, in one transaction with what is there; gives it
    /// as it is then. Of charges that come after it, none is judged by what held before.
    ///
    /// # Errors
    /// What the disk says.
    async fn set_terms(&self, account: &AccountId, change: TermsChange) -> Result<Account, Error>;

    /// Counts every account anew from what each session is charged, in one transaction.
    /// Terms stay as they are, and what can't be read is set right: an account whose terms
    /// are lost is stopped until somebody sets them, and a session whose charge is lost
    /// has none until it is charged again.
    ///
    /// # Errors
    /// What the disk says.
    async fn recount(&self) -> Result<(), Error>;

    /// What a session is charged, if it ever was.
    ///
    /// # Errors
    /// What the disk says.
    async fn charged(&self, session: &SessionId) -> Result<Option<SessionCharge>, Error>;
}

/// What holds for an account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Terms {
    /// The most that its sessions may spend together.
    #[serde(default, skip_serializing_if = "Limit::is_none")]
    pub limit: Limit,
    /// From where on a person is asked.
    #[serde(default, skip_serializing_if = "Limit::is_none")]
    pub soft: Limit,
    /// After what time the counting begins anew; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// Nothing of it may start, if there is something here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<AccountStop>,
}

impl Terms {
    /// These terms, and of what they say nothing the other ones.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            limit: self.limit.or(other.limit),
            soft: self.soft.or(other.soft),
            period: self.period.or(other.period),
            stopped: self.stopped.clone().or_else(|| other.stopped.clone()),
        }
    }
}

/// That a person stopped everything of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountStop {
    /// Who.
    pub by: String,
    /// Why; may be empty.
    pub reason: String,
    /// When, milliseconds since 1970.
    pub at_ms: u64,
}

/// A change of what holds for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermsChange {
    /// Sets what the terms say, and leaves the rest as it is.
    Set(Terms),
    /// Takes limits and period away, so that what is usual holds; a switch stays as it is.
    Clear,
    /// Nothing further starts.
    Stop(AccountStop),
    /// What was stopped may start again.
    Allow,
}

impl TermsChange {
    pub(crate) fn apply(self, terms: &mut Terms) {
        match self {
            Self::Set(new) => *terms = new.or(terms),
            Self::Clear => {
                *terms = Terms { stopped: terms.stopped.take(), ..Terms::default() };
            }
            Self::Stop(stopped) => terms.stopped = Some(stopped),
            Self::Allow => terms.stopped = None,
        }
    }
}

/// An account as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub account: AccountId,
    /// What was set for it.
    pub terms: Terms,
    /// What its sessions spent, ever.
    pub spent: Amounts,
    /// What open effects may still cost.
    pub reserved: Amounts,
    /// What they had spent when the current period began.
    pub before: Amounts,
    /// When that was, milliseconds since 1970.
    pub since_ms: u64,
}

impl Account {
    pub(crate) fn new(account: AccountId) -> Self {
        let zero = Amounts::default();
        let terms = Terms::default();
        Self { account, terms, spent: zero, reserved: zero, before: zero, since_ms: 0 }
    }

    /// What was spent in the period that `at_ms` is in.
    #[must_use]
    pub fn spent_now(&self, period: Option<Period>, at_ms: u64) -> Amounts {
        match period {
            Some(period) if period.begins_ms(at_ms) > self.since_ms => Amounts::default(),
            Some(_) => self.spent.minus(self.before),
            None => self.spent,
        }
    }

    pub(crate) fn turn_over(&mut self, period: Option<Period>, at_ms: u64) {
        let begins = period.map_or(0, |period| period.begins_ms(at_ms));
        if begins > self.since_ms {
            (self.before, self.since_ms) = (self.spent, begins);
        }
    }
}

/// What a session says of its spending, with the events that it follows from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Charge {
    /// What it spent in all.
    pub spent: Amounts,
    /// What its open effects may still cost.
    pub reserved: Amounts,
    /// The accounts that it is charged to.
    pub levels: Vec<Level>,
    /// Whether something starts: only that can be refused. What is over is a fact.
    pub starts: bool,
    /// Whether something starts that costs money, and nobody said how much.
    pub unpriced: bool,
}

/// An account that a session is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// The account.
    pub account: AccountId,
    /// What holds where nothing was set for it.
    pub usual: Terms,
    /// When a person let the session go beyond the soft limit, in milliseconds since 1970:
    /// that holds for the period in which they did.
    pub soft_lifted_ms: Option<u64>,
}

/// What a session is charged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionCharge {
    /// What it spent in all.
    pub spent: Amounts,
    /// What its open effects may still cost.
    pub reserved: Amounts,
    /// The accounts that it is charged to.
    pub accounts: Vec<AccountId>,
}

impl SessionCharge {
    pub(crate) fn total(&self, account: &AccountId) -> (Amounts, Amounts) {
        if self.accounts.contains(account) {
            (self.spent, self.reserved)
        } else {
            (Amounts::default(), Amounts::default())
        }
    }
}
