//! A store in a directory of its own: what it is made of, and its texts as rows or blobs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_agent::{Digest, SessionId};

use super::blobs::DatabaseBlobs;
use super::changes::Changes;
use super::known::EntryCache;
use super::leases::Leases;
use super::place::{DatabaseAddress, DatabasePlace};
use super::readers::Readers;
use super::settings::Settings;
use super::writer::Writer;
use crate::event::{EncodedEvent, StoredEvent};
use crate::files::make_private;
use crate::port::Blobs;
use crate::sql::journal::batch::{Batch, EventRow};
use crate::sql::journal::read::Row;
use crate::sql::log::anchor;
use crate::{BlobDirectory, Error, limits};

/// A journal in a database. Needs a tokio runtime around it.
#[derive(Debug)]
pub struct Database {
    pub(super) writer: Writer,
    pub(super) readers: Readers,
    pub(super) known: EntryCache,
    pub(super) blobs: DatabaseBlobs,
    pub(super) leases: Leases,
    pub(super) directory: PathBuf,
    pub(super) place: DatabasePlace,
}

impl Database {
    /// Opens the store in `directory` and its database. Makes what is not there: in the
    /// directory, readable by its owner only, `journal.db` and `blobs`; in PostgreSQL, its
    /// tables.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a database that is not ours or is cut short, [`Error::Newer`] for
    /// one of a newer program: both change nothing but the index of a log (`-shm`).
    /// Else what the disk or the database says.
    pub async fn open(
        directory: &Path,
        address: &DatabaseAddress,
        settings: Settings,
    ) -> Result<Self, Error> {
        let place = DatabasePlace::prepare(directory, address).await?;
        let mut connection = place.writing(settings).await?;
        if connection.is_postgres() {
            make_private(directory).map_err(|e| Error::io("making the store's directory", e))?;
            anchor::same_signer(&mut connection, directory).await?;
        }
        let blobs = BlobDirectory::open(&directory.join("blobs"))?;
        let blobs = DatabaseBlobs::new(blobs, &place);
        let changes = Arc::new(Changes::open(directory, address)?);
        let known = EntryCache::new(Arc::clone(&changes));
        let leases = Leases::new(directory, &place)?;
        let batch = Batch::new(directory, leases.process);
        let writer = Writer::start(batch, &place, settings, connection, changes)?;
        let (readers, directory) = (Readers::new(&place), directory.to_owned());
        Ok(Self { writer, readers, known, blobs, leases, directory, place })
    }

    /// The blobs of this store.
    #[must_use]
    pub fn blobs(&self) -> &DatabaseBlobs {
        &self.blobs
    }

    /// Covers every event that is there with a signed checkpoint, and gives the newest one.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the log is not as we signed it, or its key can't be
    /// used: `audit` names what is wrong. [`Error::NotFound`] where there is no event.
    pub async fn checkpoint(&self) -> Result<String, Error> {
        self.writer.checkpoint().await
    }

    /// Covers and commits what waits, and closes the database; the last one to do so leaves
    /// it as a single file. Afterwards appends give [`Error::Closed`].
    /// Dropping the store instead loses nothing.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Puts a text that is too large for its row on disk, before the row can name it.
    pub(super) async fn prepare(&self, event: EncodedEvent) -> Result<EventRow, Error> {
        let EncodedEvent { text, digest, format } = event;
        if text.len() <= limits::PAYLOAD_INLINE_BYTES_MAX {
            return Ok(EventRow { format, digest, payload: Some(text.into()) });
        }
        let digest = self.blobs.put(text.into_bytes()).await?;
        Ok(EventRow { format, digest, payload: None })
    }

    pub(super) async fn text_of(
        &self,
        session: &SessionId,
        row: Row,
    ) -> Result<StoredEvent, Error> {
        let Row { seq, at_ms, format, payload, blob, link } = row;
        let text = match (payload, blob) {
            (Some(text), _) => text,
            (None, Some(digest)) => {
                let damaged = |what| Error::damaged_event(session, seq, what);
                let digest = Digest::parse(&digest)
                    .ok_or_else(|| damaged("the digest of its text is no SHA-256".to_owned()))?;
                let wrong = |error| match error {
                    Error::NotFound { what } => damaged(format!("its text is missing: {what}")),
                    Error::Damaged { .. } => damaged(format!("its text is: {error}")),
                    other => other,
                };
                let bytes = self.blobs.get(&digest).await.map_err(wrong)?;
                let text = String::from_utf8(bytes);
                text.map_err(|_| Error::damaged_event(session, seq, "its blob is no text"))?
            }
            (None, None) => return Err(Error::damaged_event(session, seq, "its text is missing")),
        };
        Ok(StoredEvent { seq, at_ms, format, text, link })
    }
}
