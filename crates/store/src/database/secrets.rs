//! Secrets of a store.

use async_trait::async_trait;

use super::store::Database;
use super::writer::RowChange;
use crate::sql::secrets::{self, SecretChange};
use crate::{Error, Secrets, StoredSecret};

#[async_trait]
impl Secrets for Database {
    async fn secrets(&self, organisation: &str) -> Result<Vec<StoredSecret>, Error> {
        secrets::all(&mut *self.readers.connection().await?, organisation).await
    }

    async fn put_secret(&self, secret: StoredSecret) -> Result<(), Error> {
        self.writer.change_row(RowChange::Secret(SecretChange::Put(secret))).await.map(drop)
    }

    async fn remove_secret(&self, organisation: &str, name: &str) -> Result<bool, Error> {
        let (organisation, name) = (organisation.to_owned(), name.to_owned());
        self.writer.change_row(RowChange::Secret(SecretChange::Remove { organisation, name })).await
    }
}
