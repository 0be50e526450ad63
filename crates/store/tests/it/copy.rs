//! Stores of SQLite that are copied into PostgreSQL: all of it or nothing, and it goes on there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use outrigger_policy::Scope;
use outrigger_store::entries::{
    Attribution, Entries, EntryFile, NewProposal, ProposalFilter, Reviews, Search,
};
use outrigger_store::transfer::{CopyError, CopyOutcome, CopyProgress, copy};
use outrigger_store::{
    Accounts, Audit, AuditRequest, Blobs, Database, DatabaseAddress, Error, Journal, KeyKind, Keys,
    Secrets, Settings, StoredKey,
};
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use crate::audit::turn;
use crate::conforms::every_suite;
use crate::entries::{at, member, put};
use crate::support::{Home, address, append, count, execute, open, said, session, texts};

const SOURCE: &str = "OUTRIGGER_STORE_TEST_COPY_FROM";
const DESTINATION: &str = "OUTRIGGER_STORE_TEST_COPY_TO";
/// What the copy makes of its own for PostgreSQL, and does not copy.
const OWN: [&str; 3] = ["meta", "blobs", "blob_pieces"];

/// A store with something in every table.
async fn full(directory: &Path) {
    let store = open(directory).await;
    every_suite(&store).await;
    turn(&store, "covered", 0, 3).await;
    append(&store, "copied", 0, vec![said("x".repeat(3 << 20))]).await.unwrap();
    let digest = outrigger_agent::Digest::of(b"key");
    let (id, person, label) = ("id".to_owned(), "person:ada".to_owned(), String::new());
    let kind = KeyKind::Bearer;
    let key = StoredKey { id, digest, kind, person, label, created_ms: 1, expires_ms: 1 << 50 };
    store.put_key(key).await.unwrap();
    let due = session("covered");
    store.wake(&due).await.unwrap();
    assert!(store.settle(&due, 1, Some(7)).await.unwrap());
    put(&store, &member("ada"), &at("where/it is.md"), "Caf\u{e9} of the harbour").await;
    store.close().await;
}

/// The database of `to` for a store whose directory is `from`.
async fn opened(from: &Path, to: &Path) -> Database {
    Database::open(from, &address(to), Settings::default()).await.unwrap()
}

async fn copied(from: &Path, to: &Path) -> Result<CopyOutcome, CopyError> {
    let (source, destination) = (open(from).await, opened(from, to).await);
    let progress = CopyProgress::default();
    let copied = copy(&source, &destination, &progress).await;
    destination.close().await;
    if copied.is_ok() {
        let ((rows, rows_all), (blobs, blobs_all)) = progress.now();
        assert_eq!((rows, blobs), (rows_all, blobs_all));
    }
    copied
}

async fn is_empty(to: &Path) -> bool {
    let all = "SELECT (SELECT COUNT(*) FROM sessions) + (SELECT COUNT(*) FROM contents) \
        + (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_pieces)";
    count(to, all).await == 0
}

/// Every table and its columns.
async fn columns(directory: &Path) -> BTreeMap<String, Vec<(String, String)>> {
    let query = match address(directory) {
        DatabaseAddress::Sqlite => {
            "SELECT t.name || ' ' || c.name || ' ' || c.type FROM pragma_table_list t \
             JOIN pragma_table_info(t.name) c WHERE t.schema = 'main' AND t.type = 'table' \
             AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid"
        }
        DatabaseAddress::Postgres(_) => {
            "SELECT table_name || ' ' || column_name || ' ' || data_type \
             FROM information_schema.columns WHERE table_schema = 'public' \
             ORDER BY table_name COLLATE \"C\", ordinal_position"
        }
    };
    let mut tables: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for row in texts(directory, query).await {
        let [table, column, kind] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
        tables.entry(table.to_owned()).or_default().push((column.to_owned(), kind.to_owned()));
    }
    tables
}

/// Every row of a table, column by column, as hexadecimal digits.
async fn rows(directory: &Path, table: &str, columns: &[(String, String)]) -> Vec<String> {
    let is_sqlite = address(directory).is_sqlite();
    let value = |(name, kind): &(String, String)| {
        let digits = match (is_sqlite, kind.as_str()) {
            (true, _) => format!("hex(CAST({name} AS BLOB))"),
            (false, "bytea") => format!("upper(encode({name}, 'hex'))"),
            (false, _) => format!("upper(encode(convert_to({name}::text, 'UTF8'), 'hex'))"),
        };
        format!("CASE WHEN {name} IS NULL THEN '-' ELSE {digits} END")
    };
    let values: Vec<_> = columns.iter().map(value).collect();
    let mut all =
        texts(directory, &format!("SELECT {} FROM {table}", values.join(" || ' ' || "))).await;
    all.sort();
    all
}

