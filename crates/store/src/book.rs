//! The one bookkeeping of accounts, which both homes of a journal use.
//!
//! Takes in what a session says that it spent and reserved, inside the transaction of the
//! events that say so. Must never interpret an event.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_agent::{AccountId, Amounts, Cause, Limit, SessionId, Shortfall};

use crate::port::{Account, Charge, SessionCharge, Terms, TermsChange};
use crate::{BudgetRefusal, Error};

/// Accounts and what sessions charge to them: all that there are, or those that a commit
/// has to do with.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) accounts: BTreeMap<AccountId, Account>,
    pub(crate) sessions: BTreeMap<SessionId, SessionCharge>,
    /// What was changed since it was read.
    pub(crate) changed_accounts: BTreeSet<AccountId>,
    pub(crate) changed_sessions: BTreeSet<SessionId>,
}

impl Book {
    /// Takes a charge in, whole or not at all.
    pub(crate) fn charge(
        &mut self,
        session: &SessionId,
        at_ms: u64,
        charge: &Charge,
    ) -> Result<(), Error> {
        let before = self.sessions.get(session).cloned().unwrap_or_default();
        let accounts = charge.levels.iter().map(|level| level.account.clone()).collect();
        let now = SessionCharge { spent: charge.spent, reserved: charge.reserved, accounts };
        let mut changed = BTreeMap::new();
        let (mut shortfall, mut charged_max) = (None, Limit::NONE);
        let none = Terms::default();
        let left = before.accounts.iter().filter(|account| !now.accounts.contains(account));
        for account in left.chain(&now.accounts) {
            let level = charge.levels.iter().find(|level| level.account == *account);
            let known = self.accounts.get(account).cloned();
            let mut after = known.unwrap_or_else(|| Account::new(account.clone()));
            let terms = after.terms.or(level.map_or(&none, |level| &level.usual));
            after.turn_over(terms.period, at_ms);
            let ((old_spent, old_reserved), (spent, reserved)) =
                (before.total(account), now.total(account));
            after.spent = after.spent.minus(old_spent).plus(spent);
            after.reserved = after.reserved.minus(old_reserved).plus(reserved);
            if let Some(level) = level.filter(|_| charge.starts) {
                let used = after.spent_now(terms.period, at_ms).plus(after.reserved);
                // The period has turned over by now.
                let lifted = level.soft_lifted_ms.is_some_and(|at_ms| at_ms >= after.since_ms);
                let cause = against(&terms, lifted, charge, used);
                let told = |cause| Shortfall { account: Some(account.clone()), cause };
                shortfall = shortfall.or(cause.map(told));
                // All but what others use, and what it used itself before the period.
                let own = terms.limit.plus(spent.plus(reserved)).left(used);
                charged_max = charged_max.and(own);
            }
            changed.insert(account.clone(), after);
        }
        if let Some(shortfall) = shortfall {
            let of_amount = matches!(shortfall.cause, Cause::Limit(_));
            let charged_max = of_amount.then_some(charged_max);
            return Err(Error::Budget(Box::new(BudgetRefusal { shortfall, charged_max })));
        }
        if before == now {
            return Ok(());
        }
        self.changed_accounts.extend(changed.keys().cloned());
        self.accounts.append(&mut changed);
        self.changed_sessions.insert(session.clone());
        self.sessions.insert(session.clone(), now);
        Ok(())
    }

    /// Changes what holds for an account.
    pub(crate) fn set_terms(&mut self, account: &AccountId, change: TermsChange) -> Account {
        self.changed_accounts.insert(account.clone());
        let new = || Account::new(account.clone());
        let account = self.accounts.entry(account.clone()).or_insert_with(new);
        change.apply(&mut account.terms);
        account.clone()
    }

    /// Counts all accounts anew from all charges. The book holds all of both.
    pub(crate) fn recount(&mut self) {
        let mut sums: BTreeMap<&AccountId, (Amounts, Amounts)> = BTreeMap::new();
        for charged in self.sessions.values() {
            for account in charged.accounts.iter().collect::<BTreeSet<_>>() {
                let (spent, reserved) = sums.entry(account).or_default();
                *spent = spent.plus(charged.spent);
                *reserved = reserved.plus(charged.reserved);
            }
        }
        for account in sums.keys() {
            let new = || Account::new((*account).clone());
            self.accounts.entry((*account).clone()).or_insert_with(new);
        }
        for (name, account) in &mut self.accounts {
            (account.spent, account.reserved) = sums.get(name).copied().unwrap_or_default();
            // No more was spent before the period than ever.
            account.before = account.spent.minus(account.spent.minus(account.before));
        }
        self.changed_accounts = self.accounts.keys().cloned().collect();
    }
}

/// What stands against a start after which that much is used.
fn against(terms: &Terms, lifted: bool, charge: &Charge, used: Amounts) -> Option<Cause> {
    if let Some(stopped) = &terms.stopped {
        return Some(Cause::Stopped { reason: stopped.reason.clone() });
    }
    let money = terms.limit.money_nanos.or(terms.soft.money_nanos);
    if charge.unpriced && money.is_some() {
        return Some(Cause::Unpriced);
    }
    if let Some(measure) = used.over(terms.limit) {
        return Some(Cause::Limit(measure));
    }
    used.over(terms.soft).filter(|_| !lifted).map(Cause::Soft)
}
