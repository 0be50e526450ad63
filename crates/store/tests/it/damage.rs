//! Stores that were changed from outside: every change is found, named, and left as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use outrigger_agent::Seq;
use outrigger_store::{CachedSnapshot, Database, Error, Journal, SessionSnapshot, Settings};

use crate::support::{address, append, contents, execute, explain, open, said, session};

/// A closed store of one session with six events; the fourth is a blob.
async fn store_of_six(directory: &Path) {
    let store = open(directory).await;
    for after in 0..6 {
        let text = if after == 3 { "x".repeat(70_000) } else { format!("event text {after}") };
        append(&store, "s", after, vec![said(text)]).await.unwrap();
    }
    let snapshot = SessionSnapshot { seq: Seq(5), version: 1, state: b"{}".to_vec() };
    store.keep_snapshot(&session("s"), snapshot).await.unwrap();
    store.close().await;
}

pub(crate) fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

fn assert_unchanged(directory: &Path, before: &BTreeMap<PathBuf, Vec<u8>>) {
    assert_same(&contents(directory), before);
}

/// All but the index of a log, which SQLite makes of the log and keeps its locks in.
fn without_index(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut contents = contents(directory);
    contents.remove(&directory.join("journal.db-shm"));
    contents
}

fn assert_same(after: &BTreeMap<PathBuf, Vec<u8>>, before: &BTreeMap<PathBuf, Vec<u8>>) {
    let names = |contents: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> {
        contents.keys().cloned().collect()
    };
    assert_eq!(names(after), names(before), "opening changed the directory");
    for (name, content) in before {
        assert!(after[name] == *content, "opening changed {}", name.display());
    }
}

/// Opening fails, and leaves every byte and every name as it was.
async fn check_open(spoil: impl FnOnce(&mut Vec<u8>), expected: Expect) {
    let directory = tempfile::tempdir().unwrap();
    store_of_six(directory.path()).await;
    std::fs::remove_dir_all(directory.path().join("blobs")).unwrap();
    change(&directory.path().join("journal.db"), spoil);
    let before = contents(directory.path());
    let error = Database::open(directory.path(), &address(directory.path()), Settings::default())
        .await
        .unwrap_err();
    assert_unchanged(directory.path(), &before);
    let text = explain(&error).replace(&directory.path().display().to_string(), "<directory>");
    expected.assert_eq(&text);
}

#[tokio::test]
async fn headers() {
    check_open(
        |bytes| bytes[3] = b'x',
        expect!["<directory>/journal.db is damaged: file is not a database"],
    )
    .await;
    check_open(
        |bytes| bytes[..4096].fill(0),
        expect!["<directory>/journal.db is damaged: file is not a database"],
    )
    .await;
    check_open(
        |bytes| bytes[68..72].fill(0),
        expect!["<directory>/journal.db is damaged: it is an SQLite database of another program"],
    )
    .await;
    check_open(
        |bytes| bytes.truncate(0),
        expect!["<directory>/journal.db is damaged: it is empty"],
    )
    .await;
    check_open(
        |bytes| bytes.truncate(50),
        expect!["<directory>/journal.db is damaged: database disk image is malformed"],
    )
    .await;
    check_open(
        |bytes| bytes.truncate(3 * 4096 + 77),
        expect!["<directory>/journal.db is damaged: database disk image is malformed"],
    )
    .await;
    check_open(
        |bytes| bytes[100..4096].fill(0xa5),
        expect!["<directory>/journal.db is damaged: database disk image is malformed"],
    )
    .await;
    check_open(
        |bytes| *bytes = b"a text, and no database at all".repeat(9),
        expect!["<directory>/journal.db is damaged: file is not a database"],
    )
    .await;
}

#[tokio::test]
async fn newer_database() {
    check_open(
        |bytes| bytes[60..64].copy_from_slice(&11u32.to_be_bytes()),
        expect!["<directory>/journal.db has format 11, and this program knows formats up to 10"],
    )
    .await;
}

/// What a newer program leaves when it is killed: the database as it was, and the
/// newer format in the log.
#[tokio::test]
async fn newer_database_in_the_log_alone() {
    let directory = tempfile::tempdir().unwrap();
    let other = open(directory.path()).await;
    append(&other, "s", 0, vec![said("x")]).await.unwrap();
    execute(directory.path(), "PRAGMA user_version = 11").await;
    let copy = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        std::fs::copy(directory.path().join(name), copy.path().join(name)).unwrap();
    }
    for directory in [directory.path(), copy.path()] {
        let before = without_index(directory);
        let error =
            Database::open(directory, &address(directory), Settings::default()).await.unwrap_err();
        assert!(matches!(error, Error::Newer { found: 11, known: 10, .. }), "{error:?}");
        assert_same(&without_index(directory), &before);
    }
}

