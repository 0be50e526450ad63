//! The blobs of a store: files beside SQLite, and rows of PostgreSQL, of which the files are
//! copies that any server makes when it needs them.
//!
//! Owns that a blob is in the database before anything names it, in pieces, and whole once it has
//! a row of its own. What stands in the files is checked by its name, so that a copy is never
//! old.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use outrigger_agent::Digest;
use tokio::sync::Mutex;

use super::place::DatabasePlace;
use super::settings::Settings;
use crate::blob_directory::unreadable;
use crate::files::blocking;
use crate::port::{Blobs, StoredBlob};
use crate::sql::connection::DatabaseConnection;
use crate::sql::integer::number;
use crate::sql::{self, fault};
use crate::{BlobDirectory, Error, limits};

const TOUCH: &str = "UPDATE blobs SET stored_ms = $2 WHERE digest = $1";
const PIECE: &str = "INSERT INTO blob_pieces (digest, piece, bytes) VALUES ($1, $2, $3) \
    ON CONFLICT (digest, piece) DO UPDATE SET bytes = excluded.bytes";
const WHOLE: &str = "INSERT INTO blobs (digest, bytes, stored_ms) VALUES ($1, $2, $3) \
    ON CONFLICT (digest) DO NOTHING";
const SIZE: &str = "SELECT bytes FROM blobs WHERE digest = $1";
const READ: &str = "SELECT bytes FROM blob_pieces WHERE digest = $1 AND piece = $2";

/// The blobs of a store. Clones stand for the same ones. Needs a tokio runtime around it.
#[derive(Debug, Clone)]
pub struct DatabaseBlobs {
    pub(super) directory: BlobDirectory,
    rows: Option<Arc<BlobRows>>,
}

/// Blobs in PostgreSQL, over a connection that is made when it is first needed.
#[derive(Debug)]
struct BlobRows {
    place: DatabasePlace,
    connection: Mutex<Option<DatabaseConnection>>,
}

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading or writing a blob in the database", error)
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl DatabaseBlobs {
    pub(super) fn new(directory: BlobDirectory, place: &DatabasePlace) -> Self {
        let rows = match place {
            DatabasePlace::Sqlite(_) => None,
            DatabasePlace::Postgres(_) => {
                let (place, connection) = (place.clone(), Mutex::new(None));
                Some(Arc::new(BlobRows { place, connection }))
            }
        };
        Self { directory, rows }
    }

    /// Brings one that is in the directory into the database, where that is another place.
    pub(super) async fn publish(&self, digest: &Digest) -> Result<(), Error> {
        match &self.rows {
            Some(rows) => rows.write(&self.directory, digest).await,
            None => Ok(()),
        }
    }

    /// Brings one into the directory, where it is missing there or damaged.
    pub(super) async fn fetch(&self, digest: &Digest) -> Result<(), Error> {
        match &self.rows {
            Some(rows) => rows.read(&self.directory, digest).await,
            None => Err(Error::NotFound { what: format!("blob {digest}") }),
        }
    }

    /// Whether one may be in the database that the directory does not have as it was.
    fn is_elsewhere(&self, error: &Error) -> bool {
        self.rows.is_some() && matches!(error, Error::NotFound { .. } | Error::Damaged { .. })
    }
}

#[async_trait]
impl Blobs for DatabaseBlobs {
    async fn put(&self, bytes: Vec<u8>) -> Result<Digest, Error> {
        let digest = self.directory.put(bytes).await?;
        self.publish(&digest).await?;
        Ok(digest)
    }

    async fn put_from(&self, reader: Box<dyn Read + Send>) -> Result<StoredBlob, Error> {
        let stored = self.directory.put_from(reader).await?;
        self.publish(&stored.digest).await?;
        Ok(stored)
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        match self.directory.get(digest).await {
            Err(error) if self.is_elsewhere(&error) => {
                self.fetch(digest).await?;
                self.directory.get(digest).await
            }
            found => found,
        }
    }

    async fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        match self.directory.open(digest).await {
            Err(error) if self.is_elsewhere(&error) => {
                self.fetch(digest).await?;
                self.directory.open(digest).await
            }
            found => found,
        }
    }
}

