//! What is let go on purpose: sessions, of which the log says so, and blobs that nothing names.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};
use outrigger_agent::Seq;
use outrigger_audit::Report;
use outrigger_store::{Audit, AuditRequest, Blobs, Database, Error, Journal};

use crate::audit::turn;
use crate::support::{Home, address, append, contents, execute, open, said, session};

async fn verify(directory: &Path) -> Report {
    let audit = Audit::open(directory, &address(directory)).await.unwrap();
    audit.verify(&AuditRequest::default(), &Arc::default()).await.unwrap()
}

fn text(report: &Report) -> String {
    report.faults.iter().map(|fault| format!("{fault}\n")).collect()
}

const SECRET: &str = "zqxjkvbpyyw";

/// Three sessions, of which `b` was removed.
async fn removed(directory: &Path) -> Database {
    let store = open(directory).await;
    for name in ["a", "b", "c"] {
        turn(&store, name, 0, 3).await;
    }
    append(&store, "b", 3, vec![said(SECRET), said(SECRET.repeat(10_000))]).await.unwrap();
    store.remove(&session("b"), Seq(5)).await.unwrap();
    store
}

on_both!(a_removed_session_is_gone_and_the_audit_knows_why);

async fn a_removed_session_is_gone_and_the_audit_knows_why(directory: Home) {
    let store = removed(directory.path()).await;
    let gone = store.load(&session("b"), Seq(0)).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone:?}");
    let names: Vec<_> = store.sessions(None, 9).await.unwrap();
    assert_eq!(names.len(), 2);
    // Its driver can't go on with it.
    let late = append(&store, "b", 5, vec![said("late")]).await.unwrap_err();
    assert!(matches!(late, Error::Conflict { found: Seq(0), .. }), "{late:?}");
    turn(&store, "a", 3, 1).await;
    store.close().await;
    let report = verify(directory.path()).await;
    assert_eq!(text(&report), "");
    assert_eq!((report.sessions, report.removed, report.events, report.entries), (2, 1, 7, 5));
    if address(directory.path()).is_sqlite() {
        let database = std::fs::read(directory.path().join("journal.db")).unwrap();
        assert!(!String::from_utf8_lossy(&database).contains(SECRET), "its text is overwritten");
    }
}

#[tokio::test]
async fn what_can_not_be_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    turn(&store, "a", 0, 3).await;
    let gone = store.remove(&session("x"), Seq(0)).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone:?}");
    let moved = store.remove(&session("a"), Seq(2)).await.unwrap_err();
    assert!(matches!(moved, Error::Conflict { found: Seq(3), .. }), "{moved:?}");
    // Nothing is removed of which that can't be signed.
    std::fs::remove_file(directory.path().join("audit/key")).unwrap();
    let store = {
        store.close().await;
        open(directory.path()).await
    };
    let unsigned = store.remove(&session("a"), Seq(3)).await.unwrap_err();
    assert!(matches!(unsigned, Error::Damaged { .. }), "{unsigned:?}");
    assert_eq!(store.head(&session("a")).await.unwrap(), Seq(3));
}

async fn check(statements: &str, expected: Expect) {
    let directory = tempfile::tempdir().unwrap();
    removed(directory.path()).await.close().await;
    execute(directory.path(), statements).await;
    expected.assert_eq(&text(&verify(directory.path()).await));
}