/// What is in both databases is the same, to the byte, in every table.
async fn same_rows(from: &Path, to: &Path, outcome: &CopyOutcome) {
    let (source, mut destination) = (columns(from).await, columns(to).await);
    // Nothing has a column that nothing fills.
    destination.get_mut("entries").unwrap().retain(|(name, _)| name != "words");
    for (table, columns) in &destination {
        if OWN.contains(&table.as_str()) {
            continue;
        }
        let of = outcome.tables.get(table.as_str());
        let of = of.unwrap_or_else(|| panic!("{table} was not copied"));
        let known = &source[table];
        let names = |columns: &[(String, String)]| -> Vec<String> {
            columns.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(columns), names(known), "{table}");
        let before = rows(from, table, known).await;
        assert!(!before.is_empty(), "the store has nothing in {table}");
        assert_eq!(before.len() as u64, *of, "{table}");
        if table != "driven" {
            assert_eq!(rows(to, table, columns).await, before, "{table}");
        }
    }
}

/// What somebody finds and may look at.
async fn reads(store: &Database, who: &Scope) -> String {
    let all = Search { words: "harbour".to_owned(), memory_scopes: Vec::new(), limit: 100 };
    let words = Search { words: "cafe".to_owned(), ..all.clone() };
    let mut shown = format!("{:?}\n", store.search(who, &all).await.unwrap());
    shown += &format!("{:?}\n", store.search(who, &words).await.unwrap());
    for row in store.sessions(None, 100).await.unwrap() {
        let verified = store.verify(&row.session).await.unwrap();
        let snapshot = store.snapshot(&row.session, 1).await.unwrap();
        shown += &format!("{row:?} {verified:?} {snapshot:?}\n");
        shown += &format!("{:?}\n", store.charged(&row.session).await.unwrap());
    }
    shown += &format!("{:?}\n", store.accounts().await.unwrap());
    shown +=
        &format!("{:?} {:?}\n", store.keys(0).await.unwrap(), store.secrets("a").await.unwrap());
    let due = session("covered");
    shown + &format!("{:?} {}", store.wakes(&due).await.unwrap(), store.due(7).await.unwrap().len())
}

#[tokio::test]
async fn all_of_it_comes_along_and_goes_on() {
    let (from, to) = (Home::sqlite(), Home::postgres().await);
    full(from.path()).await;
    let outcome = copied(from.path(), to.path()).await.unwrap();
    assert!(outcome.report.is_clean(), "{:?}", outcome.report);
    assert!(outcome.report.sessions > 3 && outcome.report.uncovered == 0);
    assert!(outcome.blobs >= 3 && outcome.blob_bytes > 6 << 20 && outcome.row_bytes > 1 << 20);
    same_rows(from.path(), to.path(), &outcome).await;

    // From another directory, so that contents come out of the rows.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("audit")).unwrap();
    for name in ["audit/key", "audit/key.pub"] {
        fs::copy(from.path().join(name), elsewhere.path().join(name)).unwrap();
    }
    let (old, new) = (open(from.path()).await, opened(elsewhere.path(), to.path()).await);
    let ada = member("ada");
    let (before, after) = (reads(&old, &ada).await, reads(&new, &ada).await);
    assert!(before.contains("where/it is.md"), "{before}");
    assert_eq!(before, after);

    // Rows are numbered on, the chain and the log as well.
    put(&new, &ada, &at("where/more.md"), "another").await;
    let (at, file) = (at("where/more.md"), Some(EntryFile::of("proposed")));
    let proposed = NewProposal { at: at.clone(), base: 1, file };
    let proposal = new.propose(&ada, proposed, Attribution::person(1)).await.unwrap();
    new.comment(&ada, proposal, "now".to_owned(), 2).await.unwrap();
    let open = new.proposals(&ada, &at.memory_scope, ProposalFilter::Open, None).await.unwrap();
    assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [proposal]);
    turn(&new, "covered", 3, 2).await;
    new.checkpoint().await.unwrap();
    new.close().await;
    let audit = Audit::open(elsewhere.path(), &address(to.path())).await.unwrap();
    let report = audit.verify(&AuditRequest::default(), &Arc::default()).await.unwrap();
    assert!(report.is_clean() && report.uncovered == 0, "{report:?}");
}

