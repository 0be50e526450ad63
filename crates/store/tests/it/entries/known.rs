//! What is answered twice without asking the database again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_policy::{Directory, Principal};
use outrigger_store::entries::{By, Change, Entries, EntryPath, Error, Expected, File, Place};

use super::{at, member, put};
use crate::support::open;

const CHANGES: u64 = 300;

/// Two stores on one database stand for two processes.
#[tokio::test(flavor = "multi_thread")]
async fn who_looks_sees_every_change_that_was_over_before() {
    let directory = tempfile::tempdir().unwrap();
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
                        let root = Place { path: EntryPath::ROOT, ..at("f") };
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

#[tokio::test]
async fn what_is_known_is_of_whom_it_was_told() {
    let directory = tempfile::tempdir().unwrap();
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
    let change = Change::Write { at: at("g"), expected: Expected::Absent, file: File::of("new") };
    store.change(&ada, change, By::person(1)).await.unwrap();
    assert_eq!(store.stat(&ada, &at("g")).await.unwrap().bytes, 3);
}

/// A reader goes through the files of a folder, while somebody writes one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_ahead_is_never_old() {
    const FILES: u64 = 10;
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (open(directory.path()).await, open(directory.path()).await);
    let who = member("ada");
    let name = |file: u64| at(&format!("folder/{file}"));
    for file in 0..FILES {
        put(&theirs, &who, &name(file), "0").await;
    }
    let over: Arc<Vec<AtomicU64>> = Arc::new((0..FILES).map(|_| AtomicU64::new(0)).collect());
    let mut reader = tokio::task::JoinSet::new();
    {
        let (over, who) = (Arc::clone(&over), who.clone());
        reader.spawn(async move {
            loop {
                let mut done = 0;
                for file in 0..FILES {
                    let least = over[file as usize].load(Ordering::SeqCst);
                    let found = ours.read(&who, &name(file), None).await.unwrap();
                    assert_eq!(found.version.place, name(file));
                    let number: u64 = String::from_utf8(found.bytes).unwrap().parse().unwrap();
                    assert!(number >= least, "{file}: {number} was read after {least}");
                    done += u64::from(least >= CHANGES / FILES);
                }
                if done == FILES {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    for number in 1..=CHANGES / FILES {
        for file in 0..FILES {
            put(&theirs, &who, &name(file), &number.to_string()).await;
            over[file as usize].store(number, Ordering::SeqCst);
        }
    }
    reader.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_folder_is_read_through_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    let who = member("ada");
    let large = "x".repeat(100_000);
    let texts = |file: u64| if file % 7 == 3 { large.clone() } else { format!("text {file}") };
    for file in 0..100 {
        put(&store, &who, &at(&format!("folder/{file:02}")), &texts(file)).await;
    }
    let folder = Change::MakeFolder { at: at("folder/50-inside") };
    store.change(&who, folder, By::person(1)).await.unwrap();
    let revision = store.stat(&who, &at("folder/60")).await.unwrap().revision;
    let remove = Change::Remove { at: at("folder/60"), revision };
    store.change(&who, remove, By::person(1)).await.unwrap();
    for _ in 0..2 {
        for file in 0..100 {
            let read = store.read(&who, &at(&format!("folder/{file:02}")), None).await;
            match (file, read) {
                (60, read) => assert!(matches!(read, Err(Error::Absent))),
                (_, read) => assert_eq!(read.unwrap().bytes, texts(file).into_bytes()),
            }
        }
        let read = store.read(&who, &at("folder/50-inside"), None).await;
        assert!(matches!(read, Err(Error::Folder)));
    }
}
