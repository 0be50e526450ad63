//! Several processes charge one account: each has its own writer on the same database.

use futures_util::future::join_all;
use outrigger_agent::{AccountId, Amounts, Limit, Seq};
use outrigger_store::{Accounts, Charge, Error, Level, SessionSummary, Terms, TermsChange};
use outrigger_store::{Database, Journal};

use crate::support::{Home, execute, open, said, session};

const CENT: u64 = 10_000_000;
const CHILD: u64 = 700_000;

fn money(money_nanos: u64) -> Amounts {
    Amounts { money_nanos, ..Amounts::default() }
}

async fn start(store: &Database, number: u64) -> bool {
    let account = AccountId::organisation();
    let level = Level { account, usual: Terms::default(), soft_lifted_ms: None };
    let reserved = money(CHILD);
    let charge = Charge { reserved, levels: vec![level], starts: true, ..Charge::default() };
    let summary = SessionSummary { charge: Some(charge), ..SessionSummary::default() };
    let session = session(&format!("child-{number}"));
    match store.append(&session, Seq(0), 1, &[said("start")], summary).await {
        Ok(_) => true,
        Err(Error::Budget(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

on_both!(a_hundred_children_of_four_processes_race_for_a_cent, threads);

async fn a_hundred_children_of_four_processes_race_for_a_cent(directory: Home) {
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(open(directory.path()).await);
    }
    let limit = Limit { money_nanos: Some(CENT), ..Limit::NONE };
    let terms = Terms { limit, ..Terms::default() };
    let org = AccountId::organisation();
    processes[0].set_terms(&org, TermsChange::Set(terms)).await.unwrap();
    let children = (0..100).map(|number| start(&processes[number as usize % 4], number));
    let started = join_all(children).await.into_iter().filter(|started| *started).count();
    assert_eq!(started as u64, CENT / CHILD, "what fits is started, and no more");
    for process in &processes {
        let accounts = process.accounts().await.unwrap();
        assert_eq!(accounts[0].reserved, money(CENT / CHILD * CHILD));
    }
}

/// Every row is damaged in a way of its own.
const DAMAGE: [&str; 5] = [
    "UPDATE accounts SET spent = '{\"steps\":9,\"tokens\":9}', reserved = '{\"steps\":0,\"tokens\":7}'",
    "UPDATE accounts SET spent = 'nonsense', before = ''",
    "UPDATE accounts SET account = 'nobody'",
    "DELETE FROM accounts",
    "UPDATE charges SET charged = 'nonsense' WHERE session = 'child-2'",
];

on_both!(accounts_are_counted_anew_from_what_sessions_are_charged);

async fn accounts_are_counted_anew_from_what_sessions_are_charged(home: Home) {
    for damage in DAMAGE {
        let directory = home.another().await;
        let store = open(directory.path()).await;
        for number in 0..3 {
            assert!(start(&store, number).await);
        }
        let terms = Terms::default();
        let org = AccountId::organisation();
        let before = store.set_terms(&org, TermsChange::Set(terms)).await.unwrap();
        store.close().await;
        execute(directory.path(), damage).await;
        let store = open(directory.path()).await;
        store.recount().await.unwrap();
        let lost = u64::from(damage.contains("charges"));
        let after = store.accounts().await.unwrap();
        assert_eq!(after.len(), 1, "{damage}");
        assert_eq!(after[0].reserved, money(CHILD * (3 - lost)), "{damage}");
        assert_eq!((after[0].spent, &after[0].terms), (before.spent, &before.terms), "{damage}");
        assert!(start(&store, 3).await, "{damage}");
        store.close().await;
    }
}

on_both!(an_account_whose_limits_are_lost_is_stopped);

async fn an_account_whose_limits_are_lost_is_stopped(directory: Home) {
    let store = open(directory.path()).await;
    assert!(start(&store, 0).await);
    store.close().await;
    execute(directory.path(), "UPDATE accounts SET terms = 'nonsense'").await;
    let store = open(directory.path()).await;
    store.recount().await.unwrap();
    assert!(!start(&store, 1).await, "nobody knows what may be spent");
    let org = AccountId::organisation();
    store.set_terms(&org, TermsChange::Allow).await.unwrap();
    assert!(start(&store, 1).await);
    store.close().await;
}
