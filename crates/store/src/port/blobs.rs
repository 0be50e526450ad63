//! The blob port: bytes by their digest.

use std::fmt::Debug;
use std::io::Read;

use async_trait::async_trait;
use outrigger_agent::Digest;

use crate::Error;

/// Bytes that are known by their SHA-256. Storing the same bytes again stores nothing.
#[async_trait]
pub trait Blobs: Send + Sync + Debug {
    /// Stores bytes; they are durable when it returns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above [`crate::limits::BLOB_MEMORY_BYTES_MAX`]; what the disk says.
    async fn put(&self, bytes: Vec<u8>) -> Result<Digest, Error>;

    /// Stores what a reader gives, to its end, without holding it in memory.
    /// The reader is read on a thread that may block.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above [`crate::limits::BLOB_BYTES_MAX`]; what the reader or the disk says.
    async fn put_from(&self, reader: Box<dyn Read + Send>) -> Result<StoredBlob, Error>;

    /// The bytes, checked against the digest.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Damaged`], and [`Error::TooLarge`] above
    /// [`crate::limits::BLOB_MEMORY_BYTES_MAX`].
    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// A reader of the bytes, for large ones. Its last read fails with
    /// [`std::io::ErrorKind::InvalidData`] if they are not those of the digest,
    /// so nothing that was read counts before the end was.
    ///
    /// # Errors
    /// [`Error::NotFound`]; what the disk says.
    async fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error>;
}

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// Its name.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
}
