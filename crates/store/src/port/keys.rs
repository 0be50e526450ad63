//! Keys that let somebody in: kept by their digests, so that who reads the store has none.

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_agent::Digest;

use crate::Error;

/// Keeps keys.
#[async_trait]
pub trait Keys: Send + Sync + Debug {
    /// All that have not expired, oldest first; those that have are deleted by and by.
    ///
    /// # Errors
    /// What the disk says.
    async fn keys(&self, now_ms: u64) -> Result<Vec<StoredKey>, Error>;

    /// The key of a digest, unless it has expired.
    ///
    /// # Errors
    /// What the disk says.
    async fn key(&self, digest: &Digest, now_ms: u64) -> Result<Option<StoredKey>, Error>;

    /// Keeps a key, and deletes those that expired before it was made.
    ///
    /// # Errors
    /// What the disk says, also where there is one of its id or digest.
    async fn put_key(&self, key: StoredKey) -> Result<(), Error>;

    /// Deletes a key. Gives whether there was one: of two who use one up, one does.
    ///
    /// # Errors
    /// What the disk says.
    async fn remove_key(&self, id: &str) -> Result<bool, Error>;
}

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// By which people name it. It lets nobody in.
    pub id: String,
    /// Digest of the key itself.
    pub digest: Digest,
    /// What it is good for.
    pub kind: KeyKind,
    /// Who comes with it, for example `person:ada`.
    pub person: String,
    /// What people wrote on it.
    pub label: String,
    /// When it was made, milliseconds since 1970.
    pub created_ms: u64,
    /// From when on it lets nobody in, milliseconds since 1970.
    pub expires_ms: u64,
}

/// What a key is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Once, to log a browser in.
    Link,
    /// A browser that is logged in.
    Browser,
    /// A program.
    Bearer,
}

impl KeyKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Link, Self::Browser, Self::Bearer];

    /// Its name where it is stored.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Browser => "browser",
            Self::Bearer => "bearer",
        }
    }
}
