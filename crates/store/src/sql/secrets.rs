//! Secrets in the database.

use crate::sql;
use crate::sql::connection::DatabaseConnection;

use super::fault;
use super::integer::number;
use crate::{Error, StoredSecret, limits};

const ALL: &str = "SELECT organisation, name, sealed, set_by, created_ms, changed_ms \
    FROM secrets WHERE organisation = $1 ORDER BY name LIMIT $2";
const PUT: &str = "INSERT INTO secrets \
    (organisation, name, sealed, set_by, created_ms, changed_ms) VALUES ($1, $2, $3, $4, $5, $6) \
    ON CONFLICT (organisation, name) DO UPDATE SET \
    sealed = excluded.sealed, set_by = excluded.set_by, changed_ms = excluded.changed_ms";
const REMOVE: &str = "DELETE FROM secrets WHERE organisation = $1 AND name = $2";

/// A change of what is kept.
#[derive(Debug)]
pub(crate) enum SecretChange {
    Put(StoredSecret),
    Remove { organisation: String, name: String },
}

/// All of an organisation.
pub(crate) async fn all(
    connection: &mut DatabaseConnection,
    organisation: &str,
) -> Result<Vec<StoredSecret>, Error> {
    type Columns = (String, String, String, String, i64, i64);
    let query = sql::query_as(ALL).bind(organisation.to_owned()).bind(limits::SECRETS_MAX);
    let rows: Vec<Columns> =
        query.fetch_all(connection).await.map_err(|e| fault::of("reading secrets", e))?;
    let of_row = |(organisation, name, sealed, set_by, created_ms, changed_ms): Columns| {
        let time = |ms: i64| u64::try_from(ms).unwrap_or(0);
        let (created_ms, changed_ms) = (time(created_ms), time(changed_ms));
        StoredSecret { organisation, name, sealed, set_by, created_ms, changed_ms }
    };
    Ok(rows.into_iter().map(of_row).collect())
}

/// Changes what is kept, in one statement. Gives whether anything changed.
pub(crate) async fn change(
    connection: &mut DatabaseConnection,
    change: SecretChange,
) -> Result<bool, Error> {
    let query = match change {
        SecretChange::Put(secret) => sql::query(PUT)
            .bind(secret.organisation)
            .bind(secret.name)
            .bind(secret.sealed)
            .bind(secret.set_by)
            .bind(number(secret.created_ms))
            .bind(number(secret.changed_ms)),
        SecretChange::Remove { organisation, name } => {
            sql::query(REMOVE).bind(organisation).bind(name)
        }
    };
    let done = query.execute(connection).await.map_err(fault::of_commit)?;
    Ok(done > 0)
}
