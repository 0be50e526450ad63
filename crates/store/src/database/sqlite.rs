//! Looks at a database before it is opened for writing, and makes a new one.
//!
//! Must never change a byte or a name where the file is not ours, damaged or newer: it is
//! looked at through a connection that makes no files. Where there is a write-ahead log, only
//! SQLite can say what is in it, and may leave its index (`-shm`) beside the log.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_audit::files::{create_new, sync_directory};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::settings::Settings;
use crate::files::{make_private, remove_leftovers};
use crate::sql::connection::DatabaseConnection;
use crate::sql::fault;
use crate::sql::schema::{self, FORMAT, known_format};
use crate::{Error, limits};

/// Name of the database in its directory.
pub(super) const DATABASE: &str = "journal.db";
/// What the names of unfinished new databases begin with.
const TEMPORARY: &str = "journal.db.new-";
/// `Outr`, in the header's field for the kind of application.
const APPLICATION: u32 = 0x4f75_7472;
pub(super) const PAGE_BYTES: u32 = 4_096;

/// Makes the database if there is none; else checks that it is ours and of a known format.
pub(super) async fn prepare(directory: &Path) -> Result<PathBuf, Error> {
    let path = directory.join(DATABASE);
    if look(&path)? == DatabaseState::Nothing {
        make_private(directory).map_err(|e| Error::io("making the store's directory", e))?;
        create(directory, &path).await?;
    }
    let seen = look(&path)?;
    if let Err(error) = look_inside(&path, seen).await
        // If another process began or ended to write meanwhile, what was seen means nothing.
        && look(&path)? == seen
    {
        return Err(error);
    }
    remove_leftovers(directory, TEMPORARY);
    Ok(path)
}

/// What stands where the database should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseState {
    Nothing,
    /// A database of ours, with everything in its one file.
    Whole,
    /// A database of ours whose newest pages are in its log: in use, or left by a crash.
    Logged,
}

/// Looks at names and sizes; an error where a part of a database is missing.
pub(super) fn look(path: &Path) -> Result<DatabaseState, Error> {
    let damaged = |what: &str| Err(Error::damaged(path.display().to_string(), what));
    let logged = || fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let logged_before = logged();
    match fs::metadata(path) {
        Ok(found) if found.len() == 0 => damaged("it is empty"),
        // Asked again, because another process may have begun to write in the meantime.
        Ok(_) => {
            Ok(if logged_before || logged() { DatabaseState::Logged } else { DatabaseState::Whole })
        }
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("opening the database", e)),
        Err(_) if logged_before => damaged("it is missing, but its write-ahead log is there"),
        Err(_) => Ok(DatabaseState::Nothing),
    }
}

/// Whether any process has it open: the last one that had left it as a single file.
pub(super) fn is_open(path: &Path) -> bool {
    beside(path, "-shm").exists()
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes a whole database under another name and then gives it its own, so that
/// nobody ever sees a part of one. If another process was faster, its one stays.
async fn create(directory: &Path, path: &Path) -> Result<(), Error> {
    let doing = "making a new database";
    let (temporary, file) = create_new(directory, TEMPORARY).map_err(|e| Error::io(doing, e))?;
    drop(file);
    let made = fill(&temporary).await;
    let linked = made.and_then(|()| match fs::hard_link(&temporary, path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(Error::io(doing, e)),
        _ => Ok(()),
    });
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(beside(&temporary, suffix));
    }
    linked?;
    sync_directory(directory).map_err(|e| Error::io(doing, e))
}