#[tokio::test]
async fn a_session_is_at_home_where_its_sandboxes_are() {
    let (from, to) = (Home::sqlite(), Home::postgres().await);
    let store = open(from.path()).await;
    turn(&store, "waits", 0, 1).await;
    store.close().await;
    copied(from.path(), to.path()).await.unwrap();
    let own = opened(from.path(), to.path()).await;
    // Its process lives as a server once it answers.
    own.serve();
    let lease = own.lease(&session("waits"), outrigger_store::LeasePurpose::Look).await.unwrap();
    drop(lease.expect("it is at home here"));
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("audit")).unwrap();
    for name in ["audit/key", "audit/key.pub"] {
        fs::copy(from.path().join(name), other.path().join(name)).unwrap();
    }
    let other = opened(other.path(), to.path()).await;
    assert!(other.is_elsewhere(&session("waits")).await.unwrap());
}

/// The child's side: copies, until it is killed. Without a source in the environment there is
/// nothing to do.
#[tokio::test]
async fn copies_until_it_is_killed() {
    let Some(from) = std::env::var_os(SOURCE) else { return };
    let to = std::env::var_os(DESTINATION).unwrap();
    copied(from.as_ref(), to.as_ref()).await.unwrap();
}

#[tokio::test]
async fn one_that_is_killed_leaves_nothing_and_is_begun_again() {
    let (from, to) = (Home::sqlite(), Home::postgres().await);
    full(from.path()).await;
    opened(from.path(), to.path()).await.close().await;
    // It stands before the last tables, with everything else written.
    let DatabaseAddress::Postgres(server) = address(to.path()) else { panic!("it is SQLite") };
    let mut holder = PgConnection::connect(server.as_str()).await.unwrap();
    let hold = "BEGIN; LOCK TABLE driven IN SHARE MODE";
    sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "copy::copies_until_it_is_killed", "--test-threads=1"])
        .env(SOURCE, from.path())
        .env(DESTINATION, to.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    const WAITS: &str = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted \
        AND relation = 'driven'::regclass AND database = \
        (SELECT oid FROM pg_database WHERE datname = current_database())";
    while count(to.path(), WAITS).await == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        // poll: the copy comes to the table when it does.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    holder.close().await.unwrap();

    let outcome = copied(from.path(), to.path()).await.unwrap();
    assert!(outcome.report.is_clean(), "{:?}", outcome.report);
    same_rows(from.path(), to.path(), &outcome).await;
    let again = copied(from.path(), to.path()).await;
    assert!(matches!(again, Err(CopyError::Occupied { table: "sessions" })), "{again:?}");
}

#[tokio::test]
async fn one_that_cannot_be_whole_is_refused() {
    let (from, to) = (Home::sqlite(), Home::postgres().await);
    let store = open(from.path()).await;
    turn(&store, "a", 0, 2).await;
    let blob = store.blobs().put(b"content".to_vec()).await.unwrap();
    // Somebody has it open, and may append.
    let open_too = copied(from.path(), to.path()).await;
    assert!(matches!(open_too, Err(CopyError::InUse)), "{open_too:?}");
    store.close().await;

    let name = blob.as_str();
    let path = from.path().join("blobs").join(&name[..2]).join(name);
    fs::write(&path, b"Content").unwrap();
    let damaged = copied(from.path(), to.path()).await;
    assert!(matches!(damaged, Err(CopyError::Store(Error::Damaged { .. }))), "{damaged:?}");
    assert!(is_empty(to.path()).await);
    fs::write(&path, b"content").unwrap();

    for (statement, table) in [
        ("INSERT INTO keys VALUES ('i', 'd', 'bearer', 'person:ada', '', 1, 2)", "keys"),
        ("INSERT INTO blobs VALUES ('d', 1, 1)", "blobs"),
        ("UPDATE usage SET versions = 1", "usage"),
    ] {
        let to = Home::postgres().await;
        opened(from.path(), to.path()).await.close().await;
        execute(to.path(), statement).await;
        match copied(from.path(), to.path()).await {
            Err(CopyError::Occupied { table: found }) => assert_eq!(found, table),
            other => panic!("{other:?}"),
        }
    }
    let outcome = copied(from.path(), to.path()).await.unwrap();
    assert_eq!((outcome.tables["events"], outcome.blobs, outcome.blob_bytes), (2, 1, 7));
}
