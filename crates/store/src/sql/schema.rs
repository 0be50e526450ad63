//! The tables: migrations, in order, and the format that each leads to.
//!
//! A migration is never changed once a release wrote it. The next one is another file, and
//! sets the format in `meta` to its own. A database of an older format gets those that it
//! lacks when it is opened for writing, all in one transaction. The texts are SQLite's;
//! PostgreSQL has other words for some of it, and a file of its own for what only it has.

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;

use super::connection::BEGIN_WRITING;
use super::fault;
use crate::Error;

/// A format, what makes it of the one before it, and what PostgreSQL needs besides.
struct Migration {
    format: u32,
    text: &'static str,
    postgres: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        format: OLDEST_FORMAT,
        text: include_str!("schema/0001_initial.sql"),
        postgres: include_str!("schema/0001_postgres.sql"),
    },
    Migration { format: 8, text: include_str!("schema/0002_secrets.sql"), postgres: "" },
    Migration { format: 9, text: include_str!("schema/0003_keys.sql"), postgres: "" },
    Migration { format: 10, text: include_str!("schema/0004_driven.sql"), postgres: "" },
];

/// The oldest format that a database is brought up from.
pub(crate) const OLDEST_FORMAT: u32 = 7;

/// Format of the database that this program writes. Events have one of their own.
pub const FORMAT: u32 = MIGRATIONS[MIGRATIONS.len() - 1].format;

const MAKING: &str = "making the tables of the database";

/// Lets a format pass that is known.
pub(crate) fn known_format(place: &str, found: u64) -> Result<(), Error> {
    let known = u64::from(FORMAT);
    if found > known {
        return Err(Error::Newer { place: place.to_owned(), found, known });
    }
    match found {
        0 => Err(Error::damaged(place, "its format is not written in it")),
        found if found < u64::from(OLDEST_FORMAT) => {
            Err(Error::Older { place: place.to_owned(), found, known: OLDEST_FORMAT.into() })
        }
        _ => Ok(()),
    }
}

/// Makes what a database lacks since a format, 0 for an empty one, in one transaction.
pub(crate) async fn migrate(connection: &mut SqliteConnection, from: u32) -> Result<(), Error> {
    let wrong = |e| fault::of(MAKING, e);
    // Another process may have done so meanwhile: from here on nobody else writes.
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
    let found: (u32,) = sqlx::query_as("SELECT user_version FROM pragma_user_version")
        .fetch_one(&mut *connection)
        .await
        .map_err(wrong)?;
    let from = from.max(found.0);
    for Migration { format, text, .. } in MIGRATIONS.iter().filter(|it| it.format > from) {
        let text = format!("{text}\nPRAGMA user_version = {format};");
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *connection).await.map_err(wrong)?;
    }
    sqlx::raw_sql("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
    Ok(())
}

/// Makes what a database of PostgreSQL lacks, in one transaction, where it is ours or empty.
pub(crate) async fn migrate_postgres(
    connection: &mut PgConnection,
    place: &str,
) -> Result<(), Error> {
    const HAS_TABLES: &str = "SELECT to_regclass('meta') IS NOT NULL";
    const FOUND: &str = "SELECT value FROM meta WHERE name = 'format'";
    let wrong = |e| fault::of(MAKING, e);
    sqlx::raw_sql(BEGIN_WRITING).execute(&mut *connection).await.map_err(wrong)?;
    let (has_tables,): (bool,) =
        sqlx::query_as(HAS_TABLES).fetch_one(&mut *connection).await.map_err(wrong)?;
    let mut from = 0;
    if has_tables {
        let found: Option<(String,)> =
            sqlx::query_as(FOUND).fetch_optional(&mut *connection).await.map_err(wrong)?;
        let found = found.and_then(|(text,)| text.parse().ok()).unwrap_or(0);
        known_format(place, found)?;
        from = u32::try_from(found).unwrap_or(FORMAT);
    }
    for Migration { text, postgres, .. } in MIGRATIONS.iter().filter(|it| it.format > from) {
        let text = in_postgres(text) + postgres;
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *connection).await.map_err(wrong)?;
    }
    sqlx::raw_sql("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
    Ok(())
}

/// A text in the words of PostgreSQL: numbers of 64 bits, texts in the order of their bytes, and
/// no table to search in.
fn in_postgres(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let statements = text.split_inclusive(';').filter(|statement| {
        let statement = statement.trim_start();
        !statement.starts_with("CREATE VIEW") && !statement.starts_with("CREATE VIRTUAL TABLE")
    });
    let statements: String = statements.collect();
    statements
        .replace(
            "INTEGER NOT NULL PRIMARY KEY",
            "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        )
        .replace("INTEGER", "BIGINT")
        .replace("TEXT", "TEXT COLLATE \"C\"")
}

/// The tables that only PostgreSQL has.
#[cfg(test)]
pub(crate) fn postgres_tables() -> impl Iterator<Item = String> {
    let made = MIGRATIONS.iter().flat_map(|it| it.postgres.split("CREATE TABLE ").skip(1));
    made.map(|rest| rest.split(' ').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn texts_in_the_words_of_postgres() {
        let text = "-- A table; with text.\nCREATE TABLE a (\n    b INTEGER NOT NULL PRIMARY KEY,\n    \
            c INTEGER, text TEXT NOT NULL);\n\nCREATE VIEW d AS SELECT 1;\nINSERT INTO a VALUES (1);\n";
        expect![[r#"
            CREATE TABLE a (
                b BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
                c BIGINT, text TEXT COLLATE "C" NOT NULL);
            INSERT INTO a VALUES (1);
        "#]]
        .assert_eq(&in_postgres(text));
    }
}