async fn fill(path: &Path) -> Result<(), Error> {
    let wrong = |e| fault::of("making a new database", e);
    let options = options(path)
        .page_size(PAGE_BYTES)
        .journal_mode(SqliteJournalMode::Memory)
        .synchronous(SqliteSynchronous::Off)
        .pragma("application_id", APPLICATION.to_string());
    let mut connection = options.connect().await.map_err(wrong)?;
    schema::migrate(&mut connection, 0).await?;
    // The write-ahead log comes last, so that the file's own header tells the format.
    let logged = sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut connection).await;
    logged.map_err(wrong)?;
    connection.close().await.map_err(wrong)?;
    // Nobody knows the file yet: one sync at the end makes all of it durable.
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|e| Error::io("making a new database", e))
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(Duration::from_millis(limits::BUSY_WAIT_MS))
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("trusted_schema", "OFF")
        .pragma("cell_size_check", "ON")
        // What a statement may have to take back, and what is sorted, would else be put into a
        // file of a folder that SQLite chooses, in which a confined process can't make one.
        .pragma("temp_store", "MEMORY")
        .thread_name(|id| format!("journal-sql-{id}"))
        .disable_statement_logging()
}

/// The connection that writes. There is one.
pub(super) async fn writing(path: &Path, settings: Settings) -> Result<DatabaseConnection, Error> {
    let mut options = options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_millis(settings.busy_wait_ms))
        // What is redacted is overwritten, wherever in the file it was.
        .pragma("secure_delete", "ON")
        .pragma("wal_autocheckpoint", limits::WAL_PAGES.to_string())
        .pragma("journal_size_limit", limits::WAL_KEPT_BYTES_MAX.to_string());
    if let Some(bytes) = settings.database_bytes_max {
        options = options.pragma("max_page_count", (bytes / u64::from(PAGE_BYTES)).to_string());
    }
    let mut connection =
        options.connect().await.map_err(|e| fault::of("opening the database", e))?;
    let ready = match check(path, &mut connection).await {
        Ok(format) if format < FORMAT => schema::migrate(&mut connection, format).await,
        other => other.map(drop),
    };
    match ready {
        Ok(()) => Ok(DatabaseConnection::Sqlite(connection)),
        Err(error) => {
            // Waits until what it made beside the database is gone again.
            let _ = connection.close().await;
            Err(error)
        }
    }
}

/// A connection that reads.
pub(super) async fn reading(path: &Path) -> Result<DatabaseConnection, Error> {
    let options = options(path).read_only(true).pragma("query_only", "ON");
    let opened = options.connect().await.map(DatabaseConnection::Sqlite);
    opened.map_err(|e| fault::of("opening the database", e))
}

/// A connection that copies the database elsewhere. It reads no row ahead: some are large.
pub(super) async fn copying(path: &Path) -> Result<DatabaseConnection, Error> {
    let opened = options(path).row_buffer_size(1).connect().await.map(DatabaseConnection::Sqlite);
    opened.map_err(|e| fault::of("opening the database", e))
}

/// A connection that audits: one that makes no files where that is possible.
pub(super) async fn auditing(
    path: &Path,
    seen: DatabaseState,
) -> Result<DatabaseConnection, Error> {
    let cache = format!("-{}", limits::AUDIT_CACHE_KIB);
    let options = options(path).read_only(true).pragma("query_only", "ON");
    let options = options.pragma("cache_size", cache).immutable(seen == DatabaseState::Whole);
    let opened = options.connect().await.map(DatabaseConnection::Sqlite);
    opened.map_err(|e| fault::of("opening the database", e))
}

/// Looks into a database through a connection that makes no files and takes no locks, which
/// sees all of it while there is no log; else also through one that only reads, because one
/// that writes folds the log into the file when it is closed.
pub(super) async fn look_inside(path: &Path, seen: DatabaseState) -> Result<(), Error> {
    if seen == DatabaseState::Nothing {
        return Ok(());
    }
    let apart = options(path).read_only(true).immutable(true).connect().await;
    if seen == DatabaseState::Whole {
        return look_through(path, apart).await;
    }
    let place = || path.display().to_string();
    let identity = match apart {
        Ok(mut connection) => {
            let identity = Identity::read(&mut connection).await;
            close(connection).await;
            identity
        }
        Err(error) => Err(error),
    };
    match identity {
        Ok(identity) => identity.check(&place())?,
        // A page in the log may stand for the first one, but whose file it is does not change.
        Err(error) if fault::is_no_database(&error) => {
            return Err(Error::damaged(place(), "it is no SQLite database"));
        }
        // Without its log a file may be half of something: only what it says of itself counts.
        Err(_) => {}
    }
    look_through(path, options(path).read_only(true).connect().await).await
}

