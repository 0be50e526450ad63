//! Where the database of a store is, of either kind, and how it is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::postgres::{PostgresAddress, PostgresServer};
use super::settings::Settings;
use super::sqlite;
use crate::Error;
use crate::sql::connection::DatabaseConnection;

/// Which database a store is in.
#[derive(Debug, Clone, Default)]
pub enum DatabaseAddress {
    /// One of SQLite, in the store's directory.
    #[default]
    Sqlite,
    /// One of PostgreSQL. The directory keeps the signing key and the copies.
    Postgres(PostgresAddress),
}

impl DatabaseAddress {
    /// Whether all of it lies in the store's directory.
    #[must_use]
    pub fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite)
    }
}

/// Where it is.
#[derive(Debug, Clone)]
pub(super) enum DatabasePlace {
    Sqlite(PathBuf),
    Postgres(Arc<PostgresServer>),
}

impl DatabasePlace {
    /// Makes what is missing, and checks that what is there is ours and of a known format.
    pub(super) async fn prepare(
        directory: &Path,
        address: &DatabaseAddress,
    ) -> Result<Self, Error> {
        match address {
            DatabaseAddress::Sqlite => Ok(Self::Sqlite(sqlite::prepare(directory).await?)),
            DatabaseAddress::Postgres(address) => {
                address.prepare().await?;
                Ok(Self::Postgres(Arc::new(PostgresServer::new(address.clone())?)))
            }
        }
    }

    /// The connection that writes. There is one in each process.
    pub(super) async fn writing(&self, settings: Settings) -> Result<DatabaseConnection, Error> {
        match self {
            Self::Sqlite(path) => sqlite::writing(path, settings).await,
            Self::Postgres(server) => server.writing(settings).await,
        }
    }

    /// A connection that reads.
    pub(super) async fn reading(&self) -> Result<DatabaseConnection, Error> {
        match self {
            Self::Sqlite(path) => sqlite::reading(path).await,
            Self::Postgres(server) => server.reading().await,
        }
    }

    /// The server of PostgreSQL.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none.
    pub(super) fn server(&self) -> Result<&PostgresServer, Error> {
        match self {
            Self::Postgres(server) => Ok(server),
            Self::Sqlite(_) => Err(Error::NotFound { what: "database of PostgreSQL".to_owned() }),
        }
    }

    /// The file of SQLite.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none.
    pub(super) fn file(&self) -> Result<&Path, Error> {
        match self {
            Self::Sqlite(path) => Ok(path),
            Self::Postgres(_) => {
                let what = "file of a database: it is PostgreSQL's, and pg_dump copies it";
                Err(Error::NotFound { what: what.to_owned() })
            }
        }
    }
}
