//! What the server asks of whoever keeps secrets.

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_api::{RotateSecret, SecretInfo, SetSecret};

use crate::RequestError;

/// Keeps secrets.
#[async_trait]
pub trait SecretStore: Send + Sync + Debug {
    /// All of them, by name.
    ///
    /// # Errors
    /// What the store says.
    async fn list(&self) -> Result<Vec<SecretInfo>, RequestError>;

    /// Keeps one under a name, instead of the one that had it.
    ///
    /// # Errors
    /// What is wrong with it, or what keeps it from being sealed.
    async fn set(
        &self,
        name: &str,
        secret: SetSecret,
        by: &str,
    ) -> Result<SecretInfo, RequestError>;

    /// Gives one another value.
    ///
    /// # Errors
    /// As [`Self::set`], and where there is none.
    async fn rotate(
        &self,
        name: &str,
        value: RotateSecret,
        by: &str,
    ) -> Result<SecretInfo, RequestError>;

    /// Forgets one.
    ///
    /// # Errors
    /// Where there is none, or what the store says.
    async fn revoke(&self, name: &str) -> Result<(), RequestError>;
}
