//! A disk that is used up and a database that others hold: the error says so,
//! nothing is half stored, and it goes on when the reason is gone.

use outrigger_agent::Seq;
use outrigger_store::{Database, Error, Journal, Responsibility, Retry, Settings};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use crate::support::{address, append, open, said, session};

#[tokio::test]
async fn a_full_database() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { database_bytes_max: Some(300_000), ..Settings::default() };
    let store =
        Database::open(directory.path(), &address(directory.path()), settings).await.unwrap();
    let mut head = 0;
    let error = loop {
        match append(&store, "s", head, vec![said("x".repeat(10_000)), said("y")]).await {
            Ok(seq) => head = seq.0,
            Err(error) => break error,
        }
        assert!(head < 200, "the limit holds at last");
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error:?}");
    assert_eq!((error.fault(), error.retry()), (Responsibility::Operator, Retry::Later));
    assert!(head > 10, "there was space before");
    assert_eq!(store.head(&session("s")).await.unwrap(), Seq(head));
    assert_eq!(store.verify(&session("s")).await.unwrap().head, Seq(head));
    // Small ones may still fit, and the writer lives.
    let again = append(&store, "s", head, vec![said("x".repeat(50_000))]).await;
    assert!(matches!(again, Err(Error::NoSpace { .. })), "{again:?}");
    store.close().await;

    let store = open(directory.path()).await;
    append(&store, "s", head, vec![said("x".repeat(50_000))]).await.unwrap();
    assert_eq!(store.verify(&session("s")).await.unwrap().head, Seq(head + 1));
}

/// A real write that fails: a child whose files may not grow. The signal that
/// the kernel sends for it is ignored, as a disk that is full sends none.
#[tokio::test]
async fn a_write_that_fails() {
    let directory = tempfile::tempdir().unwrap();
    let child = crate::child::command(directory.path(), "c", 100_000);
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""])
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let text = String::from_utf8(limited.stdout).unwrap();
    assert!(!limited.status.success());
    let acknowledged = crate::child::acknowledged(&text);
    assert!(!acknowledged.is_empty(), "{text}");
    let printed = String::from_utf8(limited.stderr).unwrap();
    assert!(
        printed.contains("an append failed: Io") || text.contains("an append failed: Io"),
        "the error is typed: {printed}{text}"
    );

    let store = open(directory.path()).await;
    let head = store.verify(&session("shared")).await.unwrap().head;
    assert_eq!(head, Seq(acknowledged.len() as u64), "a failed append stored nothing");
    append(&store, "shared", head.0, vec![said("it goes on")]).await.unwrap();
}

#[tokio::test]
async fn a_database_that_another_process_holds() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { busy_wait_ms: 20, ..Settings::default() };
    let store =
        Database::open(directory.path(), &address(directory.path()), settings).await.unwrap();
    let options = SqliteConnectOptions::new().filename(directory.path().join("journal.db"));
    let mut other = options.connect().await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let refused = append(&store, "s", 0, vec![said("x")]).await.unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused:?}");
    assert_eq!(refused.retry(), Retry::Later);
    assert_eq!(store.head(&session("s")).await.unwrap(), Seq(0), "reading goes on");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert_eq!(append(&store, "s", 0, vec![said("x")]).await.unwrap(), Seq(1));
}
