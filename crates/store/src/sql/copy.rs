//! Every row of a store, from SQLite into PostgreSQL.
//!
//! Owns which tables are copied; their columns are those that the source has. Must never begin or
//! end a transaction.

use futures_util::TryStreamExt;

use super::connection::DatabaseConnection;
use super::integer::unsigned;
use super::row::{DatabaseRow, FromColumn};
use super::text_vector::vector;
use super::value::BoundValue;
use super::{fault, query, query_as};
use crate::entries::EntryPath;
use crate::{Error, limits};

/// What is copied, row by row.
pub(crate) const TABLES: [&str; 17] = [
    "sessions",
    "events",
    "snapshots",
    "log",
    "checkpoints",
    "accounts",
    "charges",
    "memory_scopes",
    "contents",
    "entries",
    "versions",
    "proposals",
    "comments",
    "usage",
    "secrets",
    "keys",
    "driven",
];

/// What is not, and why.
#[cfg(test)]
const LEFT_OUT: [(&str, &str); 4] = [
    ("meta", "the format is written by the migrations, and who signs by whoever opens it"),
    ("search", "the words are made anew from the contents"),
    ("blobs", "they are made of the files beside SQLite"),
    ("blob_pieces", "they are made of the files beside SQLite"),
];

const COLUMNS: &str = "SELECT name, type FROM pragma_table_info($1) ORDER BY cid";
/// Each as the table has it whose rows are numbered by it.
const NUMBERED: &str = "SELECT table_name, column_name FROM information_schema.columns \
    WHERE table_schema = current_schema() AND is_identity = 'YES'";
/// The migrations count nothing, and this row says so.
const UNCOUNTED: &str = "DELETE FROM usage WHERE holder = 'all' AND versions = 0 AND bytes = 0";
const TEXTS: &str = "SELECT entries.entry, entries.path, contents.bytes FROM entries \
    JOIN contents ON contents.content = entries.content WHERE entries.searchable = 1";
const WORDS: &str = "UPDATE entries SET words = CAST($2 AS TSVECTOR) WHERE entry = $1";
/// A session is at home where its sandboxes are, and no process drives it.
const HOME: &str = "INSERT INTO driven (session, server) SELECT session, $1 FROM sessions \
    WHERE true ON CONFLICT (session) DO UPDATE SET server = excluded.server, process = NULL";

pub(crate) fn wrong(error: sqlx::Error) -> Error {
    fault::of("copying the store", error)
}

/// What a column holds.
#[derive(Debug, Clone, Copy)]
enum ColumnKind {
    Number,
    Text,
    Bytes,
}

impl ColumnKind {
    /// By the words that our tables are made with.
    fn parse(declared: &str) -> Option<Self> {
        match declared {
            "BIGINT" | "INTEGER" => Some(Self::Number),
            "TEXT" => Some(Self::Text),
            "BYTEA" => Some(Self::Bytes),
            _ => None,
        }
    }

    /// Reads a value, and how many bytes it has.
    fn read(self, row: &DatabaseRow, index: usize) -> Result<(BoundValue, usize), sqlx::Error> {
        let fixed = size_of::<i64>();
        Ok(match self {
            Self::Number => (Option::<i64>::from_column(row, index)?.into(), fixed),
            Self::Text => {
                let text = Option::<String>::from_column(row, index)?;
                let bytes = text.as_ref().map_or(0, String::len);
                (text.into(), bytes)
            }
            Self::Bytes => {
                let bytes = Option::<Vec<u8>>::from_column(row, index)?;
                let length = bytes.as_ref().map_or(0, Vec::len);
                (bytes.into(), length)
            }
        })
    }
}

/// How many rows a table has.
pub(crate) async fn count(connection: &mut DatabaseConnection, table: &str) -> Result<u64, Error> {
    let counted = query_as(format!("SELECT COUNT(*) FROM {table}")).fetch_one(connection).await;
    let (rows,): (i64,) = counted.map_err(wrong)?;
    unsigned(rows)
}

/// The first table of a database in which anything is, whoever put it there.
pub(crate) async fn occupied(
    connection: &mut DatabaseConnection,
) -> Result<Option<&'static str>, Error> {
    query(UNCOUNTED).execute(&mut *connection).await.map_err(wrong)?;
    for table in TABLES.into_iter().chain(["blobs", "blob_pieces"]) {
        let any = query_as(format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT 1) one"));
        let (any,): (i64,) = any.fetch_one(connection).await.map_err(wrong)?;
        if any > 0 {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

/// Rows on their way, in one statement.
struct Chunk<'a> {
    table: &'a str,
    columns: &'a [String],
    values: Vec<BoundValue>,
    rows: usize,
    bytes: usize,
}

impl Chunk<'_> {
    fn is_full(&self) -> bool {
        self.rows >= limits::COPY_ROWS_MAX || self.bytes >= limits::COPY_BYTES_MAX
    }

    /// Gives how many rows there were.
    async fn insert(&mut self, to: &mut DatabaseConnection) -> Result<u64, Error> {
        if self.rows == 0 {
            return Ok(0);
        }
        let width = self.columns.len();
        let row = |row: usize| {
            let places: Vec<_> = (1..=width).map(|at| format!("${}", row * width + at)).collect();
            format!("({})", places.join(", "))
        };
        let rows: Vec<_> = (0..self.rows).map(row).collect();
        let (columns, rows) = (self.columns.join(", "), rows.join(", "));
        let text = format!("INSERT INTO {} ({columns}) VALUES {rows}", self.table);
        let values = std::mem::take(&mut self.values);
        let insert = values.into_iter().fold(query(text), |query, value| query.bind(value));
        (self.rows, self.bytes) = (0, 0);
        insert.execute(to).await.map_err(wrong)
    }
}

