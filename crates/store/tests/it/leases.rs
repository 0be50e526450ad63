//! Who drives a session: one of all processes, and nobody who was taken for dead.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_agent::{Seq, SessionId};
use outrigger_store::{Database, Error, Journal as _, Lease, LeasePurpose, Retry};

use crate::support::{Home, append, execute, open, said, session};

async fn drive(database: &Database, session: &SessionId) -> Option<Lease> {
    database.lease(session, LeasePurpose::Drive).await.unwrap()
}

/// What a server that stood still has missed: its session went to another process.
const GOES_ON_ELSEWHERE: &str = "UPDATE driven SET process = 7 WHERE session = 's'";

on_both!(one_process_drives_a_session);

async fn one_process_drives_a_session(directory: Home) {
    let (ours, theirs) = (open(directory.path()).await, open(directory.path()).await);
    let (first, other) = (session("s"), session("other"));
    let lease = drive(&ours, &first).await.unwrap();
    assert!(drive(&theirs, &first).await.is_none());
    assert!(theirs.is_leased(&first).await.unwrap());
    assert!(drive(&theirs, &other).await.is_some());
    let journal = Arc::new(ours).journal_under(&lease);
    assert_eq!(append(&*journal, "s", 0, vec![said("1")]).await.unwrap(), Seq(1));
    drop(lease);
    let begun = Instant::now();
    // It is given back beside whoever let it go.
    while drive(&theirs, &first).await.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is never given back");
    }
}

on_both!(what_was_woken_meanwhile_is_not_settled);

async fn what_was_woken_meanwhile_is_not_settled(directory: Home) {
    let (store, session) = (open(directory.path()).await, session("s"));
    store.wake(&session).await.unwrap();
    let wakes = store.wakes(&session).await.unwrap();
    store.wake(&session).await.unwrap();
    assert!(!store.settle(&session, wakes, None).await.unwrap());
    let due = store.due(1).await.unwrap();
    assert_eq!(due.iter().map(|due| &due.session).collect::<Vec<_>>(), [&session]);
    assert!(store.settle(&session, wakes + 1, Some(5)).await.unwrap());
    assert_eq!(store.due(4).await.unwrap(), []);
    assert_eq!(store.due(5).await.unwrap().len(), 1);
}

/// Whoever was taken for dead and comes back knows nothing of it. What it appends to a session is
/// refused all the same, also at the place where the session stands; and of its subagents.
#[tokio::test]
async fn who_was_taken_for_dead_appends_nothing() {
    let directory = Home::postgres().await;
    let store = Arc::new(open(directory.path()).await);
    let lease = drive(&store, &session("s")).await.unwrap();
    let journal = store.journal_under(&lease);
    append(&*journal, "s", 0, vec![said("1")]).await.unwrap();
    execute(directory.path(), GOES_ON_ELSEWHERE).await;
    for name in ["s", "s-1"] {
        let after = u64::from(name == "s");
        let refused = append(&*journal, name, after, vec![said("2")]).await.unwrap_err();
        assert!(matches!(refused, Error::Superseded { .. }), "{refused:?}");
        assert_eq!(refused.retry(), Retry::Never);
    }
    // People may still say something here, and other sessions are other sessions.
    append(&*store, "s", 1, vec![said("2")]).await.unwrap();
    append(&*journal, "t", 0, vec![said("1")]).await.unwrap();
    assert_eq!(store.verify(&session("s")).await.unwrap().head, Seq(2));
}

/// With the connection by which a process lives its lease is free. One that comes back hears that
/// it was lost, if another process took it.
#[tokio::test]
async fn a_lease_is_lost_with_its_connection_only_if_another_process_takes_it() {
    let directory = Home::postgres().await;
    let store = open(directory.path()).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let kept = drive(&store, &session("kept")).await.unwrap();
    execute(directory.path(), end).await;
    // The first question finds out that the connection is gone, and the next makes another one.
    let mut other = store.lease(&session("other"), LeasePurpose::Drive).await;
    while other.is_err() {
        other = store.lease(&session("other"), LeasePurpose::Drive).await;
    }
    let lost = drive(&store, &session("s")).await.unwrap();
    execute(directory.path(), GOES_ON_ELSEWHERE).await;
    execute(directory.path(), end).await;
    tokio::select! {
        () = lost.lost() => {}
        () = kept.lost() => panic!("nobody took it"),
    }
}
