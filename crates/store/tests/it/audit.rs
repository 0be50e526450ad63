//! Stores that were changed from outside: the audit names what, offline.

use std::path::Path;
use std::sync::Arc;

use expect_test::{Expect, expect};
use outrigger_agent::Seq;
use outrigger_audit::{self as audit, ExternalCheckpoint, Report};
use outrigger_store::{Audit, AuditRequest, Cover, Database, Journal, SessionSummary, Settings};

use crate::damage::change;
use crate::support::{Home, address, append, contents, execute, open, said, session};

/// Appends so many events, which a checkpoint covers at once.
pub(crate) async fn turn(store: &Database, name: &str, after: u64, count: u64) {
    let events: Vec<_> = (after..after + count).map(|n| said(format!("{name} says {n}"))).collect();
    let summary = SessionSummary { cover: Cover::Now, ..SessionSummary::default() };
    store.append(&session(name), Seq(after), 1_000, &events, summary).await.unwrap();
}

/// A closed store: entries of the log are 0 a3, 1 b2, 2 a6, 3 b4, 4 c1 and 5 d5,
/// which has a blob.
pub(crate) async fn store(directory: &Path) {
    let store = open(directory).await;
    for (name, after, count) in [("a", 0, 3), ("b", 0, 2), ("a", 3, 3), ("b", 2, 2), ("c", 0, 1)] {
        turn(&store, name, after, count).await;
    }
    append(&store, "d", 0, (0..4).map(|n| said(format!("d {n}"))).collect()).await.unwrap();
    append(&store, "d", 4, vec![said("x".repeat(70_000))]).await.unwrap();
    store.close().await;
}

async fn verify(directory: &Path, asked: &AuditRequest) -> Report {
    let before = contents(directory);
    let audit = Audit::open(directory, &address(directory)).await.unwrap();
    let report = audit.verify(asked, &Arc::default()).await.unwrap();
    assert_eq!(contents(directory), before, "the audit changed something");
    report
}

fn text(report: &Report) -> String {
    report.faults.iter().map(|fault| format!("{fault}\n")).collect()
}

async fn check(spoil: impl AsyncFnOnce(&Path), expected: Expect) {
    let directory = tempfile::tempdir().unwrap();
    store(directory.path()).await;
    spoil(directory.path()).await;
    expected.assert_eq(&text(&verify(directory.path(), &AuditRequest::default()).await));
}

async fn check_sql(statements: &str, expected: Expect) {
    check(async |directory| execute(directory, statements).await, expected).await;
}

on_both!(an_honest_store_is_clean);

async fn an_honest_store_is_clean(directory: Home) {
    store(directory.path()).await;
    let report = verify(directory.path(), &AuditRequest::default()).await;
    assert_eq!(text(&report), "");
    let Report { sessions, events, uncovered, entries, .. } = report;
    assert_eq!((sessions, events, uncovered, entries), (4, 16, 0, 6));
    assert!(report.checkpoint.unwrap().contains("\n6\n"));
}

