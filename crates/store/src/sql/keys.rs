//! Keys in the database.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use outrigger_agent::Digest;

use super::fault;
use super::integer::{number, unsigned};
use crate::{Error, KeyKind, StoredKey, limits};

const ALL: &str = "SELECT id, digest, kind, person, label, created_ms, expires_ms FROM keys \
    WHERE expires_ms > $1 ORDER BY created_ms, id LIMIT $2";
const ONE: &str = "SELECT id, digest, kind, person, label, created_ms, expires_ms FROM keys \
    WHERE digest = $1 AND expires_ms > $2";
const PUT: &str = "INSERT INTO keys (id, digest, kind, person, label, created_ms, expires_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
const EXPIRE: &str = "DELETE FROM keys WHERE expires_ms <= $1";
const REMOVE: &str = "DELETE FROM keys WHERE id = $1";

/// A change of what is kept.
#[derive(Debug)]
pub(crate) enum KeyChange {
    Put(StoredKey),
    Remove { id: String },
}

type Columns = (String, String, String, String, String, i64, i64);

/// All that have not expired.
pub(crate) async fn all(
    connection: &mut DatabaseConnection,
    now_ms: u64,
) -> Result<Vec<StoredKey>, Error> {
    let query = sql::query_as(ALL).bind(number(now_ms)).bind(limits::KEYS_MAX);
    let rows: Vec<Columns> =
        query.fetch_all(connection).await.map_err(|e| fault::of("reading keys", e))?;
    rows.into_iter().map(of_row).collect()
}

/// The one of a digest.
pub(crate) async fn one(
    connection: &mut DatabaseConnection,
    digest: &Digest,
    now_ms: u64,
) -> Result<Option<StoredKey>, Error> {
    let query = sql::query_as(ONE).bind(digest.as_str().to_owned()).bind(number(now_ms));
    let row: Option<Columns> =
        query.fetch_optional(connection).await.map_err(|e| fault::of("reading a key", e))?;
    row.map(of_row).transpose()
}

fn of_row(row: Columns) -> Result<StoredKey, Error> {
    let (id, digest, kind, person, label, created_ms, expires_ms) = row;
    let damaged = |what| Error::damaged(fault::DATABASE, what);
    let digest = Digest::parse(&digest).ok_or_else(|| damaged("a key has no digest"))?;
    let kind = KeyKind::ALL.into_iter().find(|known| known.name() == kind);
    let kind = kind.ok_or_else(|| damaged("a key is of no kind that is known"))?;
    let (created_ms, expires_ms) = (unsigned(created_ms)?, unsigned(expires_ms)?);
    Ok(StoredKey { id, digest, kind, person, label, created_ms, expires_ms })
}

/// Changes what is kept. Gives whether anything changed.
pub(crate) async fn change(
    connection: &mut DatabaseConnection,
    change: KeyChange,
) -> Result<bool, Error> {
    let query = match change {
        KeyChange::Put(key) => {
            let expired = sql::query(EXPIRE).bind(number(key.created_ms));
            expired.execute(&mut *connection).await.map_err(fault::of_commit)?;
            sql::query(PUT)
                .bind(key.id)
                .bind(key.digest.as_str().to_owned())
                .bind(key.kind.name())
                .bind(key.person)
                .bind(key.label)
                .bind(number(key.created_ms))
                .bind(number(key.expires_ms))
        }
        KeyChange::Remove { id } => sql::query(REMOVE).bind(id),
    };
    let done = query.execute(connection).await.map_err(fault::of_commit)?;
    Ok(done > 0)
}
