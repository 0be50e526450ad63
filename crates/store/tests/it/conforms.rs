//! Both homes pass the conformance suites, and agree on every hash.

use outrigger_agent::{Digest, Seq};
use outrigger_store::{Blobs, Database, Error, Journal, Memory, Retry, conformance, limits};

use crate::support::{Home, append, contents, execute, open, said, session};

#[tokio::test]
async fn memory() {
    let memory = Memory::default();
    conformance::journal(&memory).await;
    conformance::accounts(&memory, &memory).await;
    conformance::secrets(&memory).await;
    conformance::keys(&memory).await;
    conformance::blobs(&memory).await;
}

on_both!(a_database);

async fn a_database(directory: Home) {
    let store = open(directory.path()).await;
    every_suite(&store).await;
    store.close().await;
}

/// All that a store has to do, which leaves something in each of its tables.
pub(crate) async fn every_suite(store: &Database) {
    conformance::journal(store).await;
    conformance::accounts(store, store).await;
    conformance::secrets(store).await;
    conformance::keys(store).await;
    conformance::blobs(store.blobs()).await;
    conformance::entries(store, store).await;
}

on_both!(a_database_on_many_threads, threads);

async fn a_database_on_many_threads(directory: Home) {
    let store = open(directory.path()).await;
    conformance::journal(&store).await;
    conformance::accounts(&store, &store).await;
    conformance::entries(&store, &store).await;
    store.close().await;
}

on_both!(both_homes_agree_on_the_chain);

async fn both_homes_agree_on_the_chain(directory: Home) {
    let store = open(directory.path()).await;
    let memory = Memory::default();
    let homes: [&dyn Journal; 2] = [&store, &memory];
    let mut links = Vec::new();
    for home in homes {
        append(home, "s", 0, vec![said("1"), said("x".repeat(100_000))]).await.unwrap();
        append(home, "s", 2, vec![said("3")]).await.unwrap();
        links.push(home.verify(&session("s")).await.unwrap());
    }
    assert_eq!(links[0], links[1]);
}

#[tokio::test]
async fn a_store_opened_again_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    for after in 0..3 {
        let store = open(directory.path()).await;
        append(&store, "s", after, vec![said("x".repeat(70_000))]).await.unwrap();
        store.close().await;
        let closed = append(&store, "s", after + 1, vec![said("late")]).await;
        assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
        let names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !["blobs", "audit", "entries.changes"].contains(&name.as_str()))
            .collect();
        assert_eq!(names, ["journal.db"], "closing leaves the database in a single file");
    }
    let store = open(directory.path()).await;
    assert_eq!(store.verify(&session("s")).await.unwrap().head, Seq(3));
}

#[tokio::test]
async fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("state/store");
    let store = open(&directory).await;
    append(&store, "s", 0, vec![said("x".repeat(70_000))]).await.unwrap();
    let mut count = 0;
    for path in contents(parent.path()).into_keys() {
        let metadata = std::fs::metadata(&path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o777, expected, "{}", path.display());
        count += 1;
    }
    assert!(count >= 7, "the log and the blob are among them");
}

