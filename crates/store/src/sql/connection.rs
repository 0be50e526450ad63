//! A connection to a database of either kind, and how a statement is sent over it.
//!
//! Owns what the kinds do not share of that: PostgreSQL takes one statement at a time, with
//! places that are numbered within it. Must never hold a statement of its own but those that
//! begin and end a transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{BoxStream, StreamExt, TryStreamExt};
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::row::DatabaseRow;
use super::value::{BoundValue, SqlText};

/// Serializes whoever writes, in one transaction at a time, as SQLite's own lock does. The number
/// is `outrigge` in ASCII; advisory locks are of one database.
pub(super) const BEGIN_WRITING: &str = "BEGIN; SELECT pg_advisory_xact_lock(8031170644786604901)";
/// Why a transaction is not committed.
const FAILED: &str = "a statement of the transaction has failed";
/// One moment for everything that is read.
const BEGIN_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A connection to a database.
#[derive(Debug)]
pub(crate) enum DatabaseConnection {
    Sqlite(SqliteConnection),
    Postgres(Box<PostgresConnection>),
}

/// A connection to PostgreSQL, and the statements that it was given so far.
#[derive(Debug)]
pub(crate) struct PostgresConnection {
    pub(crate) connection: PgConnection,
    statements: HashMap<Box<str>, Arc<[Statement]>>,
    /// The transaction has failed: committing it would take it back without a word.
    has_failed: bool,
    /// Nothing is heard over it any more.
    is_lost: Arc<AtomicBool>,
}

/// A statement of PostgreSQL.
#[derive(Debug, PartialEq, Eq)]
enum Statement {
    Begin(&'static str),
    Commit,
    Other {
        text: Arc<str>,
        /// Which of the values it is given, by their numbers from 1 on.
        values: Vec<usize>,
    },
}

/// What came of statements that gave no rows.
type Affected = Result<u64, sqlx::Error>;

impl DatabaseConnection {
    pub(crate) fn postgres(connection: PgConnection) -> Self {
        let (statements, has_failed, is_lost) = (HashMap::new(), false, Arc::default());
        Self::Postgres(Box::new(PostgresConnection { connection, statements, has_failed, is_lost }))
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Whether another one has to be made: its server went away, or ended it.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::Postgres(connection) => connection.is_lost.load(Ordering::Relaxed),
        }
    }

    /// Gives the number of rows that were written.
    pub(super) async fn execute(&mut self, text: SqlText, values: Vec<BoundValue>) -> Affected {
        match self {
            Self::Sqlite(connection) => {
                let query = sqlx::query_with(text.sqlite(), BoundValue::sqlite(values)?);
                Ok(query.execute(connection).await?.rows_affected())
            }
            Self::Postgres(connection) => {
                let mut affected = 0;
                for statement in &*connection.statements(text.postgres()) {
                    affected = connection.execute(statement, &values).await?;
                }
                Ok(affected)
            }
        }
    }

    pub(super) async fn fetch_all(
        &mut self,
        text: SqlText,
        values: Vec<BoundValue>,
    ) -> Result<Vec<DatabaseRow>, sqlx::Error> {
        match self {
            Self::Sqlite(connection) => {
                let query = sqlx::query_with(text.sqlite(), BoundValue::sqlite(values)?);
                let rows = query.fetch_all(connection).await?;
                Ok(rows.into_iter().map(DatabaseRow::Sqlite).collect())
            }
            Self::Postgres(connection) => {
                let mut all = Vec::new();
                for statement in &*connection.statements(text.postgres()) {
                    all.extend(connection.fetch_all(statement, &values).await?);
                }
                Ok(all)
            }
        }
    }

    /// The rows of one statement, as they come.
    pub(super) fn fetch(
        &mut self,
        text: SqlText,
        values: Vec<BoundValue>,
    ) -> BoxStream<'_, Result<DatabaseRow, sqlx::Error>> {
        let failed = |error| futures_util::stream::once(async { Err(error) }).boxed();
        match self {
            Self::Sqlite(connection) => match BoundValue::sqlite(values) {
                Ok(values) => {
                    let rows = sqlx::query_with(text.sqlite(), values).fetch(connection);
                    rows.map_ok(DatabaseRow::Sqlite).boxed()
                }
                Err(error) => failed(error),
            },
            Self::Postgres(connection) => {
                let statements = connection.statements(text.postgres());
                let [Statement::Other { text, values: used }] = &*statements else {
                    return failed(sqlx::Error::Protocol("rows of one statement".to_owned()));
                };
                match BoundValue::postgres(&values, used) {
                    Ok(values) => {
                        let query = sqlx::query_with(AssertSqlSafe(Arc::clone(text)), values);
                        let lost = Arc::clone(&connection.is_lost);
                        let rows = query.fetch(&mut connection.connection);
                        let rows = rows.inspect_err(move |error| note_loss(&lost, error));
                        rows.map_ok(DatabaseRow::Postgres).boxed()
                    }
                    Err(error) => failed(error),
                }
            }
        }
    }

    /// Closes it in order. What was begun and not committed is taken back.
    pub(crate) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection) => connection.connection.close().await,
        }
    }
}

