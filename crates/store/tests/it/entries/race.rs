//! Many who edit the same entries, through several stores on one database.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_agent::{Seq, SessionId};
use outrigger_store::Database;
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryFile, EntryPrecondition, Error, Via,
};
use tokio::task::JoinSet;

use super::{at, fits_together, member, put};
use crate::support::{Home, open};

const TASKS: usize = 50;
const ENTRIES: usize = 20;
const EDITS: usize = 8;
const MARK: &str = "end\n";

/// Adds a line before the end: every other time by an edit, which goes on the newest
/// version, else by writing the whole file, which must be made from the newest one.
async fn add(store: &Database, task: usize, number: usize) -> (String, u64, String) {
    let who = member(&format!("p{}", task % 7));
    let at = at(&format!("raced/{}", (task * 5 + number * 3) % ENTRIES));
    let line = format!("{task}-{number}\n");
    let by = Attribution {
        via: Via::Tool,
        session: SessionId::new(format!("task-{task}")),
        seq: Some(Seq(number as u64)),
        ..Attribution::person(1)
    };
    loop {
        let change = if number.is_multiple_of(2) {
            ChangeRequest::Edit {
                at: at.clone(),
                old: MARK.to_owned(),
                new: format!("{line}{MARK}"),
            }
        } else {
            let read = store.read(&who, &at, None).await.unwrap();
            let text = String::from_utf8(read.bytes).unwrap();
            let text = text.replace(MARK, &format!("{line}{MARK}"));
            let expected = EntryPrecondition::Revision(read.version.revision);
            ChangeRequest::Write { at: at.clone(), expected, file: EntryFile::of(text) }
        };
        match store.change(&who, change, by.clone()).await {
            Ok(changed) => {
                let version = changed.version().unwrap();
                assert_eq!(version.author, who.person());
                return (at.path.to_string(), version.revision, line);
            }
            Err(Error::Conflict(current)) => assert!(current.revision > 0 && number % 2 == 1),
            Err(other) => panic!("{other:?}"),
        }
    }
}

on_both!(no_update_is_lost, threads);

async fn no_update_is_lost(directory: Home) {
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(open(directory.path()).await));
    }
    let reader = member("reader");
    for number in 0..ENTRIES {
        assert_eq!(put(&stores[0], &reader, &at(&format!("raced/{number}")), MARK).await, 1);
    }
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = Arc::clone(&stores[task % stores.len()]);
        tasks.spawn(async move {
            let mut told = Vec::new();
            for number in 0..EDITS {
                told.push((task, number, add(&store, task, number).await));
            }
            told
        });
    }
    let told: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(told.len(), TASKS * EDITS);

    let mut lines: BTreeMap<String, BTreeMap<u64, (String, String)>> = BTreeMap::new();
    for (task, _, (path, revision, line)) in told {
        let before =
            lines.entry(path).or_default().insert(revision, (line, format!("task-{task}")));
        assert_eq!(before, None, "a version has one writer");
    }
    for (path, told) in lines {
        let place = at(&path);
        let text = stores[1].read(&reader, &place, None).await.unwrap().bytes;
        let text = String::from_utf8(text).unwrap();
        let expected: String = told.values().map(|(line, _)| line.as_str()).collect();
        assert_eq!(text, expected + MARK, "every line is there, in the order of versions");
        let mut history = stores[2].history(&reader, &place, None).await.unwrap();
        history.reverse();
        let revisions: Vec<u64> = history.iter().map(|version| version.revision).collect();
        assert_eq!(revisions, (1..=told.len() as u64 + 1).collect::<Vec<_>>());
        for version in &history[1..] {
            let session = version.by.session.as_ref().unwrap().as_str();
            assert_eq!(session, told[&version.revision].1, "{path} {}", version.revision);
        }
    }
    for store in stores {
        store.close().await;
    }
    fits_together(directory.path()).await;
}
