//! Secrets as they are kept: by name, sealed by somebody who alone can read them.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::Error;

/// Keeps secrets of organisations.
#[async_trait]
pub trait Secrets: Send + Sync + Debug {
    /// All of an organisation, by name.
    ///
    /// # Errors
    /// What the disk says.
    async fn secrets(&self, organisation: &str) -> Result<Vec<StoredSecret>, Error>;

    /// Keeps a secret instead of the one of its name, whose age it takes over.
    ///
    /// # Errors
    /// What the disk says.
    async fn put_secret(&self, secret: StoredSecret) -> Result<(), Error>;

    /// Deletes a secret. Gives whether there was one.
    ///
    /// # Errors
    /// What the disk says.
    async fn remove_secret(&self, organisation: &str, name: &str) -> Result<bool, Error>;
}

/// A secret as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// Whose it is.
    pub organisation: String,
    /// Its name, once in each organisation.
    pub name: String,
    /// What was sealed, as its sealer writes it. It is not looked at here.
    pub sealed: String,
    /// Who set it last.
    pub set_by: String,
    /// When it was set first, milliseconds since 1970.
    pub created_ms: u64,
    /// When it was set last, milliseconds since 1970.
    pub changed_ms: u64,
}