impl PostgresConnection {
    fn statements(&mut self, text: &str) -> Arc<[Statement]> {
        if let Some(known) = self.statements.get(text) {
            return Arc::clone(known);
        }
        let statements: Arc<[Statement]> = Statement::parse_all(text).into();
        self.statements.insert(text.into(), Arc::clone(&statements));
        statements
    }

    fn note<T>(&mut self, done: &Result<T, sqlx::Error>) {
        if let Err(error) = done {
            self.has_failed = true;
            note_loss(&self.is_lost, error);
        }
    }

    async fn execute(&mut self, statement: &Statement, values: &[BoundValue]) -> Affected {
        let done = match statement {
            Statement::Begin(text) => {
                self.has_failed = false;
                sqlx::raw_sql(*text).execute(&mut self.connection).await
            }
            Statement::Commit if self.has_failed => {
                // Whoever has it next begins anew.
                let taken_back = sqlx::raw_sql("ROLLBACK").execute(&mut self.connection).await;
                self.note(&taken_back);
                return Err(sqlx::Error::InvalidArgument(FAILED.to_owned()));
            }
            Statement::Commit => sqlx::raw_sql("COMMIT").execute(&mut self.connection).await,
            Statement::Other { text, values: used } => {
                let values = BoundValue::postgres(values, used)?;
                query(text, values).execute(&mut self.connection).await
            }
        };
        self.note(&done);
        Ok(done?.rows_affected())
    }

    async fn fetch_all(
        &mut self,
        statement: &Statement,
        values: &[BoundValue],
    ) -> Result<Vec<DatabaseRow>, sqlx::Error> {
        let Statement::Other { text, values: used } = statement else {
            return self.execute(statement, values).await.map(|_| Vec::new());
        };
        let values = BoundValue::postgres(values, used)?;
        let rows = query(text, values).fetch_all(&mut self.connection).await;
        self.note(&rows);
        Ok(rows?.into_iter().map(DatabaseRow::Postgres).collect())
    }
}

/// What is no answer of the database, or its last one, means that there are no more.
fn note_loss(is_lost: &AtomicBool, error: &sqlx::Error) {
    let answer = error.as_database_error();
    let code = answer.and_then(|answer| answer.code());
    if answer.is_none() || code.is_some_and(|code| code.starts_with("57P")) {
        is_lost.store(true, Ordering::Relaxed);
    }
}

fn query(
    text: &Arc<str>,
    values: PgArguments,
) -> sqlx::query::Query<'static, sqlx::Postgres, PgArguments> {
    sqlx::query_with(AssertSqlSafe(Arc::clone(text)), values)
}

impl Statement {
    /// Takes a text apart. None of ours has a semicolon or a dollar sign in a literal.
    fn parse_all(text: &str) -> Vec<Self> {
        let statements = text.split(';').map(str::trim).filter(|text| !text.is_empty());
        statements.map(Self::parse).collect()
    }

    fn parse(text: &str) -> Self {
        match text {
            "BEGIN IMMEDIATE" => return Self::Begin(BEGIN_WRITING),
            "BEGIN" => return Self::Begin(BEGIN_READING),
            "COMMIT" => return Self::Commit,
            _ => {}
        }
        let (mut numbered, mut values) = (String::with_capacity(text.len()), Vec::new());
        let mut parts = text.split('$');
        numbered.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let value = part[..digits].parse().unwrap_or(0);
            let place = values.iter().position(|known| *known == value).unwrap_or_else(|| {
                values.push(value);
                values.len() - 1
            });
            numbered.push_str(&format!("${}{}", place + 1, &part[digits..]));
        }
        Self::Other { text: numbered.into(), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn statements_are_taken_apart_with_the_values_that_each_is_given() {
        let text = "BEGIN IMMEDIATE; INSERT INTO a VALUES ($3, $1, $3); \
            SELECT b FROM a WHERE c = $12 AND d = $2; COMMIT";
        expect![[r#"
            Begin("BEGIN; SELECT pg_advisory_xact_lock(8031170644786604901)")
            Other { text: "INSERT INTO a VALUES ($1, $2, $1)", values: [3, 1] }
            Other { text: "SELECT b FROM a WHERE c = $1 AND d = $2", values: [12, 2] }
            Commit
        "#]]
        .assert_eq(
            &Statement::parse_all(text).iter().map(|it| format!("{it:?}\n")).collect::<String>(),
        );
    }
}
