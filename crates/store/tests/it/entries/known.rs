//! What is answered twice without asking the database again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_policy::{Directory, Principal};
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
    Error,
};

use super::{at, member, put};
use crate::support::{Home, open};

const CHANGES: u64 = 300;

on_both!(who_looks_sees_every_change_that_was_over_before, threads);

/// Two stores on one database stand for two processes.
async fn who_looks_sees_every_change_that_was_over_before(directory: Home) {
    let (ours, theirs) = (Arc::new(open(directory.path()).await), open(directory.path()).await);
    let who = member("ada");
    put(&theirs, &who, &at("f"), "0").await;
    let over = Arc::new(AtomicU64::new(1));
    let mut readers = tokio::task::JoinSet::new();
    for reader in 0..4 {
        let (store, over, who) = (Arc::clone(&ours), Arc::clone(&over), who.clone());
        readers.spawn(async move {
            let mut looks = 0_u64;
            loop {
                let least = over.load(Ordering::SeqCst);
                let seen = match reader % 2 {
                    0 => store.stat(&who, &at("f")).await.unwrap().revision,
                    _ => {
                        let root = EntryAddress { path: EntryPath::ROOT, ..at("f") };
                        let listed = store.list(&who, &root, false, None).await.unwrap();
                        listed.entries[0].1.revision
                    }
                };
                assert!(seen >= least, "revision {seen} was seen after {least} was over");
                looks += 1;
                if least > CHANGES {
                    return looks;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    for _ in 0..CHANGES {
        let revision = put(&theirs, &who, &at("f"), "x").await;
        over.store(revision, Ordering::SeqCst);
    }
    while let Some(looks) = readers.join_next().await {
        assert!(looks.unwrap() > 0);
    }
}

on_both!(what_is_known_is_of_whom_it_was_told);

async fn what_is_known_is_of_whom_it_was_told(directory: Home) {
    let store = open(directory.path()).await;
    let ada = member("ada");
    let stranger = Directory::default();
    let stranger = stranger.authenticate(&Principal::Person("eve".to_owned())).unwrap();
    put(&store, &ada, &at("f"), "hers").await;
    for _ in 0..2 {
        assert_eq!(store.stat(&ada, &at("f")).await.unwrap().bytes, 4);
        assert!(matches!(store.stat(&stranger, &at("f")).await, Err(Error::Absent)));
        assert!(matches!(store.stat(&ada, &at("g")).await, Err(Error::Absent)));
    }
    let change = ChangeRequest::Write {
        at: at("g"),
        expected: EntryPrecondition::Absent,
        file: EntryFile::of("new"),
    };
    store.change(&ada, change, Attribution::person(1)).await.unwrap();
    assert_eq!(store.stat(&ada, &at("g")).await.unwrap().bytes, 3);
}
