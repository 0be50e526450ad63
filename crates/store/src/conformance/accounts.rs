//! What every home of accounts must do: never let sessions pass an account's limit by one
//! unit, and lose nothing.

use futures_util::future::join_all;
use outrigger_agent::{AccountId, Amounts, Cause, Event, Limit, Measure, Seq, SessionId, TurnEnd};

use crate::{
    Account, AccountStop, Accounts, Charge, Error, Journal, Level, Period, SessionSummary, Terms,
    TermsChange,
};

/// Sessions that race for one account.
const RACERS: u64 = 40;
/// What each of them tries to start, one after the other.
const STARTS: u64 = 5;

/// Runs all checks of the accounts, which are those of the journal.
///
/// # Panics
/// Where they do not conform.
pub async fn accounts(journal: &dyn Journal, accounts: &dyn Accounts) {
    let place = AccountsSuite { journal, accounts };
    place.charges_follow_the_session().await;
    place.what_has_no_room_changes_nothing().await;
    place.a_refusal_says_what_would_have_had_room().await;
    place.a_race_ends_at_the_limit().await;
    place.a_soft_limit_asks_and_a_switch_stops().await;
    place.a_period_begins_anew().await;
    place.what_was_lifted_is_asked_about_in_the_next_period().await;
    place.what_is_over_is_taken_in().await;
    place.counting_anew_changes_nothing_that_is_right().await;
}

struct AccountsSuite<'a> {
    journal: &'a dyn Journal,
    accounts: &'a dyn Accounts,
}

fn account(name: &str) -> AccountId {
    AccountId::user(name)
}

fn money(money_nanos: u64) -> Amounts {
    Amounts { money_nanos, ..Amounts::default() }
}

fn at_most(money_nanos: u64) -> Terms {
    let limit = Limit { money_nanos: Some(money_nanos), ..Limit::NONE };
    Terms { limit, ..Terms::default() }
}

/// A session's charge to one account.
fn charge(name: &str, spent: u64, reserved: u64) -> Charge {
    let level = Level { account: account(name), usual: Terms::default(), soft_lifted_ms: None };
    let (spent, reserved) = (money(spent), money(reserved));
    Charge { spent, reserved, levels: vec![level], starts: true, unpriced: false }
}

