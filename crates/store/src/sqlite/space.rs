//! What the store holds, which blobs nothing names any more, and how they are let go.
//!
//! A blob is named if its digest stands anywhere in the text of an event: so nothing here
//! has to know what events mean, and what they come to name is kept. Must never remove a
//! blob that is younger than [`limits::BLOB_UNNAMED_S_MIN`]: it is stored before the event
//! that names it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};
use sqlx::sqlite::SqliteConnection;

use super::open;
use super::store::Sqlite;
use crate::blob_directory::BlobFile;
use crate::event::blob_names;
use crate::files::blocking;
use crate::sql::fault;
use crate::{Error, limits};

const TEXTS: &str = "SELECT payload, blob FROM events";
const BELOW: &str = "SELECT session, head_seq FROM sessions WHERE session >= $1 AND session < $2 \
    ORDER BY session";
const COUNTS: &str = "SELECT (SELECT COUNT(*) FROM sessions), \
    (SELECT COALESCE(SUM(LENGTH(bytes)), 0) FROM contents)";

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

impl Sqlite {
    /// Removes a session that is at `head`: its events and its folded state. A signed entry
    /// of the log says that it was removed. What it is charged and what it wrote to memory
    /// stay, and blobs go with [`Self::unnamed_blobs`].
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] where it is at another event; as
    /// [`Self::checkpoint`] where the removal can't be signed, and then nothing is removed.
    pub async fn remove(&self, session: &SessionId, head: Seq) -> Result<(), Error> {
        self.writer.remove(session.clone(), head).await
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
        let query = sqlx::query_as(BELOW).bind(format!("{session}-")).bind(format!("{session}."));
        let rows: Vec<(String, i64)> = query.fetch_all(&mut *connection).await.map_err(wrong)?;
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
            sqlx::query_as(COUNTS).fetch_one(&mut *connection).await.map_err(wrong)?;
        let (free,): (i64,) = sqlx::query_as("PRAGMA freelist_count")
            .fetch_one(&mut *connection)
            .await
            .map_err(wrong)?;
        drop(connection);
        let blobs = self.blobs.clone();
        let blob_bytes = blocking(move || blobs.list()).await?.iter().map(|it| it.bytes).sum();
        let files = ["", "-wal", "-shm"].map(|suffix| size(&open::beside(self.path(), suffix)));
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(Space {
            database_bytes: files.iter().sum(),
            free_bytes: unsigned(free) * open::PAGE_BYTES as u64,
            sessions: unsigned(sessions),
            memory_bytes: unsigned(memory),
            blob_bytes,
        })
    }

    /// Blobs that no event names, and that are older than a while. Reads every event.
    ///
    /// # Errors
    /// What the disk says; [`Error::Damaged`] where an event's own text is missing, so that
    /// nobody knows what it names.
    pub async fn unnamed_blobs(&self) -> Result<Vec<UnnamedBlob>, Error> {
        let blobs = self.blobs.clone();
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
        connection: &mut SqliteConnection,
        unnamed: &mut BTreeMap<String, BlobFile>,
    ) -> Result<(), Error> {
        let mut rows = sqlx::query_as(TEXTS).fetch(connection);
        while let Some(row) = rows.try_next().await.map_err(wrong)? {
            let (payload, blob): (Option<String>, Option<String>) = row;
            if let Some(text) = payload {
                blob_names(text.as_bytes(), |digest| _ = unnamed.remove(digest));
            }
            let Some(name) = blob else { continue };
            unnamed.remove(&name);
            let none = || Error::damaged(fault::DATABASE, format!("{name:?} is no blob"));
            let digest = Digest::parse(&name).ok_or_else(none)?;
            let blobs = self.blobs.clone();
            let text = blocking(move || blobs.read(&digest)).await?;
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
        let directory = self.blobs.clone();
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