#[tokio::test]
async fn a_reader_that_fails_leaves_no_blob() {
    struct Failing(u32);
    impl std::io::Read for Failing {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 3 {
                return Err(std::io::Error::other("the pipe broke"));
            }
            into.fill(7);
            Ok(into.len())
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    let before = contents(directory.path());
    let stored = store.blobs().put_from(Box::new(Failing(0))).await;
    assert!(matches!(stored, Err(Error::Io { .. })), "{stored:?}");
    let after = contents(directory.path());
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_damaged_blob_is_told_and_mended() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    let digest = store.blobs().put(b"content".to_vec()).await.unwrap();
    let name = digest.as_str();
    let path = directory.path().join("blobs").join(&name[..2]).join(name);
    std::fs::write(&path, b"Content").unwrap();
    let got = store.blobs().get(&digest).await;
    assert!(matches!(got, Err(Error::Damaged { .. })), "{got:?}");
    let mut reader = store.blobs().open(&digest).await.unwrap();
    let read = std::io::Read::read_to_end(&mut reader, &mut Vec::new());
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    store.blobs().put(b"content".to_vec()).await.unwrap();
    assert_eq!(store.blobs().get(&digest).await.unwrap(), b"content");
}

#[tokio::test]
async fn pieces_of_a_write_that_failed_are_no_part_of_the_next() {
    let home = Home::postgres().await;
    let store = open(home.path()).await;
    let digest = Digest::of(b"content");
    let left = format!(
        "INSERT INTO blob_pieces VALUES ('{digest}', 0, 'Content'), ('{digest}', 1, 'more')"
    );
    execute(home.path(), &left).await;
    assert_eq!(store.blobs().put(b"content".to_vec()).await.unwrap(), digest);
    // Only the database has it.
    let name = digest.as_str();
    std::fs::remove_file(home.path().join("blobs").join(&name[..2]).join(name)).unwrap();
    assert_eq!(store.blobs().get(&digest).await.unwrap(), b"content");
}

#[tokio::test]
async fn a_digest_is_no_path() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    for name in ["../journal.db", "", "a", "/etc/hostname", &"A".repeat(64), &"\u{e9}".repeat(32)] {
        let digest: Digest = serde_json::from_value(name.into()).unwrap();
        let got = store.blobs().get(&digest).await;
        assert!(matches!(got, Err(Error::Damaged { .. })), "{name}: {got:?}");
    }
}

#[tokio::test]
async fn old_leftovers_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).await.close().await;
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(48 * 60 * 60);
    let file = |name: &str| {
        let path = directory.path().join(name);
        let file = std::fs::File::create(&path).unwrap();
        (path, file)
    };
    let old = ["journal.db.new-1-0", "journal.db.new-1-0-journal", "blobs/new-1-0"].map(file);
    let fresh = ["journal.db.new-1-1", "blobs/new-1-1"].map(file);
    let foreign = ["notes.txt", "blobs/notes.txt"].map(file);
    for (_, file) in old.iter().chain(&foreign) {
        file.set_modified(long_ago).unwrap();
    }
    open(directory.path()).await.close().await;
    assert!(old.iter().all(|(path, _)| !path.exists()));
    assert!(fresh.iter().chain(&foreign).all(|(path, _)| path.exists()));
}

on_both!(a_reader_follows_another_writer);

/// What another process appended is seen, by its head and by its events.
async fn a_reader_follows_another_writer(directory: Home) {
    let (writer, reader) = (open(directory.path()).await, open(directory.path()).await);
    for after in 0..5 {
        assert_eq!(reader.head(&session("s")).await.unwrap(), Seq(after));
        append(&writer, "s", after, vec![said(format!("{after}"))]).await.unwrap();
        let page = reader.load(&session("s"), Seq(after)).await.unwrap();
        assert_eq!(page.records.len(), 1);
        assert_eq!(page.records[0].event, said(format!("{after}")));
    }
}

/// Connections that end are made anew: of those that read at the next question but one, and the
/// writer's at the next append but one. Nothing is stored twice.
#[tokio::test]
async fn a_database_that_went_away_comes_back() {
    let directory = Home::postgres().await;
    let store = open(directory.path()).await;
    append(&store, "s", 0, vec![said("1")]).await.unwrap();
    store.load(&session("s"), Seq(0)).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    execute(directory.path(), end).await;
    let lost = append(&store, "s", 1, vec![said("2")]).await.unwrap_err();
    assert_eq!(lost.retry(), Retry::Later, "{lost:?}");
    append(&store, "s", 1, vec![said("2")]).await.unwrap();
    // Each of those that are kept is found out once.
    let mut read = store.load(&session("s"), Seq(0)).await;
    for _ in 0..limits::READERS {
        read = store.load(&session("s"), Seq(0)).await;
    }
    assert_eq!(read.unwrap().records.len(), 2);
    assert_eq!(store.verify(&session("s")).await.unwrap().head, Seq(2));
}
