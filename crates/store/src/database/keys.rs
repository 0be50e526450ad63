//! Keys of a store.

use async_trait::async_trait;
use outrigger_agent::Digest;

use super::store::Database;
use super::writer::RowChange;
use crate::sql::keys::{self, KeyChange};
use crate::{Error, Keys, StoredKey};

#[async_trait]
impl Keys for Database {
    async fn keys(&self, now_ms: u64) -> Result<Vec<StoredKey>, Error> {
        keys::all(&mut *self.readers.connection().await?, now_ms).await
    }

    async fn key(&self, digest: &Digest, now_ms: u64) -> Result<Option<StoredKey>, Error> {
        keys::one(&mut *self.readers.connection().await?, digest, now_ms).await
    }

    async fn put_key(&self, key: StoredKey) -> Result<(), Error> {
        self.writer.change_row(RowChange::Key(KeyChange::Put(key))).await.map(drop)
    }

    async fn remove_key(&self, id: &str) -> Result<bool, Error> {
        self.writer.change_row(RowChange::Key(KeyChange::Remove { id: id.to_owned() })).await
    }
}
