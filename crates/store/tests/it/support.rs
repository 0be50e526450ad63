//! What several tests need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_agent::{Author, Event, Message, Seq, SessionId};
use outrigger_store::{Database, DatabaseAddress, Error, Journal, SessionSummary, Settings};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn said(text: impl Into<String>) -> Event {
    let author = Author::Person("person:test".to_owned());
    Event::Said(Arc::new(Message::new(author, text.into())))
}

/// Where the tests are told of a server: `cargo xtask postgres COMMAND` starts one.
const SERVER: &str = "OUTRIGGER_TEST_POSTGRES";
/// In the directory of a store that is on PostgreSQL: the address of its database.
const ADDRESS: &str = "address";

/// The directory of a store, and a database for it of either kind.
#[derive(Debug)]
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn sqlite() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With a database of its own at the server that the environment names.
    pub(crate) async fn postgres() -> Self {
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} is not set: run this with `cargo xtask postgres`")
        });
        let directory = tempfile::Builder::new().prefix("store").tempdir().unwrap();
        let name = directory.path().file_name().unwrap().to_str().unwrap();
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let text = format!("CREATE DATABASE \"{name}\"");
        sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut connection).await.unwrap();
        let address = server.replacen("/postgres?", &format!("/{name}?"), 1);
        std::fs::write(directory.path().join(ADDRESS), address).unwrap();
        Self(directory)
    }

    /// Another one of the same kind.
    pub(crate) async fn another(&self) -> Self {
        match address(self.path()) {
            DatabaseAddress::Sqlite => Self::sqlite(),
            DatabaseAddress::Postgres(_) => Self::postgres().await,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

fn address_text(directory: &Path) -> Option<String> {
    std::fs::read_to_string(directory.join(ADDRESS)).ok()
}

/// Which database the store of a directory is in.
pub(crate) fn address(directory: &Path) -> DatabaseAddress {
    let address = address_text(directory).map(|text| text.parse().unwrap());
    address.map_or(DatabaseAddress::Sqlite, DatabaseAddress::Postgres)
}

/// A test of a store on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($name:ident) => {
        on_both!($name, #[tokio::test]);
    };
    ($name:ident, threads) => {
        on_both!($name, #[tokio::test(flavor = "multi_thread", worker_threads = 4)]);
    };
    ($name:ident, #[$test:meta]) => {
        mod $name {
            use crate::support::Home;

            #[$test]
            async fn sqlite() {
                super::$name(Home::sqlite()).await;
            }

            #[$test]
            async fn postgres() {
                super::$name(Home::postgres().await).await;
            }
        }
    };
}
pub(crate) async fn open(directory: &Path) -> Database {
    Database::open(directory, &address(directory), Settings::default()).await.unwrap()
}

/// Changes the database of a store from outside.
pub(crate) async fn execute(directory: &Path, statements: &str) {
    match address_text(directory) {
        Some(address) => {
            let mut connection = PgConnection::connect(&address).await.unwrap();
            let text = sqlx::AssertSqlSafe(statements);
            sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        None => {
            let options = SqliteConnectOptions::new().filename(directory.join("journal.db"));
            let mut connection = options.connect().await.unwrap();
            let text = sqlx::AssertSqlSafe(statements);
            sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

/// A number that a statement gives.
pub(crate) async fn count(directory: &Path, query: &'static str) -> i64 {
    let (count,) = match address_text(directory) {
        Some(address) => {
            let mut connection = PgConnection::connect(&address).await.unwrap();
            let text = sqlx::AssertSqlSafe(query.replace("instr(", "strpos("));
            sqlx::query_as(text).fetch_one(&mut connection).await.unwrap()
        }
        None => {
            let options = SqliteConnectOptions::new().filename(directory.join("journal.db"));
            let mut connection = options.connect().await.unwrap();
            sqlx::query_as(query).fetch_one(&mut connection).await.unwrap()
        }
    };
    count
}

/// Texts that a statement gives, one in each row.
pub(crate) async fn texts(directory: &Path, query: &str) -> Vec<String> {
    let query = sqlx::AssertSqlSafe(query);
    let rows: Vec<(String,)> = match address_text(directory) {
        Some(address) => {
            let mut connection = PgConnection::connect(&address).await.unwrap();
            sqlx::query_as(query).fetch_all(&mut connection).await.unwrap()
        }
        None => {
            let options = SqliteConnectOptions::new().filename(directory.join("journal.db"));
            let mut connection = options.connect().await.unwrap();
            let rows = sqlx::query_as(query).fetch_all(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            rows
        }
    };
    rows.into_iter().map(|(text,)| text).collect()
}

pub(crate) async fn append(
    journal: &dyn Journal,
    name: &str,
    after: u64,
    events: Vec<Event>,
) -> Result<Seq, Error> {
    journal.append(&session(name), Seq(after), 1_000, &events, SessionSummary::default()).await
}

/// Every file beneath a directory, with its content.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// An error with its causes, as the edge would print it.
pub(crate) fn explain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
