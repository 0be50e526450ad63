//! Changes of one row each: of what has no history and is no part of a journal.

use crate::sql::connection::DatabaseConnection;

use crate::Error;
use crate::sql::keys::{self, KeyChange};
use crate::sql::leases::{self, DueChange};
use crate::sql::secrets::{self, SecretChange};

/// A change of one row.
#[derive(Debug)]
pub(in crate::database) enum RowChange {
    Secret(SecretChange),
    Key(KeyChange),
    Due(DueChange),
}

impl RowChange {
    /// Gives whether anything changed.
    pub(super) async fn perform(self, connection: &mut DatabaseConnection) -> Result<bool, Error> {
        match self {
            Self::Secret(change) => secrets::change(connection, change).await,
            Self::Key(change) => keys::change(connection, change).await,
            Self::Due(change) => leases::change(connection, change).await,
        }
    }
}