/// What is said of a database after this was done to it, which is left as it is.
async fn refused_after(sql: &str) -> Error {
    let directory = tempfile::tempdir().unwrap();
    store_of_six(directory.path()).await;
    execute(directory.path(), sql).await;
    let before = contents(directory.path());
    let error = Database::open(directory.path(), &address(directory.path()), Settings::default())
        .await
        .unwrap_err();
    assert_unchanged(directory.path(), &before);
    error
}

#[tokio::test]
async fn newer_by_its_own_table() {
    let error = refused_after("UPDATE meta SET value = '11'").await;
    assert!(matches!(error, Error::Newer { found: 11, known: 10, .. }), "{error:?}");
}

#[tokio::test]
async fn older_than_any_release() {
    let older = "UPDATE meta SET value = '5'; PRAGMA user_version = 5";
    let error = refused_after(older).await.to_string();
    let what = "journal.db has format 5, and this program knows formats from 7 on";
    assert!(error.ends_with(what), "{error}");
}

/// A database of an older format gets what it lacks, and has all that it had.
#[tokio::test]
async fn older_and_brought_up() {
    let directory = tempfile::tempdir().unwrap();
    store_of_six(directory.path()).await;
    let older = "DROP TABLE secrets; DROP TABLE keys; DROP TABLE driven; UPDATE meta SET value = '7'; PRAGMA user_version = 7";
    execute(directory.path(), older).await;
    let store = open(directory.path()).await;
    outrigger_store::conformance::secrets(&store).await;
    outrigger_store::conformance::keys(&store).await;
    store.close().await;
    let store = open(directory.path()).await;
    assert_eq!(store.verify(&session("s")).await.unwrap().head, Seq(6));
}

/// A session that is damaged does not stand in the way of the ones that are
/// committed together with it.
#[tokio::test]
async fn a_damaged_session_harms_no_other() {
    let directory = tempfile::tempdir().unwrap();
    store_of_six(directory.path()).await;
    execute(directory.path(), "UPDATE sessions SET head_link = 'zz'").await;
    let store = open(directory.path()).await;
    let names: Vec<String> = (0..40).map(|n| format!("other-{n}")).collect();
    let others = futures_util::future::join_all(
        names.iter().map(|name| append(&store, name, 0, vec![said("x")])),
    );
    let (damaged, others) =
        futures_util::future::join(append(&store, "s", 6, vec![said("x")]), others).await;
    assert!(matches!(damaged, Err(Error::Damaged { .. })), "{damaged:?}");
    for other in others {
        assert_eq!(other.unwrap(), Seq(1));
    }
}

#[tokio::test]
async fn a_log_without_its_database() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("journal.db-wal"), b"something").unwrap();
    let error = Database::open(directory.path(), &address(directory.path()), Settings::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
    assert_eq!(contents(directory.path()).len(), 1);
}

/// Both loading and verifying find it, and both say the same.
async fn check_session(spoil: impl AsyncFnOnce(&Path), expected: Expect) {
    let directory = tempfile::tempdir().unwrap();
    store_of_six(directory.path()).await;
    spoil(directory.path()).await;
    let store = open(directory.path()).await;
    let error = store.verify(&session("s")).await.unwrap_err();
    expected.assert_eq(&explain(&error));
    let loaded = store.load(&session("s"), Seq(0)).await.unwrap_err();
    assert_eq!(explain(&loaded), explain(&error));
}

async fn check_sql(statements: &str, expected: Expect) {
    check_session(async |directory| execute(directory, statements).await, expected).await;
}