async fn look_through(
    path: &Path,
    connected: Result<SqliteConnection, sqlx::Error>,
) -> Result<(), Error> {
    let looked = match connected {
        Ok(mut connection) => {
            let checked = check(path, &mut connection).await;
            close(connection).await;
            checked.map(drop)
        }
        Err(error) => Err(fault::of("opening the database", error)),
    };
    looked.map_err(|error| match error {
        Error::Damaged { place, what } if place == fault::DATABASE => {
            Error::damaged(path.display().to_string(), what)
        }
        error => error,
    })
}

/// Closes a connection.
async fn close(connection: SqliteConnection) {
    // It only read, so there is nothing left to fail.
    let _ = connection.close().await;
}

/// What a database says of itself.
struct Identity {
    application: i64,
    format: i64,
    page_bytes: i64,
}

impl Identity {
    async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        const TEXT: &str = "SELECT application_id, user_version, page_size \
            FROM pragma_application_id, pragma_user_version, pragma_page_size";
        let (application, format, page_bytes) = sqlx::query_as(TEXT).fetch_one(connection).await?;
        Ok(Self { application, format, page_bytes })
    }

    fn check(&self, place: &str) -> Result<(), Error> {
        if self.application != i64::from(APPLICATION) {
            return Err(Error::damaged(place, "it is an SQLite database of another program"));
        }
        known_format(place, self.format.try_into().unwrap_or(0))?;
        if self.page_bytes != i64::from(PAGE_BYTES) {
            return Err(Error::damaged(place, "its page size is not one that we write"));
        }
        Ok(())
    }
}

/// Checks whose it is, and both notes of the format, which it gives.
async fn check(path: &Path, connection: &mut SqliteConnection) -> Result<u32, Error> {
    let wrong = |e| fault::of("reading the database's format", e);
    let place = path.display().to_string();
    let identity = Identity::read(connection).await.map_err(wrong)?;
    identity.check(&place)?;
    // We make no trigger and one view: another one stands in place of a table, or changes
    // what is written.
    const FOREIGN: &str = "SELECT type, name FROM sqlite_schema WHERE type = 'trigger' \
        OR (type = 'view' AND name <> 'searched') ORDER BY name LIMIT 1";
    let foreign: Option<(String, String)> =
        sqlx::query_as(FOREIGN).fetch_optional(&mut *connection).await.map_err(wrong)?;
    if let Some((kind, name)) = foreign {
        return Err(Error::damaged(
            place,
            format!("it has the {kind} {name:?}, which is not ours"),
        ));
    }
    let row: Option<(String,)> = sqlx::query_as("SELECT value FROM meta WHERE name = 'format'")
        .fetch_optional(&mut *connection)
        .await
        .map_err(wrong)?;
    let table = row.and_then(|(text,)| text.parse().ok()).unwrap_or(0);
    known_format(&place, table)?;
    if i64::try_from(table) != Ok(identity.format) {
        return Err(Error::damaged(place, "its header and its table tell different formats"));
    }
    Ok(u32::try_from(table).unwrap_or(FORMAT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[tokio::test]
    async fn the_writer_is_durable_and_trusts_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = prepare(directory.path()).await.unwrap();
        let mut connection = writing(&path, Settings::default()).await.unwrap();
        let mut text = String::new();
        let pragmas = [
            "journal_mode",
            "synchronous",
            "trusted_schema",
            "page_size",
            "application_id",
            "temp_store",
        ];
        for pragma in pragmas {
            let query = format!("SELECT CAST({pragma} AS TEXT) FROM pragma_{pragma}");
            let (value,): (String,) =
                crate::sql::query_as(query).fetch_one(&mut connection).await.unwrap();
            text += &format!("{pragma} {value}\n");
        }
        expect![[r#"
            journal_mode wal
            synchronous 2
            trusted_schema 0
            page_size 4096
            application_id 1333097586
            temp_store 2
        "#]]
        .assert_eq(&text);
    }
}