/// Copies a table, and tells how many rows came. Gives their bytes.
pub(crate) async fn rows(
    (from, to): (&mut DatabaseConnection, &mut DatabaseConnection),
    table: &'static str,
    copied: impl Fn(u64),
) -> Result<u64, Error> {
    let declared: Vec<(String, String)> =
        query_as(COLUMNS).bind(table).fetch_all(from).await.map_err(wrong)?;
    let kinds: Option<Vec<_>> = declared.iter().map(|(_, of)| ColumnKind::parse(of)).collect();
    let foreign =
        || Error::damaged(format!("the table {table}"), "it has a column of no known kind");
    let kinds = kinds.filter(|kinds| !kinds.is_empty()).ok_or_else(foreign)?;
    let columns: Vec<String> = declared.into_iter().map(|(name, _)| name).collect();
    let select = query(format!("SELECT {} FROM {table}", columns.join(", ")));
    let mut found = select.fetch(from);
    let mut chunk = Chunk { table, columns: &columns, values: Vec::new(), rows: 0, bytes: 0 };
    let mut all = 0;
    while let Some(row) = found.try_next().await.map_err(wrong)? {
        for (index, kind) in kinds.iter().enumerate() {
            let (value, bytes) = kind.read(&row, index).map_err(wrong)?;
            chunk.values.push(value);
            chunk.bytes += bytes;
            all += bytes as u64;
        }
        chunk.rows += 1;
        if chunk.is_full() {
            copied(chunk.insert(to).await?);
        }
    }
    copied(chunk.insert(to).await?);
    Ok(all)
}

/// Makes what the rows of SQLite do not have: the words of the newest versions, the numbers that
/// come next, and the server at which each session is at home.
pub(crate) async fn complete(
    (from, to): (&mut DatabaseConnection, &mut DatabaseConnection),
    server: i64,
) -> Result<(), Error> {
    let mut texts = query_as(TEXTS).fetch(from);
    while let Some((entry, path, text)) = texts.try_next().await.map_err(wrong)? {
        let (entry, path, text): (i64, String, Vec<u8>) = (entry, path, text);
        let foreign = |_| Error::damaged(format!("entry {entry}"), "its path is none");
        let path = EntryPath::parse(&path).map_err(foreign)?;
        let update = query(WORDS).bind(entry).bind(vector(&path, &text));
        update.execute(to).await.map_err(wrong)?;
    }
    let numbered: Vec<(String, String)> = query_as(NUMBERED).fetch_all(to).await.map_err(wrong)?;
    for (table, column) in numbered {
        // Of an empty table there is no greatest, and nothing is set.
        let next = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), MAX({column})) FROM {table}"
        );
        query(next).fetch_all(to).await.map_err(wrong)?;
    }
    query(HOME).bind(server).execute(to).await.map(drop).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::schema;
    use sqlx::{Connection, SqliteConnection};
    use std::collections::BTreeSet;

    #[tokio::test]
    async fn every_table_is_copied_or_has_a_reason_why_it_is_not() {
        let mut made = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        schema::migrate(&mut made, 0).await.unwrap();
        // Where an index keeps its words is part of it.
        const MADE: &str = "SELECT name FROM pragma_table_list WHERE schema = 'main' \
            AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite%'";
        let sqlite: Vec<(String,)> = sqlx::query_as(MADE).fetch_all(&mut made).await.unwrap();
        let sqlite: BTreeSet<String> = sqlite.into_iter().map(|(name,)| name).collect();
        let all = sqlite.into_iter().chain(schema::postgres_tables()).collect::<BTreeSet<_>>();
        let left_out = LEFT_OUT.iter().inspect(|(_, why)| assert!(!why.is_empty()));
        let known: Vec<_> = TABLES.into_iter().chain(left_out.map(|(table, _)| *table)).collect();
        let listed: BTreeSet<String> = known.iter().map(|table| (*table).to_owned()).collect();
        assert_eq!(all, listed, "each table is in TABLES or in LEFT_OUT");
        assert_eq!(listed.len(), known.len(), "and once");
    }
}