#[tokio::test]
async fn rows() {
    let edit = "UPDATE events SET payload = replace(payload, 'text 1', 'text 9') WHERE seq = 2";
    check_sql(edit, expect!["event 2 of session s is damaged: its content or its place was changed: the hash does not fit"]).await;
    check_sql("UPDATE events SET at_ms = 1001 WHERE seq = 3", expect!["event 3 of session s is damaged: its content or its place was changed: the hash does not fit"]).await;
    check_sql("UPDATE events SET format = 0 WHERE seq = 3", expect!["event 3 of session s is damaged: its content or its place was changed: the hash does not fit"]).await;
    check_sql(
        "DELETE FROM events WHERE seq = 1",
        expect!["event 1 of session s is damaged: it is missing"],
    )
    .await;
    check_sql(
        "DELETE FROM events WHERE seq = 5",
        expect!["event 5 of session s is damaged: it is missing"],
    )
    .await;
    check_sql(
        "DELETE FROM events WHERE seq = 6",
        expect!["event 6 of session s is damaged: it is missing"],
    )
    .await;
    let swap = "UPDATE events SET seq = 100 WHERE seq = 2; \
        UPDATE events SET seq = 2 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 100";
    check_sql(swap, expect!["event 2 of session s is damaged: its content or its place was changed: the hash does not fit"]).await;
    check_sql("UPDATE events SET payload = NULL, blob = link WHERE seq = 2", expect!["event 2 of session s is damaged: its text is missing: blob 2c07710477d4fcd4f243f7154d814dfdf78c072a0d25e630118048336d67452a"]).await;
    check_sql(
        "UPDATE events SET link = 'zz' WHERE seq = 2",
        expect!["event 2 of session s is damaged: its content or its place was changed: the hash does not fit"],
    )
    .await;
    let head = "UPDATE sessions SET head_link = (SELECT link FROM events WHERE seq = 5)";
    check_sql(
        head,
        expect!["event 6 of session s is damaged: it is not the event that was last appended"],
    )
    .await;
    check_sql(
        "UPDATE events SET format = 11 WHERE seq = 4",
        expect!["event 4 of session s has format 11, and this program knows formats up to 10"],
    )
    .await;
}

#[tokio::test]
async fn an_event_behind_the_head() {
    let directory = tempfile::tempdir().unwrap();
    store_of_six(directory.path()).await;
    let copy = "INSERT INTO events SELECT session, 7, at_ms, format, payload, blob, link \
        FROM events WHERE seq = 6";
    execute(directory.path(), copy).await;
    let store = open(directory.path()).await;
    let error = store.verify(&session("s")).await.unwrap_err();
    expect!["event 7 of session s is damaged: its content or its place was changed: the hash does not fit"].assert_eq(&explain(&error));
    let refused = append(&store, "s", 6, vec![said("x")]).await.unwrap_err();
    expect!["the journal's database is damaged: its table of sessions has a session that has more events than it says"].assert_eq(&explain(&refused));
}

#[tokio::test]
async fn a_flipped_byte_on_disk() {
    let flip = async |directory: &Path| {
        change(&directory.join("journal.db"), |bytes| {
            let text = b"event text 4";
            let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
            bytes[at] ^= 1;
        });
    };
    check_session(flip, expect!["event 5 of session s is damaged: its content or its place was changed: the hash does not fit"]).await;
}

#[tokio::test]
async fn blobs() {
    let only = |directory: &Path| {
        let blobs = contents(&directory.join("blobs"));
        blobs.into_iter().find(|(_, content)| !content.is_empty()).unwrap().0
    };
    let flip = async |directory: &Path| change(&only(directory), |bytes| bytes[500] ^= 1);
    check_session(flip, expect!["event 4 of session s is damaged: its text is: blob 9b373c5175763803aefa3b83adc2f7b4c57aff932cb8b4dc1cb958a229a77aab is damaged: its content is not that of its name"]).await;
    let remove = async |directory: &Path| std::fs::remove_file(only(directory)).unwrap();
    check_session(remove, expect!["event 4 of session s is damaged: its text is missing: blob 9b373c5175763803aefa3b83adc2f7b4c57aff932cb8b4dc1cb958a229a77aab"]).await;
}

#[tokio::test]
async fn a_damaged_snapshot_is_none() {
    for (statement, expected) in [
        (
            "UPDATE snapshots SET state = 'x'",
            expect![[r#"Damaged { what: "its content does not fit its seal" }"#]],
        ),
        (
            "UPDATE snapshots SET seq = 4",
            expect![[r#"Damaged { what: "its content does not fit its seal" }"#]],
        ),
        (
            "UPDATE snapshots SET seq = 9",
            expect![[r#"Damaged { what: "the event that it follows is missing" }"#]],
        ),
        ("UPDATE snapshots SET version = 2", expect!["OtherVersion { found: 2 }"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        store_of_six(directory.path()).await;
        execute(directory.path(), statement).await;
        let store = open(directory.path()).await;
        let found: CachedSnapshot = store.snapshot(&session("s"), 1).await.unwrap();
        expected.assert_eq(&format!("{found:?}"));
        store.verify(&session("s")).await.unwrap();
    }
}
