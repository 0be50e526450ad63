//! The tables: migrations, in order, and the format that each leads to.
//!
//! A migration is never changed once a release wrote it. The next one is another file, and
//! sets the format in `meta` to its own. None is applied to a database that exists: there
//! is one, and nothing older was released.

use sqlx::sqlite::SqliteConnection;

use super::fault;
use crate::Error;

/// Formats, and what makes each of the one before it.
const MIGRATIONS: &[(u32, &str)] = &[(7, include_str!("schema/0001_initial.sql"))];

/// Format of the database that this program writes. Events have one of their own.
pub const FORMAT: u32 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Makes all tables in an empty database, in one transaction.
pub(crate) async fn create(connection: &mut SqliteConnection) -> Result<(), Error> {
    let texts = MIGRATIONS.iter().map(|(_, text)| *text);
    for text in ["BEGIN"].into_iter().chain(texts).chain(["COMMIT"]) {
        let made = sqlx::raw_sql(text).execute(&mut *connection).await;
        made.map_err(|e| fault::of("making a new database", e))?;
    }
    Ok(())
}