impl AccountsSuite<'_> {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        charge: Charge,
    ) -> Result<Seq, Error> {
        let summary = SessionSummary { charge: Some(charge), ..SessionSummary::default() };
        let events = [Event::TurnEnded(TurnEnd::Answered)];
        self.journal.append(session, after, at_ms, &events, summary).await
    }

    async fn set(&self, name: &str, terms: Terms) {
        let set = self.accounts.set_terms(&account(name), TermsChange::Set(terms)).await;
        set.expect("terms can be set");
    }

    async fn of(&self, name: &str) -> Account {
        let all = self.accounts.accounts().await.expect("accounts can be read");
        let found = all.into_iter().find(|one| one.account == account(name));
        found.expect("the account was charged or set")
    }

    async fn stands(&self, name: &str) -> (u64, u64) {
        let found = self.of(name).await;
        (found.spent.money_nanos, found.reserved.money_nanos)
    }

    async fn charges_follow_the_session(&self) {
        let (one, two) = (super::session("charge-1"), super::session("charge-2"));
        self.append(&one, Seq(0), 1, charge("sum", 0, 30)).await.expect("no limit");
        self.append(&two, Seq(0), 1, charge("sum", 5, 7)).await.expect("no limit");
        assert_eq!(self.stands("sum").await, (5, 37), "an account is the sum of its sessions");
        self.append(&one, Seq(1), 2, charge("sum", 20, 0)).await.expect("no limit");
        assert_eq!(self.stands("sum").await, (25, 7), "what is settled takes its place");
        // Said again, also without an event, it is not charged again; but it is fenced.
        for (after, taken) in [(Seq(2), true), (Seq(1), false)] {
            let again = Some(charge("sum", 20, 0));
            let summary = SessionSummary { charge: again, ..SessionSummary::default() };
            let said = self.journal.append(&one, after, 3, &[], summary).await;
            assert_eq!(said.is_ok(), taken, "an append after {after}: {said:?}");
        }
        assert_eq!(self.stands("sum").await, (25, 7));
        // A session that is charged elsewhere takes what it spent with it.
        self.append(&two, Seq(1), 3, charge("other", 6, 0)).await.expect("no limit");
        assert_eq!((self.stands("sum").await, self.stands("other").await), ((20, 0), (6, 0)));
        let charged = self.accounts.charged(&two).await.expect("it can be read");
        assert_eq!(charged.expect("it was charged").spent, money(6));
    }

    async fn what_has_no_room_changes_nothing(&self) {
        self.set("small", at_most(10)).await;
        let session = super::session("no-room");
        self.append(&session, Seq(0), 1, charge("small", 0, 10)).await.expect("it fits exactly");
        for (spent, reserved) in [(0, 11), (10, 1), (11, 0)] {
            let refused = self.append(&session, Seq(1), 2, charge("small", spent, reserved)).await;
            let Err(Error::Budget(told)) = refused else { panic!("{refused:?}") };
            assert_eq!(told.shortfall.account, Some(account("small")));
            assert_eq!(told.shortfall.cause, Cause::Limit(Measure::Money));
        }
        let unpriced = Charge { unpriced: true, ..charge("small", 0, 10) };
        let refused = self.append(&session, Seq(1), 2, unpriced).await;
        let Err(Error::Budget(told)) = refused else { panic!("{refused:?}") };
        assert_eq!(told.shortfall.cause, Cause::Unpriced);
        assert_eq!(self.stands("small").await, (0, 10));
        let head = self.journal.head(&session).await.expect("it has a head");
        assert_eq!(head, Seq(1), "what is refused is not appended");
        // Nor does what was never charged become known by that.
        let nobody = super::session("no-room-at-all");
        let mut first = charge("small", 0, 99);
        first.levels.insert(0, charge("phantom", 0, 0).levels.remove(0));
        let refused = self.append(&nobody, Seq(0), 1, first).await;
        assert!(matches!(refused, Err(Error::Budget(_))), "{refused:?}");
        let all = self.accounts.accounts().await.expect("accounts can be read");
        assert!(all.iter().all(|one| one.account != account("phantom")), "{all:?}");
    }

    /// By all accounts at once, of which one counts anew each day, and another session uses some.
    async fn a_refusal_says_what_would_have_had_room(&self) {
        use crate::limits::DAY_MS;
        let daily = Terms { period: Some(Period::Day), ..at_most(20) };
        self.set("tight", daily).await;
        let (session, other) = (super::session("room"), super::session("room-beside"));
        let both = |spent, reserved| {
            let mut both = charge("wide", spent, reserved);
            both.levels.extend(charge("tight", 0, 0).levels);
            both
        };
        let yesterday = Charge { starts: false, ..both(5, 0) };
        self.append(&session, Seq(0), DAY_MS, yesterday).await.expect("an outcome is a fact");
        let today = 2 * DAY_MS;
        self.append(&other, Seq(0), today, charge("tight", 0, 3)).await.expect("it fits");
        for (wide, charged_max) in [(100, 5 + 20 - 3), (21, 21)] {
            self.set("wide", at_most(wide)).await;
            let refused = self.append(&session, Seq(1), today, both(5, 96)).await;
            let Err(Error::Budget(told)) = refused else { panic!("{refused:?}") };
            let room = told.charged_max.expect("it is a matter of how much");
            assert_eq!(room, Limit { money_nanos: Some(charged_max), ..Limit::NONE });
            let refused = self.append(&session, Seq(1), today, both(5, charged_max - 4)).await;
            assert!(matches!(refused, Err(Error::Budget(_))), "{refused:?}");
        }
        let unpriced = Charge { unpriced: true, ..both(5, 1) };
        let refused = self.append(&session, Seq(1), today, unpriced).await;
        let Err(Error::Budget(told)) = refused else { panic!("{refused:?}") };
        assert_eq!(told.charged_max, None, "less of it would be refused too");
        self.append(&session, Seq(1), today, both(5, 16)).await.expect("it fits exactly");
    }

    /// Many sessions start what they can, settle less or all of it, and go on.
    async fn a_race_ends_at_the_limit(&self) {
        const LIMIT: u64 = 100;
        self.set("race", at_most(LIMIT)).await;
        let racers = (0..RACERS).map(|number| async move {
            let session = super::session(&format!("race-{number}"));
            let (mut seq, mut spent) = (Seq(0), 0);
            for turn in 0..STARTS {
                let most = 1 + (number + turn) % 7;
                match self.append(&session, seq, 1, charge("race", spent, most)).await {
                    Ok(last) => seq = last,
                    Err(Error::Budget(_)) => continue,
                    Err(other) => panic!("{other}"),
                }
                let (spent_now, reserved) = self.stands("race").await;
                assert!(spent_now + reserved <= LIMIT, "{spent_now} and {reserved}");
                spent += most - (number + turn) % 2;
                let settled = Charge { starts: false, ..charge("race", spent, 0) };
                seq = self.append(&session, seq, 1, settled).await.expect("an outcome is a fact");
            }
            spent
        });
        let spent: u64 = join_all(racers).await.into_iter().sum();
        assert_eq!(self.stands("race").await, (spent, 0), "nothing leaks");
        assert!(spent <= LIMIT, "{spent}");
        assert!(spent > LIMIT - 7, "{spent}: what fits is started");
    }

    async fn a_soft_limit_asks_and_a_switch_stops(&self) {
        let soft = Limit { money_nanos: Some(10), ..Limit::NONE };
        self.set("soft", Terms { soft, ..at_most(20) }).await;
        let session = super::session("soft");
        let asked = self.append(&session, Seq(0), 1, charge("soft", 0, 11)).await;
        let Err(Error::Budget(told)) = asked else { panic!("{asked:?}") };
        assert_eq!(told.shortfall.cause, Cause::Soft(Measure::Money));
        let lifted = |spent, reserved| {
            let mut charge = charge("soft", spent, reserved);
            charge.levels[0].soft_lifted_ms = Some(1);
            charge
        };
        self.append(&session, Seq(0), 1, lifted(0, 20)).await.expect("up to the hard limit");
        let hard = self.append(&session, Seq(1), 1, lifted(0, 21)).await;
        assert!(matches!(hard, Err(Error::Budget(_))), "{hard:?}");

        let stopped = AccountStop { by: "p".to_owned(), reason: "enough".to_owned(), at_ms: 1 };
        let set = self.accounts.set_terms(&account("soft"), TermsChange::Stop(stopped)).await;
        assert!(set.expect("it can be stopped").terms.stopped.is_some());
        let refused = self.append(&session, Seq(1), 1, lifted(0, 20)).await;
        let Err(Error::Budget(told)) = refused else { panic!("{refused:?}") };
        assert_eq!(told.shortfall.cause, Cause::Stopped { reason: "enough".to_owned() });
        let settled = Charge { starts: false, ..lifted(3, 0) };
        self.append(&session, Seq(1), 1, settled).await.expect("an outcome is a fact");
        let set = self.accounts.set_terms(&account("soft"), TermsChange::Allow).await;
        let terms = set.expect("it can be allowed").terms;
        assert_eq!((terms.stopped, terms.limit), (None, at_most(20).limit));
        self.append(&session, Seq(2), 1, lifted(3, 5)).await.expect("it may again");
    }

    async fn a_period_begins_anew(&self) {
        use crate::limits::DAY_MS;
        self.set("daily", Terms { period: Some(Period::Day), ..at_most(10) }).await;
        let session = super::session("daily");
        self.append(&session, Seq(0), DAY_MS + 1, charge("daily", 0, 10)).await.expect("it fits");
        let more = charge("daily", 9, 2);
        let refused = self.append(&session, Seq(1), DAY_MS + 2, more.clone()).await;
        assert!(matches!(refused, Err(Error::Budget(_))), "{refused:?}");
        let settled = Charge { starts: false, ..charge("daily", 9, 0) };
        self.append(&session, Seq(1), DAY_MS + 3, settled).await.expect("an outcome is a fact");
        self.append(&session, Seq(2), 2 * DAY_MS, more).await.expect("another day");
        let now = self.of("daily").await;
        assert_eq!(now.spent_now(Some(Period::Day), 2 * DAY_MS), money(0));
        assert_eq!(now.spent, money(9), "what was ever spent stays");
    }

    /// Who lets a session go on beyond a soft limit means today's.
    async fn what_was_lifted_is_asked_about_in_the_next_period(&self) {
        use crate::limits::DAY_MS;
        let soft = Limit { money_nanos: Some(10), ..Limit::NONE };
        let daily = Terms { soft, period: Some(Period::Day), ..Terms::default() };
        self.set("lifted", daily).await;
        let session = super::session("lifted");
        let lifted = |at_ms, spent, reserved| {
            let mut charge = charge("lifted", spent, reserved);
            charge.levels[0].soft_lifted_ms = Some(at_ms);
            charge
        };
        let yesterday = DAY_MS + 5;
        let goes_on = self.append(&session, Seq(0), DAY_MS + 6, lifted(yesterday, 0, 11)).await;
        goes_on.expect("it was lifted that day");
        let settled = Charge { starts: false, ..lifted(yesterday, 11, 0) };
        self.append(&session, Seq(1), DAY_MS + 7, settled).await.expect("an outcome is a fact");
        let today = 2 * DAY_MS;
        let asked = self.append(&session, Seq(2), today, lifted(yesterday, 11, 11)).await;
        let Err(Error::Budget(told)) = asked else { panic!("{asked:?}") };
        assert_eq!(told.shortfall.cause, Cause::Soft(Measure::Money));
        let again = self.append(&session, Seq(2), today + 1, lifted(today, 11, 11)).await;
        again.expect("it was lifted today as well");
    }

    /// An outcome may have cost more than was reserved: it is counted, and nothing follows.
    async fn what_is_over_is_taken_in(&self) {
        self.set("over", at_most(10)).await;
        let session = super::session("over");
        self.append(&session, Seq(0), 1, charge("over", 0, 10)).await.expect("it fits");
        let settled = Charge { starts: false, ..charge("over", 15, 0) };
        self.append(&session, Seq(1), 1, settled).await.expect("an outcome is a fact");
        assert_eq!(self.stands("over").await, (15, 0));
        let refused = self.append(&session, Seq(2), 1, charge("over", 15, 0)).await;
        assert!(matches!(refused, Err(Error::Budget(_))), "{refused:?}");
    }

    async fn counting_anew_changes_nothing_that_is_right(&self) {
        let before = self.accounts.accounts().await.expect("accounts can be read");
        self.accounts.recount().await.expect("they can be counted anew");
        let after = self.accounts.accounts().await.expect("accounts can be read");
        assert_eq!(before, after);
    }
}
