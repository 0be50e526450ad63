//! What the store holds, which blobs nothing names any more, and how they are let go.
//!
//! A blob is named if its digest stands anywhere in the text of an event: so nothing here
//! has to know what events mean, and what they come to name is kept. Must never remove a
//! blob that is younger than [`limits::BLOB_UNNAMED_S_MIN`]: it is stored before the event
//! that names it.

use crate::sql;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::sql::connection::DatabaseConnection;
use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};

use super::place::DatabasePlace;
use super::sqlite;
use super::store::Database;
use crate::blob_directory::BlobFile;
use crate::event::blob_names;
use crate::files::blocking;
use crate::port::Blobs;
use crate::sql::fault;
use crate::{Error, limits};

const TEXTS: &str = "SELECT payload, blob FROM events";
const BELOW: &str = "SELECT session, head_seq FROM sessions WHERE session >= $1 AND session < $2 \
    ORDER BY session";
const COUNTS: &str = "SELECT (SELECT COUNT(*) FROM sessions), \
    (SELECT CAST(COALESCE(SUM(LENGTH(bytes)), 0) AS BIGINT) FROM contents)";
const IN_POSTGRES: &str = "SELECT pg_database_size(current_database()), \
    (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM blobs)";

/// What a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Of the database's files.
    pub database_bytes: u64,
    /// Of these, what nothing stands in.
    pub free_bytes: u64,
    /// Sessions, with subagents.
    pub sessions: u64,
    /// Contents of memory and skills, with those of old versions.
    pub memory_bytes: u64,
    /// Of all blobs.
    pub blob_bytes: u64,
}

/// A blob that no event names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnnamedBlob {
    /// Its name.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
}

fn wrong(error: sqlx::Error) -> Error {
    fault::of("looking at what the store holds", error)
}

impl Database {
    /// Removes a session that is at `head`: its events and its folded state. A signed entry
    /// of the log says that it was removed. What it is charged and what it wrote to memory
    /// stay, and blobs go with [`Self::unnamed_blobs`].
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] where it is at another event; as
    /// [`Self::checkpoint`] where the removal can't be signed, and then nothing is removed.
    pub async fn remove(&self, session: &SessionId, head: Seq) -> Result<(), Error> {
        self.writer.remove(session.clone(), head).await?;
        self.leases.forget(session);
        Ok(())
    }

    /// Gives space of the database that nothing stands in back to the file system. Needs as
    /// much space as what is left, for a while.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn compact(&self) -> Result<(), Error> {
        self.writer.compact().await
    }

    /// Sessions below one, with the places of their last events.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn below(&self, session: &SessionId) -> Result<Vec<(SessionId, Seq)>, Error> {
        let mut connection = self.readers.connection().await?;
        // Names have no character between these two.
        let query = sql::query_as(BELOW).bind(format!("{session}-")).bind(format!("{session}."));
        let rows: Vec<(String, i64)> = query.fetch_all(&mut connection).await.map_err(wrong)?;
        let row =
            |(name, seq): (String, i64)| Some((SessionId::new(name)?, Seq(seq.try_into().ok()?)));
        let rows = rows.into_iter().filter_map(row);
        // Another session's name may go on from this one's with a hyphen, and no number.
        Ok(rows.filter(|(name, _)| name.is_below(session)).collect())
    }

    /// What it holds.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn space(&self) -> Result<Space, Error> {
        let mut connection = self.readers.connection().await?;
        let (sessions, memory): (i64, i64) =
            sql::query_as(COUNTS).fetch_one(&mut connection).await.map_err(wrong)?;
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        let (sessions, memory_bytes) = (unsigned(sessions), unsigned(memory));
        if connection.is_postgres() {
            let row = sql::query_as(IN_POSTGRES).fetch_one(&mut connection).await;
            let (database, blobs): (i64, i64) = row.map_err(wrong)?;
            let (database_bytes, blob_bytes) = (unsigned(database), unsigned(blobs));
            return Ok(Space { database_bytes, free_bytes: 0, sessions, memory_bytes, blob_bytes });
        }
        let (free,): (i64,) = sql::query_as("PRAGMA freelist_count")
            .fetch_one(&mut connection)
            .await
            .map_err(wrong)?;
        drop(connection);
        let blobs = self.blobs.directory.clone();
        let blob_bytes = blocking(move || blobs.list()).await?.iter().map(|it| it.bytes).sum();
        let path = self.place.file()?;
        let files = ["", "-wal", "-shm"].map(|suffix| size(&sqlite::beside(path, suffix)));
        let free_bytes = unsigned(free) * u64::from(sqlite::PAGE_BYTES);
        let database_bytes = files.iter().sum();
        Ok(Space { database_bytes, free_bytes, sessions, memory_bytes, blob_bytes })
    }

    /// Blobs beside SQLite that no event names, and that are older than a while; of PostgreSQL
    /// none. Reads every event.
    ///
    /// # Errors
    /// What the disk says; [`Error::Damaged`] where an event's own text is missing, so that
    /// nobody knows what it names.
    pub async fn unnamed_blobs(&self) -> Result<Vec<UnnamedBlob>, Error> {
        if let DatabasePlace::Postgres(_) = self.place {
            // Other servers store some of them, and those of this directory are copies.
            return Ok(Vec::new());
        }
        let blobs = self.blobs.directory.clone();
        let listed = blocking(move || blobs.list()).await?;
        let young = Duration::from_secs(limits::BLOB_UNNAMED_S_MIN);
        let before = SystemTime::now().checked_sub(young).unwrap_or(SystemTime::UNIX_EPOCH);
        let old = listed.into_iter().filter(|it| it.written < before);
        let mut unnamed: BTreeMap<String, BlobFile> =
            old.map(|it| (it.digest.to_string(), it)).collect();
        if !unnamed.is_empty() {
            let mut connection = self.readers.connection().await?;
            self.keep_named(&mut connection, &mut unnamed).await?;
        }
        let blob = |it: BlobFile| UnnamedBlob { digest: it.digest, bytes: it.bytes };
        Ok(unnamed.into_values().map(blob).collect())
    }

    /// Takes out what an event names.
    async fn keep_named(
        &self,
        connection: &mut DatabaseConnection,
        unnamed: &mut BTreeMap<String, BlobFile>,
    ) -> Result<(), Error> {
        let mut rows = sql::query_as(TEXTS).fetch(connection);
        while let Some(row) = rows.try_next().await.map_err(wrong)? {
            let (payload, blob): (Option<String>, Option<String>) = row;
            if let Some(text) = payload {
                blob_names(text.as_bytes(), |digest| _ = unnamed.remove(digest));
            }
            let Some(name) = blob else { continue };
            unnamed.remove(&name);
            let none = || Error::damaged(fault::DATABASE, format!("{name:?} is no blob"));
            let digest = Digest::parse(&name).ok_or_else(none)?;
            let text = self.blobs.get(&digest).await?;
            blob_names(&text, |digest| _ = unnamed.remove(digest));
        }
        Ok(())
    }

    /// Removes blobs that [`Self::unnamed_blobs`] gave; gives how many bytes that freed. One
    /// that was stored again since is left.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn remove_blobs(&self, blobs: Vec<UnnamedBlob>) -> Result<u64, Error> {
        let directory = self.blobs.directory.clone();
        blocking(move || {
            let young = Duration::from_secs(limits::BLOB_UNNAMED_S_MIN);
            let mut freed = 0;
            for UnnamedBlob { digest, bytes } in blobs {
                freed += if directory.remove(&digest, young)? { bytes } else { 0 };
            }
            Ok(freed)
        })
        .await
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}
