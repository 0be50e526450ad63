//! The tables: migrations, in order, and the format that each leads to.
//!
//! A migration is never changed once a release wrote it. The next one is another file, and
//! sets the format in `meta` to its own. A database of an older format gets those that it
//! lacks when it is opened for writing, all in one transaction.

use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::fault;
use crate::Error;

/// Formats, and what makes each of the one before it.
const MIGRATIONS: &[(u32, &str)] = &[
    (OLDEST_FORMAT, include_str!("schema/0001_initial.sql")),
    (8, include_str!("schema/0002_secrets.sql")),
    (9, include_str!("schema/0003_keys.sql")),
];

/// The oldest format that a database is brought up from.
pub(crate) const OLDEST_FORMAT: u32 = 7;

/// Format of the database that this program writes. Events have one of their own.
pub const FORMAT: u32 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Makes what a database lacks since a format, 0 for an empty one, in one transaction.
pub(crate) async fn migrate(connection: &mut SqliteConnection, from: u32) -> Result<(), Error> {
    let wrong = |e| fault::of("making the tables of the database", e);
    // Another process may have done so meanwhile: from here on nobody else writes.
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
    let found: (u32,) = sqlx::query_as("SELECT user_version FROM pragma_user_version")
        .fetch_one(&mut *connection)
        .await
        .map_err(wrong)?;
    let from = from.max(found.0);
    for (format, text) in MIGRATIONS.iter().filter(|(format, _)| *format > from) {
        let text = format!("{text}\nPRAGMA user_version = {format};");
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *connection).await.map_err(wrong)?;
    }
    sqlx::raw_sql("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
    Ok(())
}