#[tokio::test]
async fn rows_of_events() {
    let edit = "UPDATE events SET payload = replace(payload, 'says 1', 'says 9') \
        WHERE session = 'a' AND seq = 2";
    check_sql(edit, expect![[r#"
        event 2 of session a: its content or its place was changed: the hash does not fit; or event 1 was changed together with its own hash
    "#]]).await;
    check_sql(
        "UPDATE events SET at_ms = 1 WHERE session = 'a' AND seq = 4",
        expect![[r#"
        event 4 of session a: its content or its place was changed: the hash does not fit
    "#]],
    )
    .await;
    check_sql(
        "UPDATE events SET link = '00' WHERE session = 'a' AND seq = 4",
        expect![[r#"
        event 4 of session a: its content or its place was changed: the hash does not fit
    "#]],
    )
    .await;
    check_sql(
        "UPDATE events SET at_ms = -1 WHERE session = 'b' AND seq = 1",
        expect![[r#"
        event 1 of session b: it has a number that none was given
    "#]],
    )
    .await;
    check_sql("UPDATE events SET at_ms = 'x' WHERE session = 'b' AND seq = 1", expect![[r#"
        event 1 of session b: its row is none: error occurred while decoding column 1: mismatched types; Rust type `i64` (as SQL type `INTEGER`) is not compatible with SQL type `TEXT`
    "#]]).await;
    for seq in [1, 3, 4] {
        let delete = format!("DELETE FROM events WHERE session = 'b' AND seq = {seq}");
        let expected = format!(
            "event {seq} of session b: it is missing{}\n",
            if seq == 4 { ": the log has the session up to event 4" } else { "" }
        );
        let found = async |directory: &Path| execute(directory, &delete).await;
        let directory = tempfile::tempdir().unwrap();
        store(directory.path()).await;
        found(directory.path()).await;
        assert_eq!(text(&verify(directory.path(), &AuditRequest::default()).await), expected);
    }
    let swap = "UPDATE events SET seq = 100 WHERE session = 'a' AND seq = 5; \
        UPDATE events SET seq = 5 WHERE session = 'a' AND seq = 6; \
        UPDATE events SET seq = 6 WHERE session = 'a' AND seq = 100";
    check_sql(swap, expect![[r#"
        event 5 of session a: its content or its place was changed: the hash does not fit; or event 4 was changed together with its own hash
    "#]]).await;
    let exchange = "UPDATE events SET session = 'x' WHERE session = 'a' AND seq = 2; \
        UPDATE events SET session = 'a' WHERE session = 'b' AND seq = 2; \
        UPDATE events SET session = 'b' WHERE session = 'x'";
    check_sql(exchange, expect![[r#"
        event 2 of session a: its content or its place was changed: the hash does not fit; or event 1 was changed together with its own hash
        event 2 of session b: its content or its place was changed: the hash does not fit; or event 1 was changed together with its own hash
    "#]]).await;
    let insert = "INSERT INTO events SELECT session, 5, at_ms, format, payload, blob, link \
        FROM events WHERE session = 'b' AND seq = 4";
    check_sql(
        insert,
        expect![[r#"
        event 5 of session b: its content or its place was changed: the hash does not fit
    "#]],
    )
    .await;
    let put_in = "UPDATE events SET seq = seq + 100 WHERE session = 'a' AND seq > 2; \
        UPDATE events SET seq = seq - 99 WHERE session = 'a' AND seq > 100; \
        INSERT INTO events SELECT session, 3, at_ms, format, payload, blob, link \
        FROM events WHERE session = 'a' AND seq = 2";
    check_sql(put_in, expect![[r#"
        event 3 of session a: its content or its place was changed: the hash does not fit; or event 2 was changed together with its own hash
    "#]]).await;
}

#[tokio::test]
async fn blobs() {
    let only = |directory: &Path| {
        let blobs = contents(&directory.join("blobs"));
        blobs.into_iter().find(|(_, content)| !content.is_empty()).unwrap().0
    };
    check(async |d: &Path| change(&only(d), |bytes| bytes[9] ^= 1), expect![[r#"
        event 5 of session d: its text can't be read: blob 9b373c5175763803aefa3b83adc2f7b4c57aff932cb8b4dc1cb958a229a77aab is damaged: its content is not that of its name
    "#]]).await;
    check(async |d: &Path| std::fs::remove_file(only(d)).unwrap(), expect![[r#"
        event 5 of session d: its text is missing: blob 9b373c5175763803aefa3b83adc2f7b4c57aff932cb8b4dc1cb958a229a77aab
    "#]]).await;
    check_sql("UPDATE events SET blob = link WHERE blob IS NOT NULL", expect![[r#"
        event 5 of session d: its text is missing: blob 25fd44e41f5be0a89112d19e4fc12ba66eb64fe5fd2d4b4c696cb4696775aa25
    "#]]).await;
}

#[tokio::test]
async fn rows_of_sessions() {
    check_sql(
        "UPDATE sessions SET head_seq = 5 WHERE session = 'a'",
        expect![[r#"
        event 6 of session a: it was never appended, or its session's row was put back
    "#]],
    )
    .await;
    check_sql(
        "UPDATE sessions SET head_seq = 7 WHERE session = 'a'",
        expect![[r#"
        event 7 of session a: it is missing: its session's row tells of it
    "#]],
    )
    .await;
    check_sql(
        "UPDATE sessions SET head_link = '00' WHERE session = 'a'",
        expect![[r#"
        event 6 of session a: it is not the event that was last appended
    "#]],
    )
    .await;
    check_sql(
        "DELETE FROM sessions WHERE session = 'a'",
        expect![[r#"
        event 6 of session a: its session is missing in the table of sessions
    "#]],
    )
    .await;
}

const WITHOUT_B: &str =
    "DELETE FROM events WHERE session = 'b'; DELETE FROM sessions WHERE session = 'b';";

#[tokio::test]
async fn whole_sessions() {
    check_sql(WITHOUT_B, expect![[r#"
        event 1 of session b: it is missing: the whole session is gone, and the log has it up to event 4
    "#]]).await;
    let and_log = format!("{WITHOUT_B} DELETE FROM log WHERE session = 'b'");
    check_sql(&and_log, expect![[r#"
        entry 1 of the log: it is missing
        audit/checkpoint (a checkpoint of 6 entries): the log ends after 1 of them: it was cut, or an older database was put in place
        the checkpoint of 2 entries: the log ends after 1 of them
        entry 1 of the log (session b, event 2): only its copy in audit/log is left: the database has 4 entries of 6
        event 1 of session b: it is missing: the whole session is gone, and the log has it up to event 4
    "#]]).await;
    let closed_up = format!(
        "{and_log}; UPDATE log SET entry = 1 WHERE entry = 2; UPDATE log SET entry = 2 \
         WHERE entry = 4; UPDATE log SET entry = 3 WHERE entry = 5; \
         DELETE FROM checkpoints WHERE size > 4"
    );
    check_sql(&closed_up, expect![[r#"
        audit/checkpoint (a checkpoint of 6 entries): the log ends after 4 of them: it was cut, or an older database was put in place
        the checkpoint of 2 entries: the log does not fit it: of the entries 1 to 1 at least one was changed, removed or put in
        entry 1 of the log (session b, event 2): it is another one than its copy in audit/log
        event 1 of session b: it is missing: the whole session is gone, and the log has it up to event 4
    "#]]).await;
    check_sql("UPDATE events SET session = 'e' WHERE session = 'c'; UPDATE sessions SET session = 'e' WHERE session = 'c'", expect![[r#"
        event 1 of session c: it is missing: the whole session is gone, and the log has it up to event 1
        event 1 of session e: its content or its place was changed: the hash does not fit
    "#]]).await;
}

#[tokio::test]
async fn the_log() {
    check_sql("UPDATE log SET seq = 2 WHERE entry = 0", expect![[r#"
        audit/checkpoint (a checkpoint of 6 entries): the log is no continuation of it: an entry that it covers is another one now
        the checkpoint of 1 entries: the log does not fit it: of the entries 0 to 0 at least one was changed, removed or put in
        entry 0 of the log (session a, event 3): it is another one than its copy in audit/log
    "#]]).await;
    check_sql("UPDATE log SET session = 'c' WHERE entry = 0", expect![[r#"
        audit/checkpoint (a checkpoint of 6 entries): the log is no continuation of it: an entry that it covers is another one now
        the checkpoint of 1 entries: the log does not fit it: of the entries 0 to 0 at least one was changed, removed or put in
        entry 0 of the log (session a, event 3): it is another one than its copy in audit/log
    "#]]).await;
    check_sql("UPDATE log SET link = replace(link, 'a', 'b') WHERE entry = 2", expect![[r#"
        audit/checkpoint (a checkpoint of 6 entries): the log is no continuation of it: an entry that it covers is another one now
        the checkpoint of 3 entries: the log does not fit it: of the entries 2 to 2 at least one was changed, removed or put in
        entry 2 of the log (session a, event 6): it is another one than its copy in audit/log
    "#]]).await;
    check_sql("DELETE FROM log WHERE entry = 2", expect![[r#"
        entry 2 of the log: it is missing
        audit/checkpoint (a checkpoint of 6 entries): the log ends after 2 of them: it was cut, or an older database was put in place
        the checkpoint of 3 entries: the log ends after 2 of them
        entry 2 of the log (session a, event 6): only its copy in audit/log is left: the database has 5 entries of 6
    "#]]).await;
    check_sql("DELETE FROM log WHERE entry = 5", expect![[r#"
        audit/checkpoint (a checkpoint of 6 entries): the log ends after 5 of them: it was cut, or an older database was put in place
        the checkpoint of 6 entries: the log ends after 5 of them
        entry 5 of the log (session d, event 5): only its copy in audit/log is left: the database has 5 entries of 6
    "#]]).await;
    check_sql(
        "INSERT INTO log SELECT 6, session, seq, link FROM log WHERE entry = 5",
        expect![[r#"
        entry 6 of the log (session d, event 5): no checkpoint covers it
    "#]],
    )
    .await;
    check_sql("DELETE FROM log; DELETE FROM checkpoints", expect![[r#"
        audit/checkpoint (a checkpoint of 6 entries): the log ends after 0 of them: it was cut, or an older database was put in place
        entry 0 of the log (session a, event 3): only its copy in audit/log is left: the database has 0 entries of 6
    "#]]).await;
}

#[tokio::test]
async fn checkpoints() {
    let edit = "UPDATE checkpoints SET note = replace(note, char(10) || '3' || char(10), \
        char(10) || '2' || char(10)) WHERE size = 3";
    check_sql(
        edit,
        expect![[r#"
        the checkpoint of 3 entries: it is not signed with the key of this log
    "#]],
    )
    .await;
    let swap = "UPDATE checkpoints SET size = 100 WHERE size = 2; \
        UPDATE checkpoints SET size = 2 WHERE size = 3";
    check_sql(
        swap,
        expect![[r#"
        the checkpoint of 2 entries: it is of another size
        the checkpoint of 100 entries: it is of another size
    "#]],
    )
    .await;
    check_sql(
        "UPDATE checkpoints SET edge = replace(edge, 'a', 'b') WHERE size = 6",
        expect![[r#"
        the checkpoint of 6 entries: what is kept to go on from it does not fit it
    "#]],
    )
    .await;
    check_sql(
        "UPDATE checkpoints SET note = note || '— x AAAAAAAA' || char(10) WHERE size = 6",
        expect![[r#"
        the checkpoint of 6 entries: it is no signed note
    "#]],
    )
    .await;
    check_sql(
        "DELETE FROM checkpoints WHERE size = 6",
        expect![[r#"
        entry 5 of the log (session d, event 5): no checkpoint covers it
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_beside_the_database() {
    let log = |directory: &Path| directory.join("audit/log");
    let edit = async |d: &Path| {
        let text = std::fs::read_to_string(log(d)).unwrap();
        std::fs::write(log(d), text.replace("1 b 2", "1 b 1")).unwrap();
    };
    check(edit, expect![[r#"
        entry 1 of the log (session b, event 1): its copy in audit/log was changed; the database has what was signed
    "#]]).await;
    check(
        async |d: &Path| std::fs::write(log(d), "0 a\n").unwrap(),
        expect![[r#"
        audit/log: line 1 is no entry of the log
    "#]],
    )
    .await;
    check(
        async |d: &Path| std::fs::remove_file(d.join("audit/key.pub")).unwrap(),
        expect![[r#"
        audit/key.pub: it is missing, so no signature can be checked
    "#]],
    )
    .await;
    let other_key = async |d: &Path| {
        let other = tempfile::tempdir().unwrap();
        store(other.path()).await;
        std::fs::copy(other.path().join("audit/key.pub"), d.join("audit/key.pub")).unwrap();
    };
    check(
        other_key,
        expect![[r#"
        audit/checkpoint: it is not signed with the key of this log
        the checkpoint of 1 entries: it is not signed with the key of this log
        the checkpoint of 2 entries: it is not signed with the key of this log
        the checkpoint of 3 entries: it is not signed with the key of this log
        the checkpoint of 4 entries: it is not signed with the key of this log
        the checkpoint of 5 entries: it is not signed with the key of this log
        the checkpoint of 6 entries: it is not signed with the key of this log
    "#]],
    )
    .await;
}

/// Whoever may write the directory can remove what stands beside the database.
#[tokio::test]
async fn what_is_missing_beside_the_database() {
    let log = |directory: &Path| directory.join("audit/log");
    check(
        async |d: &Path| std::fs::remove_file(log(d)).unwrap(),
        expect![[r#"
        audit/log: it is missing or empty, and the database has 6 entries
    "#]],
    )
    .await;
    check(
        async |d: &Path| std::fs::remove_file(d.join("audit/checkpoint")).unwrap(),
        expect![[r#"
        audit/checkpoint: it is missing, and the log has one of 5 entries and newer
    "#]],
    )
    .await;
    // A copy lags behind by as many checkpoints as there were crashes, and by no more.
    let cut = async |d: &Path| {
        let opened = open(d).await;
        for after in 6..12 {
            turn(&opened, "a", after, 1).await;
        }
        opened.close().await;
        let text = std::fs::read_to_string(log(d)).unwrap();
        let kept: String = text.split_inclusive('\n').take(3).collect();
        std::fs::write(log(d), kept).unwrap();
    };
    check(
        cut,
        expect![[r#"
        audit/log: its end was cut off: it has 3 entries of 12
    "#]],
    )
    .await;
}

/// What answers in place of a table, or changes what is written, is named, and neither
/// audited nor opened.
#[tokio::test]
async fn views_and_triggers_are_not_ours() {
    let view = "ALTER TABLE log RENAME TO hidden; \
        CREATE VIEW log AS SELECT * FROM hidden WHERE entry < 5";
    let trigger = "CREATE TRIGGER forget AFTER INSERT ON log BEGIN \
        DELETE FROM log WHERE entry = NEW.entry; END";
    for (statements, named) in [(view, "the view \"log\""), (trigger, "the trigger \"forget\"")] {
        let directory = tempfile::tempdir().unwrap();
        store(directory.path()).await;
        execute(directory.path(), statements).await;
        let refused = Audit::open(directory.path(), &address(directory.path()))
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(named), "{refused}");
        let refused =
            Database::open(directory.path(), &address(directory.path()), Settings::default())
                .await
                .unwrap_err()
                .to_string();
        assert!(refused.contains(named), "{refused}");
    }
}

/// A copy of a whole store as it is on disk.
fn save(directory: &Path, names: &[&str]) -> tempfile::TempDir {
    let saved = tempfile::tempdir().unwrap();
    std::fs::create_dir(saved.path().join("audit")).unwrap();
    for name in names {
        std::fs::copy(directory.join(name), saved.path().join(name)).unwrap();
    }
    saved
}

#[tokio::test]
async fn an_older_database() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    store(directory).await;
    let all = ["journal.db", "audit/log", "audit/checkpoint"];
    let old = save(directory, &all);
    let opened = open(directory).await;
    turn(&opened, "a", 6, 2).await;
    turn(&opened, "e", 0, 2).await;
    opened.close().await;
    let kept = std::fs::read_to_string(directory.join("audit/checkpoint")).unwrap();
    std::fs::copy(old.path().join("journal.db"), directory.join("journal.db")).unwrap();
    let report = verify(directory, &AuditRequest::default()).await;
    expect![[r#"
        audit/checkpoint (a checkpoint of 8 entries): the log ends after 6 of them: it was cut, or an older database was put in place
        entry 6 of the log (session a, event 8): only its copy in audit/log is left: the database has 6 entries of 8
        event 7 of session a: it is missing: the log has the session up to event 8
        event 1 of session e: it is missing: the whole session is gone, and the log has it up to event 2
    "#]].assert_eq(&text(&report));

    // A log that was put back is never signed a second time.
    let opened = open(directory).await;
    turn(&opened, "a", 6, 1).await;
    let refused = opened.checkpoint().await.unwrap_err();
    expect![
        "the audit log is damaged: its copy has more entries: an older database was put in place"
    ]
    .assert_eq(&refused.to_string());
    opened.close().await;

    // Where everything was put back, only a checkpoint that somebody kept tells.
    for name in all {
        std::fs::copy(old.path().join(name), directory.join(name)).unwrap();
    }
    assert_eq!(text(&verify(directory, &AuditRequest::default()).await), "");
    let outside = ExternalCheckpoint { name: "friday".to_owned(), note: kept };
    let asked = AuditRequest { against: vec![outside], ..AuditRequest::default() };
    expect![[r#"
        friday (a checkpoint of 8 entries): the log ends after 6 of them: it was cut, or an older database was put in place
    "#]].assert_eq(&text(&verify(directory, &asked).await));
}

#[tokio::test]
async fn a_log_that_was_written_anew() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    store(directory).await;
    let note = std::fs::read_to_string(directory.join("audit/checkpoint")).unwrap();
    let key = audit::verifying_key(directory).unwrap();
    for name in ["journal.db", "audit/log", "audit/checkpoint"] {
        std::fs::remove_file(directory.join(name)).unwrap();
    }
    // Whoever holds the key can do that; the kept checkpoint gives it away.
    let opened = open(directory).await;
    for n in 0..7 {
        turn(&opened, "a", n, 1).await;
    }
    opened.close().await;
    assert_eq!(text(&verify(directory, &AuditRequest::default()).await), "");
    let against = vec![ExternalCheckpoint { name: "friday".to_owned(), note }];
    let asked = AuditRequest { against: against.clone(), key, ..AuditRequest::default() };
    expect![[r#"
        friday (a checkpoint of 6 entries): the log is no continuation of it: an entry that it covers is another one now
    "#]].assert_eq(&text(&verify(directory, &asked).await));
    let other = tempfile::tempdir().unwrap();
    store(other.path()).await;
    let key = audit::verifying_key(other.path()).unwrap();
    let report = verify(directory, &AuditRequest { key, ..AuditRequest::default() }).await;
    assert!(report.faults.iter().all(|fault| fault.what.contains("not signed")), "{report:?}");
    assert_eq!(report.faults.len(), 8);
}

/// A chain that was computed anew behind a change is found by the log alone.
#[tokio::test]
async fn a_chain_that_was_linked_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("1"), directory.path().join("2"));
    for (directory, texts) in [(&first, "one"), (&second, "two")] {
        std::fs::create_dir(directory).unwrap();
        let opened = open(directory).await;
        let said = |n: u64| said(if n == 4 { texts.to_owned() } else { n.to_string() });
        for (after, count) in [(0, 3), (3, 4)] {
            let events: Vec<_> = (after..after + count).map(said).collect();
            let summary = SessionSummary { cover: Cover::Now, ..SessionSummary::default() };
            opened.append(&session("a"), Seq(after), 1_000, &events, summary).await.unwrap();
        }
        opened.close().await;
    }
    let forge = format!(
        "ATTACH '{}' AS other; DELETE FROM main.events; DELETE FROM main.sessions; \
         INSERT INTO main.events SELECT * FROM other.events; \
         INSERT INTO main.sessions SELECT * FROM other.sessions",
        second.join("journal.db").display()
    );
    execute(&first, &forge).await;
    expect![[r#"
        event 4 of session a: it or one of the next up to event 7 was changed together with all hashes after it: the log has another one for event 7
    "#]].assert_eq(&text(&verify(&first, &AuditRequest::default()).await));
}

#[tokio::test]
async fn the_key_is_the_owners() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    store(directory).await;
    let key = directory.join("audit/key");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&key), mode(&directory.join("audit"))), (0o600, 0o700));
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let opened = open(directory).await;
    // What was done is kept all the same, and the checkpoint says what is wrong.
    turn(&opened, "a", 6, 1).await;
    let refused = opened.checkpoint().await.unwrap_err().to_string();
    assert!(refused.contains("its mode must be 600"), "{refused}");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    opened.checkpoint().await.unwrap();
    opened.close().await;
    let report = verify(directory, &AuditRequest::default()).await;
    assert_eq!((text(&report).as_str(), report.uncovered), ("", 0));
}

on_both!(the_copy_catches_up);

/// What a crash right after a commit leaves: a copy that lags behind, and half a line.
async fn the_copy_catches_up(directory: Home) {
    let directory = directory.path();
    store(directory).await;
    let path = directory.join("audit/log");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(text(&verify(directory, &AuditRequest::default()).await), "");
    std::fs::remove_file(directory.join("audit/checkpoint")).unwrap();
    let opened = open(directory).await;
    turn(&opened, "a", 6, 1).await;
    opened.close().await;
    let caught_up = std::fs::read_to_string(&path).unwrap();
    assert!(caught_up.starts_with(&whole) && caught_up.lines().count() == 7, "{caught_up}");
    assert!(directory.join("audit/checkpoint").exists());
    assert_eq!(text(&verify(directory, &AuditRequest::default()).await), "");
}

#[tokio::test]
async fn a_lost_key_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    store(directory).await;
    std::fs::remove_file(directory.join("audit/key")).unwrap();
    let opened = open(directory).await;
    turn(&opened, "a", 6, 1).await;
    let refused = opened.checkpoint().await.unwrap_err().to_string();
    assert!(refused.ends_with("it is missing, and its public half is there"), "{refused}");
    opened.close().await;
    // What was signed before still counts.
    let report = verify(directory, &AuditRequest::default()).await;
    assert_eq!((text(&report).as_str(), report.uncovered), ("", 1));
}

on_both!(what_others_left_is_covered);

/// What another process left without an entry is covered by whoever asks.
async fn what_others_left_is_covered(directory: Home) {
    let directory = directory.path();
    let left = open(directory).await;
    append(&left, "a", 0, vec![said("x"), said("y")]).await.unwrap();
    drop(left);
    let opened = open(directory).await;
    let note = opened.checkpoint().await.unwrap();
    assert_eq!(note, opened.checkpoint().await.unwrap(), "there is nothing new to cover");
    opened.close().await;
    let report = verify(directory, &AuditRequest::default()).await;
    assert_eq!((report.uncovered, report.entries, report.checkpoint), (0, 1, Some(note)));
}

on_both!(an_audit_beside_a_writer);

/// Whoever writes and whoever checks do not disturb each other.
async fn an_audit_beside_a_writer(directory: Home) {
    let directory = directory.path();
    store(directory).await;
    let opened = open(directory).await;
    let writing = async {
        for after in 6..60 {
            turn(&opened, "a", after, 1).await;
            append(&opened, "b", after - 2, vec![said("x")]).await.unwrap();
        }
    };
    let checking = async {
        let mut reports = Vec::new();
        for _ in 0..12 {
            let audit = Audit::open(directory, &address(directory)).await.unwrap();
            reports.push(audit.verify(&AuditRequest::default(), &Arc::default()).await.unwrap());
        }
        reports
    };
    let ((), reports) = futures_util::future::join(writing, checking).await;
    for report in reports {
        assert_eq!(text(&report), "");
    }
    opened.close().await;
    let report = verify(directory, &AuditRequest::default()).await;
    assert_eq!((text(&report).as_str(), report.events, report.uncovered), ("", 124, 0));
}

/// A copy of a store that is not in use.
fn duplicate(directory: &Path, with: &[&str]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for (path, content) in contents(directory) {
        let name = path.strip_prefix(directory).unwrap();
        if !with.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        if path.is_dir() {
            std::fs::create_dir(copy.path().join(name)).unwrap();
        } else {
            std::fs::write(copy.path().join(name), content).unwrap();
        }
    }
    copy
}

/// Whatever is done to whichever row, the first one that is wrong is named.
#[tokio::test]
async fn every_single_row() {
    let directory = tempfile::tempdir().unwrap();
    store(directory.path()).await;
    for (name, events) in [("a", 6), ("b", 4), ("c", 1), ("d", 5)] {
        for seq in 1..=events {
            let row = format!("WHERE session = '{name}' AND seq = {seq}");
            let mut spoils = vec![
                format!("DELETE FROM events {row}"),
                format!("UPDATE events SET at_ms = at_ms + 1 {row}"),
                format!("UPDATE events SET format = format + 1 {row}"),
                format!("UPDATE events SET link = '{}' {row}", "0".repeat(64)),
                format!("UPDATE events SET session = 'other' {row}"),
                format!("UPDATE events SET payload = '{{}}', blob = NULL {row}"),
                format!("UPDATE events SET payload = NULL, blob = link {row}"),
                // Put in before it, with everything behind it moved on.
                format!(
                    "UPDATE events SET seq = -seq WHERE session = '{name}' AND seq >= {seq}; \
                     UPDATE events SET seq = 1 - seq WHERE session = '{name}' AND seq < 0; \
                     INSERT INTO events VALUES ('{name}', {seq}, 1000, 2, '{{}}', NULL, '{}')",
                    "0".repeat(64)
                ),
            ];
            if seq < events {
                let next = seq + 1;
                spoils.push(format!(
                    "UPDATE events SET seq = -1 {row}; UPDATE events SET seq = {seq} \
                     WHERE session = '{name}' AND seq = {next}; UPDATE events SET seq = {next} \
                     WHERE session = '{name}' AND seq = -1"
                ));
            }
            for spoil in spoils {
                let copy = duplicate(directory.path(), &["journal.db", "audit", "blobs"]);
                execute(copy.path(), &spoil).await;
                let audit = Audit::open(copy.path(), &address(copy.path())).await.unwrap();
                let report = audit.verify(&AuditRequest::default(), &Arc::default()).await.unwrap();
                let place = audit::Location::Event { session: session(name), seq: Seq(seq) };
                let named = report.faults.iter().any(|fault| fault.place == place);
                assert!(named, "{name} {seq}: {spoil}:\n{}", text(&report));
            }
        }
    }
}

/// Wherever a crash cuts the write-ahead log off, events, entries and checkpoints of
/// what is left fit each other.
#[tokio::test]
async fn a_crash_in_the_middle() {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4_096;
    let directory = tempfile::tempdir().unwrap();
    store(directory.path()).await;
    let beside = ["audit/log", "audit/checkpoint"].map(|name| {
        let content = std::fs::read(directory.path().join(name)).unwrap();
        (name, content)
    });
    let opened = open(directory.path()).await;
    for after in 6..12 {
        turn(&opened, "a", after, 1).await;
    }
    let wal = std::fs::read(directory.path().join("journal.db-wal")).unwrap();
    let frames = (wal.len() - HEADER) / FRAME;
    assert!(frames > 12, "{frames}");
    let mut seen = std::collections::BTreeSet::new();
    // With the copy from before: it is written when the commit is on disk, never before it.
    for cut in (0..=frames).flat_map(|frame| [frame * FRAME, frame * FRAME + 1_000]) {
        let copy = duplicate(
            directory.path(),
            &["journal.db", "journal.db-wal", "journal.db-shm", "audit", "blobs"],
        );
        std::fs::remove_file(copy.path().join("journal.db-shm")).unwrap();
        for (name, content) in &beside {
            std::fs::write(copy.path().join(name), content).unwrap();
        }
        let cut = (HEADER + cut).min(wal.len());
        std::fs::write(copy.path().join("journal.db-wal"), &wal[..cut]).unwrap();
        let audit = Audit::open(copy.path(), &address(copy.path())).await.unwrap();
        let report = audit.verify(&AuditRequest::default(), &Arc::default()).await.unwrap();
        assert_eq!((text(&report).as_str(), report.uncovered), ("", 0));
        seen.insert((report.events, report.entries));
    }
    let expected = (0..=6).map(|turns| (16 + turns, 6 + turns));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    opened.close().await;
}