/// Somebody without the key removes a session, and says in each way that it was on purpose.
#[tokio::test]
async fn whoever_removes_one_by_hand_is_reported() {
    let by_hand = "DELETE FROM events WHERE session = 'c'; \
        DELETE FROM sessions WHERE session = 'c';";
    check(by_hand, expect![[r#"
        event 1 of session c: it is missing: the whole session is gone, and the log has it up to event 3
    "#]]).await;
    let row = "INSERT INTO log SELECT 4, session, 0, link FROM log WHERE session = 'c'";
    check(&format!("{by_hand} {row}"), expect![[r#"
        entry 4 of the log (session c, event 0): no checkpoint covers it
        event 1 of session c: it is missing: the whole session is gone, and the log has it up to event 3
    "#]]).await;
    // Its last entry becomes one that says so.
    check(&format!("{by_hand} UPDATE log SET seq = 0 WHERE session = 'c'"), expect![[r#"
        audit/checkpoint (a checkpoint of 4 entries): the log is no continuation of it: an entry that it covers is another one now
        the checkpoint of 3 entries: the log does not fit it: of the entries 2 to 2 at least one was changed, removed or put in
        entry 2 of the log (session c, event 3): it is another one than its copy in audit/log
        event 1 of session c: it is missing: the whole session is gone, and the log has it up to event 3
    "#]]).await;
    // What the log has of one that was removed is made that of another.
    let other = "UPDATE log SET session = 'c' WHERE seq = 0";
    check(&format!("{by_hand} {other}"), expect![[r#"
        audit/checkpoint (a checkpoint of 4 entries): the log is no continuation of it: an entry that it covers is another one now
        the checkpoint of 4 entries: the log does not fit it: of the entries 3 to 3 at least one was changed, removed or put in
        entry 3 of the log (session b, event 0): it is another one than its copy in audit/log
        event 1 of session c: it is missing: the whole session is gone, and the log has it up to event 3
    "#]]).await;
}

/// A session whose place was put back by hand, so that its removal would be signed.
#[tokio::test]
async fn no_removal_is_signed_for_a_row_that_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    removed(directory.path()).await.close().await;
    let changed = "DELETE FROM events WHERE session = 'c'; \
        UPDATE sessions SET head_seq = 0 WHERE session = 'c'";
    execute(directory.path(), changed).await;
    let store = open(directory.path()).await;
    store.checkpoint().await.unwrap();
    store.close().await;
    execute(directory.path(), "DELETE FROM sessions WHERE session = 'c'").await;
    expect![[r#"
        event 1 of session c: it is missing: the whole session is gone, and the log has it up to event 3
    "#]].assert_eq(&text(&verify(directory.path()).await));
}

fn make_old(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(2 * 24 * 3_600)).unwrap();
}

fn blob_files(directory: &Path) -> Vec<std::path::PathBuf> {
    let files = contents(&directory.join("blobs")).into_keys();
    files.filter(|path| path.is_file()).collect()
}

/// One that a row has, one that an event's text names, one that the text of another blob
/// names, and one that nothing does.
#[tokio::test]
async fn blobs_that_nothing_names() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    let mut names = Vec::new();
    for text in ["one", "two", "three"] {
        names.push(store.blobs().put(text.as_bytes().to_vec()).await.unwrap());
    }
    append(&store, "a", 0, vec![said(format!("see {}", names[0]))]).await.unwrap();
    let long = format!("{} {}", "x".repeat(70_000), names[1]);
    append(&store, "a", 1, vec![said(long)]).await.unwrap();
    assert_eq!(store.unnamed_blobs().await.unwrap(), [], "a young one may be named yet");
    blob_files(directory.path()).iter().for_each(|path| make_old(path));
    let unnamed = store.unnamed_blobs().await.unwrap();
    assert_eq!(unnamed.iter().map(|it| &it.digest).collect::<Vec<_>>(), [&names[2]]);
    // Stored again before it goes: somebody is about to name it.
    store.blobs().put(b"three".to_vec()).await.unwrap();
    assert_eq!(store.remove_blobs(unnamed.clone()).await.unwrap(), 0);
    blob_files(directory.path()).iter().for_each(|path| make_old(path));
    assert_eq!(store.remove_blobs(unnamed).await.unwrap(), 5);
    assert_eq!(blob_files(directory.path()).len(), 3);

    store.remove(&session("a"), Seq(2)).await.unwrap();
    let unnamed = store.unnamed_blobs().await.unwrap();
    assert_eq!(unnamed.len(), 3, "they were the session's");
    let space = store.space().await.unwrap();
    assert_eq!((space.sessions, space.blob_bytes > 70_000), (0, true));
    store.remove_blobs(unnamed).await.unwrap();
    store.compact().await.unwrap();
    let space = store.space().await.unwrap();
    assert_eq!((space.free_bytes, space.blob_bytes), (0, 0));
}
