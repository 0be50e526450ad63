//! Stores and sessions that go elsewhere in a file: whole, verified, or not at all.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_agent::Seq;
use outrigger_audit::Report;
use outrigger_store::transfer::{self, RestoreOutcome, SigningKey, restore};
use outrigger_store::{Audit, AuditRequest, Database, Error, Journal};

use crate::audit::turn;
use crate::damage::change;
use crate::support::{Home, address, append, execute, open, said, session};

async fn verify(directory: &Path) -> Report {
    let audit = Audit::open(directory, &address(directory)).await.unwrap();
    audit.verify(&AuditRequest::default(), &Arc::default()).await.unwrap()
}

fn file(directory: &Path, name: &str) -> (File, PathBuf) {
    let room = directory.join(format!("{name}.room"));
    std::fs::create_dir(&room).unwrap();
    (File::create(directory.join(name)).unwrap(), room)
}

async fn backup(store: &Database, directory: &Path, key: SigningKey) -> Report {
    let patches = directory.join("patches");
    transfer::backup(store, file(directory, "backup"), &patches, key, 1).await.unwrap()
}

async fn back(directory: &Path) -> Result<(tempfile::TempDir, RestoreOutcome), Error> {
    let into = tempfile::tempdir().unwrap();
    let restored = restore(File::open(directory.join("backup")).unwrap(), into.path()).await?;
    Ok((into, restored))
}

#[tokio::test]
async fn a_backup_is_of_one_moment_while_others_write() {
    let (directory, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path()).await;
    turn(&store, "a", 0, 3).await;
    append(&store, "a", 3, vec![said("x".repeat(70_000))]).await.unwrap();
    std::fs::create_dir(aside.path().join("patches")).unwrap();
    for (name, text) in [("a.patch", "changes"), ("a.tmp", "half of it")] {
        std::fs::write(aside.path().join("patches").join(name), text).unwrap();
    }
    let writing = async {
        for number in 0..300u64 {
            turn(&store, &format!("w{}", number % 7), number / 7, 1).await;
        }
    };
    let ((), report) = tokio::join!(writing, backup(&store, aside.path(), SigningKey::LeftOut));
    assert!(report.is_clean(), "{report:?}");

    let (into, restored) = back(aside.path()).await.unwrap();
    assert!(!restored.has_key && !into.path().join("audit/key").exists());
    assert!(report.sessions >= 1 && restored.report.events == report.events);
    assert_eq!(std::fs::read(into.path().join("patches/a.patch")).unwrap(), b"changes");
    assert!(!into.path().join("patches/a.tmp").exists());
    let copy = open(into.path()).await;
    assert_eq!(copy.head(&session("a")).await.unwrap(), Seq(4));
    assert_eq!(
        copy.verify(&session("a")).await.unwrap(),
        store.verify(&session("a")).await.unwrap()
    );
    // Work goes on, and that nothing is signed is told to who asks.
    append(&copy, "a", 4, vec![said("more")]).await.unwrap();
    assert!(matches!(copy.checkpoint().await, Err(Error::Damaged { .. })));
}

#[tokio::test]
async fn with_the_key_the_log_goes_on() {
    let (directory, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path()).await;
    turn(&store, "a", 0, 3).await;
    backup(&store, aside.path(), SigningKey::Included).await;
    let (into, restored) = back(aside.path()).await.unwrap();
    assert!(restored.has_key);
    let copy = open(into.path()).await;
    turn(&copy, "a", 3, 2).await;
    copy.checkpoint().await.unwrap();
    copy.close().await;
    let report = verify(into.path()).await;
    assert_eq!((report.is_clean(), report.events, report.uncovered), (true, 5, 0));
}

