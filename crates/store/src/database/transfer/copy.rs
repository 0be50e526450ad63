//! A whole store of SQLite, into an empty database of PostgreSQL.
//!
//! Owns that all of it comes along or nothing: one transaction of the destination has it all,
//! blobs too, so that one that ends in the middle leaves an empty database. While it lasts the
//! source is locked against whoever writes. Must never change the source, but for a checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_audit::{Report, VerificationProgress};

use crate::blob_directory::BlobFile;
use crate::database::audit::{Audit, AuditRequest};
use crate::database::blobs;
use crate::database::place::DatabaseAddress;
use crate::database::settings::Settings;
use crate::database::sqlite;
use crate::database::store::Database;
use crate::files::blocking;
use crate::sql::connection::DatabaseConnection;
use crate::sql::copy::{TABLES, complete, count, occupied, rows, wrong};
use crate::sql::log::read::newest_checkpoint;
use crate::sql::{self, fault};
use crate::{BlobDirectory, Error};

/// Between two pages the source may take its time.
const BEGIN: &str = "BEGIN IMMEDIATE; SET LOCAL idle_in_transaction_session_timeout = 0";
const BLOBS: &str = "SELECT (SELECT COUNT(*) FROM blobs), \
    (SELECT CAST(COALESCE(SUM(LENGTH(bytes)), 0) AS BIGINT) FROM blob_pieces)";

/// Why a store was not copied. The destination is as empty as it was.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Another process has the source open, and may drive sessions.
    #[error("another process has the store open")]
    InUse,
    /// The destination is not empty.
    #[error("the database to copy into is not empty: there are {table} in it")]
    Occupied {
        /// The first table in which something is.
        table: &'static str,
    },
    /// What came is not what was sent.
    #[error("what was copied is not what is there: {what}")]
    Different {
        /// What was compared, and what was found.
        what: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Store(#[from] Error),
}

/// How far a copy is, for whoever waits.
#[derive(Debug, Default)]
pub struct CopyProgress {
    rows_all: AtomicU64,
    rows: AtomicU64,
    blobs_all: AtomicU64,
    blobs: AtomicU64,
    /// Of the audit at its end.
    pub audit: Arc<VerificationProgress>,
}

impl CopyProgress {
    /// Rows that were copied, of how many; blobs that were copied, of how many.
    #[must_use]
    pub fn now(&self) -> ((u64, u64), (u64, u64)) {
        let of = |value: &AtomicU64| value.load(Ordering::Relaxed);
        ((of(&self.rows), of(&self.rows_all)), (of(&self.blobs), of(&self.blobs_all)))
    }
}

/// What was copied.
#[derive(Debug, Clone)]
pub struct CopyOutcome {
    /// Rows, by the names of their tables.
    pub tables: BTreeMap<&'static str, u64>,
    /// Of what is in rows.
    pub row_bytes: u64,
    /// Contents that are too large for a row.
    pub blobs: u64,
    /// Of these.
    pub blob_bytes: u64,
    /// What an audit of the destination found.
    pub report: Report,
}

/// Copies all of a store of SQLite into the empty database of another store of the same
/// directory, and audits that. The source is closed.
///
/// # Errors
/// [`CopyError`]; with each of them nothing is in the destination, unless its commit was
/// [`Error::Uncertain`] or what failed was the audit.
pub async fn copy(
    source: &Database,
    destination: &Database,
    progress: &CopyProgress,
) -> Result<CopyOutcome, CopyError> {
    let (file, server) = (source.place.file()?, destination.place.server()?);
    // What is wrong with the log is found by the audit.
    let _ = source.checkpoint().await;
    source.close().await;
    if sqlite::is_open(file) {
        return Err(CopyError::InUse);
    }
    let mut from = sqlite::copying(file).await?;
    let mut to = server.writing(Settings::default()).await?;
    let home = destination.leases.server;
    let copied = all((&mut from, &mut to), &source.blobs.directory, home, progress).await;
    // What was not committed is taken back; the source was only read.
    let _ = (from.close().await, to.close().await);
    let (tables, row_bytes, blobs, blob_bytes) = copied?;
    let address = DatabaseAddress::Postgres(server.address().clone());
    let audit = Audit::open(&source.directory, &address).await?;
    let report = audit.verify(&AuditRequest::default(), &progress.audit).await?;
    Ok(CopyOutcome { tables, row_bytes, blobs, blob_bytes, report })
}

/// Rows by table, their bytes, blobs, and theirs.
type Copied = (BTreeMap<&'static str, u64>, u64, u64, u64);

async fn all(
    (from, to): (&mut DatabaseConnection, &mut DatabaseConnection),
    directory: &BlobDirectory,
    home: i64,
    progress: &CopyProgress,
) -> Result<Copied, CopyError> {
    sql::query("BEGIN IMMEDIATE").execute(from).await.map_err(wrong)?;
    let mut tables = BTreeMap::new();
    for table in TABLES {
        tables.insert(table, count(from, table).await?);
    }
    let listed = directory.clone();
    let listed = blocking(move || listed.list()).await?;
    progress.rows_all.store(tables.values().sum(), Ordering::Relaxed);
    progress.blobs_all.store(listed.len() as u64, Ordering::Relaxed);
    sql::query(BEGIN).execute(to).await.map_err(wrong)?;
    if let Some(table) = occupied(to).await? {
        return Err(CopyError::Occupied { table });
    }
    let blob_bytes = all_blobs(to, directory, &listed, progress).await?;
    let mut row_bytes = 0;
    for table in TABLES {
        let copied = |rows| _ = progress.rows.fetch_add(rows, Ordering::Relaxed);
        row_bytes += rows((&mut *from, &mut *to), table, copied).await?;
        same(table, count(to, table).await?, tables[table])?;
    }
    complete((&mut *from, &mut *to), home).await?;
    let (here, there) = (newest_checkpoint(from).await, newest_checkpoint(to).await);
    if here.map_err(wrong)? != there.map_err(wrong)? {
        let what = "the newest checkpoints of the audit log differ".to_owned();
        return Err(CopyError::Different { what });
    }
    sql::query("COMMIT").execute(to).await.map_err(fault::of_commit)?;
    Ok((tables, row_bytes, listed.len() as u64, blob_bytes))
}

/// Copies blobs, each checked by its name. Gives their bytes.
async fn all_blobs(
    to: &mut DatabaseConnection,
    directory: &BlobDirectory,
    listed: &[BlobFile],
    progress: &CopyProgress,
) -> Result<u64, CopyError> {
    for blob in listed {
        blobs::write(to, directory, &blob.digest).await?;
        progress.blobs.fetch_add(1, Ordering::Relaxed);
    }
    let counted: (i64, i64) = sql::query_as(BLOBS).fetch_one(to).await.map_err(wrong)?;
    let bytes = listed.iter().map(|blob| blob.bytes).sum();
    same("blobs", u64::try_from(counted.0).unwrap_or(0), listed.len() as u64)?;
    same("bytes of blobs", u64::try_from(counted.1).unwrap_or(0), bytes)?;
    Ok(bytes)
}

fn same(what: &str, found: u64, expected: u64) -> Result<(), CopyError> {
    if found == expected {
        return Ok(());
    }
    Err(CopyError::Different { what: format!("{found} of {expected} {what} came") })
}
