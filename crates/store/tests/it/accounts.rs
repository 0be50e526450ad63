//! Several processes charge one account: each has its own writer on the same database.

use futures_util::future::join_all;
use outrigger_agent::{AccountId, Amounts, Limit, Seq};
use outrigger_store::{Accounts, Change, Charge, Error, Level, Summary, Terms};
use outrigger_store::{Journal, Sqlite};

use crate::support::{open, said, session};

const CENT: u64 = 10_000_000;
const CHILD: u64 = 700_000;

fn money(money_nanos: u64) -> Amounts {
    Amounts { money_nanos, ..Amounts::default() }
}

async fn start(store: &Sqlite, number: u64) -> bool {
    let account = AccountId::organisation();
    let level = Level { account, usual: Terms::default(), soft_lifted: false };
    let reserved = money(CHILD);
    let charge = Charge { reserved, levels: vec![level], starts: true, ..Charge::default() };
    let summary = Summary { charge: Some(charge), ..Summary::default() };
    let session = session(&format!("child-{number}"));
    match store.append(&session, Seq(0), 1, vec![said("start")], summary).await {
        Ok(_) => true,
        Err(Error::Budget(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_children_of_four_processes_race_for_a_cent() {
    let directory = tempfile::tempdir().unwrap();
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(open(directory.path()).await);
    }
    let limit = Limit { money_nanos: Some(CENT), ..Limit::NONE };
    let terms = Terms { limit, ..Terms::default() };
    let org = AccountId::organisation();
    processes[0].set_terms(&org, Change::Set(terms)).await.unwrap();
    let children = (0..100).map(|number| start(&processes[number as usize % 4], number));
    let started = join_all(children).await.into_iter().filter(|started| *started).count();
    assert_eq!(started as u64, CENT / CHILD, "what fits is started, and no more");
    for process in &processes {
        let accounts = process.accounts().await.unwrap();
        assert_eq!(accounts[0].reserved, money(CENT / CHILD * CHILD));
    }
}