#[tokio::test]
async fn a_backup_that_was_changed_is_refused() {
    let (directory, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path()).await;
    turn(&store, "a", 0, 3).await;
    append(&store, "a", 3, vec![said("x".repeat(70_000))]).await.unwrap();
    backup(&store, aside.path(), SigningKey::LeftOut).await;
    let path = aside.path().join("backup");
    let whole = std::fs::read(&path).unwrap();
    for at in (700..whole.len()).step_by(whole.len() / 23) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        if let Ok((into, _)) = back(aside.path()).await {
            // What stands between files means nothing.
            assert!(verify(into.path()).await.is_clean(), "{at}");
            assert!(whole[at] == 0, "a change of byte {at} was not seen");
        }
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(back(aside.path()).await.is_err(), "cut at {at}");
    }
    std::fs::write(&path, &whole).unwrap();
    back(aside.path()).await.unwrap();
}

/// Names that lead elsewhere, and kinds of files that do.
#[tokio::test]
async fn a_backup_that_leads_elsewhere_is_refused() {
    let aside = tempfile::tempdir().unwrap();
    let about = br#"{"format":1,"made_at_ms":1,"has_key":false}"#;
    for (name, kind) in [
        ("../escaped", tar::EntryType::Regular),
        ("/tmp/escaped", tar::EntryType::Regular),
        ("patches/../../escaped", tar::EntryType::Regular),
        ("patches/a/b.patch", tar::EntryType::Regular),
        ("audit/other", tar::EntryType::Regular),
        ("blobs/00", tar::EntryType::Regular),
        ("journal.db", tar::EntryType::Symlink),
        ("audit", tar::EntryType::Directory),
    ] {
        let mut builder = tar::Builder::new(File::create(aside.path().join("backup")).unwrap());
        for (name, kind, content) in [
            ("outrigger-backup", tar::EntryType::Regular, &about[..]),
            (name, kind, b"".as_slice()),
        ] {
            let mut header = tar::Header::new_ustar();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(kind);
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content).unwrap();
        }
        builder.into_inner().unwrap();
        let refused = back(aside.path()).await.map(|(_, restored)| restored).unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{name}: {refused:?}");
    }
    assert!(!aside.path().join("escaped").exists());
}

/// A session with a long text and a blob that an event names, and one below it.
async fn exported(directory: &Path, aside: &Path) -> Database {
    let store = open(directory).await;
    let blob = outrigger_store::Blobs::put(store.blobs(), b"files".to_vec()).await.unwrap();
    turn(&store, "a", 0, 2).await;
    let texts = vec![said("x".repeat(70_000)), said(format!("see {blob}"))];
    append(&store, "a", 2, texts).await.unwrap();
    turn(&store, "a-1", 0, 2).await;
    let names = [session("a"), session("a-1")];
    assert_eq!(transfer::export(&store, &names, file(aside, "file")).await.unwrap(), 6);
    store
}

async fn take(store: &Database, aside: &Path) -> Result<usize, Error> {
    let room = tempfile::tempdir().unwrap();
    let file = File::open(aside.join("file")).unwrap();
    transfer::import(store, file, room.path()).await.map(|names| names.len())
}

on_both!(sessions_go_elsewhere_and_come_back);

async fn sessions_go_elsewhere_and_come_back(directory: Home) {
    let aside = tempfile::tempdir().unwrap();
    let store = exported(directory.path(), aside.path()).await;
    let there = directory.another().await;
    let other = open(there.path()).await;
    assert_eq!(take(&other, aside.path()).await.unwrap(), 2);
    for name in ["a", "a-1"] {
        let (ours, theirs) =
            (store.verify(&session(name)).await, other.verify(&session(name)).await);
        assert_eq!(ours.unwrap(), theirs.unwrap());
    }
    let blob = outrigger_agent::Digest::of(b"files");
    assert_eq!(outrigger_store::Blobs::get(other.blobs(), &blob).await.unwrap(), b"files");
    let again = take(&other, aside.path()).await.unwrap_err();
    assert!(matches!(again, Error::Conflict { found: Seq(4), .. }), "{again:?}");
    turn(&other, "a", 4, 1).await;
    other.close().await;
    let report = verify(there.path()).await;
    assert_eq!((report.is_clean(), report.uncovered), (true, 0), "{report:?}");

    // Removed here and taken in again: and who removes it by hand then is reported.
    for (name, head) in [("a-1", 2), ("a", 4)] {
        store.remove(&session(name), Seq(head)).await.unwrap();
    }
    take(&store, aside.path()).await.unwrap();
    store.close().await;
    let report = verify(directory.path()).await;
    assert_eq!((report.is_clean(), report.removed, report.sessions), (true, 0, 2));
    let by_hand =
        "DELETE FROM events WHERE session = 'a'; DELETE FROM sessions WHERE session = 'a'";
    execute(directory.path(), by_hand).await;
    let faults = verify(directory.path()).await.faults;
    assert_eq!(faults.len(), 1);
    assert!(faults[0].what.contains("the whole session is gone"), "{faults:?}");
}