impl BlobRows {
    async fn write(&self, directory: &BlobDirectory, digest: &Digest) -> Result<(), Error> {
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.place.writing(Settings::default()).await?,
        };
        // One that failed is not kept.
        write(&mut connection, directory, digest).await?;
        *slot = Some(connection);
        Ok(())
    }

    async fn read(&self, directory: &BlobDirectory, digest: &Digest) -> Result<(), Error> {
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.place.writing(Settings::default()).await?,
        };
        let read = read(&mut connection, directory, digest).await;
        if matches!(read, Ok(()) | Err(Error::NotFound { .. } | Error::Damaged { .. })) {
            *slot = Some(connection);
        }
        read
    }
}

/// Brings a blob of a directory into the database, unless it is there.
pub(super) async fn write(
    connection: &mut DatabaseConnection,
    directory: &BlobDirectory,
    digest: &Digest,
) -> Result<(), Error> {
    let known = sql::query(TOUCH).bind(digest.as_str()).bind(now_ms());
    if known.execute(connection).await.map_err(wrong)? > 0 {
        return Ok(());
    }
    let mut reader = directory.open(digest).await?;
    let (mut piece, mut bytes) = (0i64, 0);
    loop {
        let name = digest.clone();
        let (back, read) = blocking(move || {
            let mut read = Vec::new();
            let most = limits::BLOB_PIECE_BYTES as u64;
            let done = reader.by_ref().take(most).read_to_end(&mut read);
            done.map_err(|e| unreadable(&name, e))?;
            Ok((reader, read))
        })
        .await?;
        reader = back;
        if read.is_empty() {
            break;
        }
        bytes += read.len() as u64;
        let query = sql::query(PIECE).bind(digest.as_str()).bind(piece).bind(Some(read));
        query.execute(connection).await.map_err(wrong)?;
        piece += 1;
    }
    let whole = sql::query(WHOLE).bind(digest.as_str()).bind(number(bytes)).bind(now_ms());
    whole.execute(connection).await.map(drop).map_err(wrong)
}

async fn read(
    connection: &mut DatabaseConnection,
    directory: &BlobDirectory,
    digest: &Digest,
) -> Result<(), Error> {
    let size = sql::query_as(SIZE).bind(digest.as_str());
    let size: Option<(i64,)> = size.fetch_optional(connection).await.map_err(wrong)?;
    let none = || Error::NotFound { what: format!("blob {digest}") };
    let (bytes,) = size.ok_or_else(none)?;
    // Whoever reads what comes here writes it into a file, a piece behind.
    let (pieces, given) = tokio::sync::mpsc::channel(1);
    let (to, name) = (directory.clone(), digest.clone());
    let stored = blocking(move || to.store_as(&name, &mut PieceReader::new(given)));
    let sent = async {
        let (mut piece, mut left) = (0i64, bytes);
        while left > 0 {
            let query = sql::query_as(READ).bind(digest.as_str()).bind(piece);
            let row: Option<(Vec<u8>,)> = query.fetch_optional(connection).await.map_err(wrong)?;
            let Some((read,)) = row.filter(|(read,)| !read.is_empty()) else { break };
            left -= read.len() as i64;
            piece += 1;
            if pieces.send(read).await.is_err() {
                break;
            }
        }
        drop(pieces);
        Ok(())
    };
    let (stored, sent) = tokio::join!(stored, sent);
    sent.and(stored)
}

/// Reads pieces that are sent, on a thread that may block.
struct PieceReader {
    given: tokio::sync::mpsc::Receiver<Vec<u8>>,
    piece: io::Cursor<Vec<u8>>,
}

impl PieceReader {
    fn new(given: tokio::sync::mpsc::Receiver<Vec<u8>>) -> Self {
        Self { given, piece: io::Cursor::default() }
    }
}

impl Read for PieceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            match self.given.blocking_recv() {
                Some(piece) => self.piece = io::Cursor::new(piece),
                None => return Ok(0),
            }
        }
    }
}