#[tokio::test]
async fn a_session_that_does_not_verify_is_refused_whole() {
    let (directory, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    exported(directory.path(), aside.path()).await.close().await;
    let path = aside.path().join("file");
    let whole = std::fs::read(&path).unwrap();
    let there = tempfile::tempdir().unwrap();
    let other = open(there.path()).await;
    for at in (600..whole.len()).step_by(whole.len() / 19) {
        if whole[at] == 0 {
            continue;
        }
        change(&path, |bytes| bytes[at] ^= 1);
        assert!(take(&other, aside.path()).await.is_err(), "a change of byte {at} was not seen");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(take(&other, aside.path()).await.is_err(), "cut at {at}");
        std::fs::write(&path, &whole).unwrap();
    }
    assert_eq!(other.sessions(None, 9).await.unwrap(), []);
    take(&other, aside.path()).await.unwrap();
}

/// An archive whose sums are right, and whose content was changed before they were made.
fn made_up(path: &Path, change: impl Fn(&str, String) -> String) {
    use std::io::Read;
    let mut files = Vec::new();
    let mut archive = tar::Archive::new(File::open(path).unwrap());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.push((name.clone(), change(&name, text)));
    }
    let last = files.iter_mut().last().unwrap();
    last.1 = String::new();
    let sum = |text: &str| outrigger_agent::Digest::of(text.as_bytes());
    let sums = files.iter().rev().skip(1).rev();
    let sums: String = sums.map(|(name, text)| format!("{}  {name}\n", sum(text))).collect();
    files.last_mut().unwrap().1 = sums;
    let mut builder = tar::Builder::new(File::create(path).unwrap());
    for (name, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap();
}

#[tokio::test]
async fn right_sums_do_not_make_a_session_right() {
    let (directory, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    exported(directory.path(), aside.path()).await.close().await;
    let path = aside.path().join("file");
    let whole = std::fs::read(&path).unwrap();
    let there = tempfile::tempdir().unwrap();
    let other = open(there.path()).await;
    let event = |name: &str| name == "events/a-1";
    type Change = fn(String) -> String;
    let changes: [(&str, Change); 6] = [
        ("events/a-1", |text| text.replace("says 0", "says 9")),
        ("events/a-1", |text| text.lines().skip(1).map(|line| format!("{line}\n")).collect()),
        ("events/a-1", |text| text.lines().take(1).map(|line| format!("{line}\n")).collect()),
        ("events/a-1", |text| text.replace("\"at_ms\":1000", "\"at_ms\":2000")),
        ("outrigger-sessions", |text| text.replace("\"a-1\"", "\"b\"")),
        ("outrigger-sessions", |text| text.replace("\"format\":1", "\"format\":2")),
    ];
    for (number, (of, change)) in changes.into_iter().enumerate() {
        made_up(&path, |name, text| if name == of { change(text) } else { text });
        let refused = take(&other, aside.path()).await.unwrap_err();
        let newer = number == 5 && matches!(refused, Error::Newer { .. });
        assert!(newer || matches!(refused, Error::Damaged { .. }), "{number}: {refused:?}");
        std::fs::write(&path, &whole).unwrap();
    }
    // One that is left out takes those before it along.
    made_up(&path, |name, text| if event(name) { String::new() } else { text });
    assert!(take(&other, aside.path()).await.is_err());
    assert_eq!(other.sessions(None, 9).await.unwrap(), []);
    std::fs::write(&path, &whole).unwrap();
    made_up(&path, |_, text| text);
    assert_eq!(take(&other, aside.path()).await.unwrap(), 2);
}
