//! What an error of the database means to us.
//!
//! Codes: <https://www.sqlite.org/rescode.html>, and those of PostgreSQL:
//! <https://www.postgresql.org/docs/15/errcodes-appendix.html>.

use std::sync::Arc;

use sqlx::postgres::PgDatabaseError;

use crate::Error;

const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CONSTRAINT: u32 = 19;
const NOT_A_DATABASE: u32 = 26;
const GENERIC: u32 = 1;
const IO_WRITE: u32 = 10 | (3 << 8);
/// The index of the log could not be given its size: the disk is full.
const IO_SHM_SIZE: u32 = 10 | (19 << 8);

/// The place that messages name.
pub(crate) const DATABASE: &str = "the journal's database";

/// The code of PostgreSQL.
fn postgres_code(error: &sqlx::Error) -> Option<&str> {
    Some(error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?.code())
}

fn code_of(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Whether a file is no database at all, as its first bytes say.
pub(crate) fn is_no_database(error: &sqlx::Error) -> bool {
    code_of(error) == Some(NOT_A_DATABASE)
}

/// Translates an error of a statement.
pub(crate) fn of(doing: &'static str, error: sqlx::Error) -> Error {
    if let Some(code) = postgres_code(&error) {
        let code = code.to_owned();
        return of_postgres(doing, &code, error);
    }
    let code = match code_of(&error) {
        Some(IO_SHM_SIZE) => Some(FULL),
        code => code.map(|code| code & 0xff),
    };
    match (code, error) {
        (Some(FULL), error) => Error::NoSpace { doing, source: Arc::new(error) },
        (Some(BUSY | LOCKED), error) => Error::Busy { doing, source: Arc::new(error) },
        // A missing table or column is GENERIC, a row that must not exist CONSTRAINT:
        // our statements are right, so the content is not.
        (Some(CORRUPT | NOT_A_DATABASE | CONSTRAINT | GENERIC), error) => {
            let said = error.as_database_error().map(|error| error.message().to_owned());
            Error::damaged(DATABASE, said.unwrap_or_default())
        }
        (
            None,
            error @ (sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnNotFound(_)),
        ) => Error::damaged(DATABASE, error.to_string()),
        (_, error) => Error::Io { doing, source: Arc::new(error) },
    }
}

fn of_postgres(doing: &'static str, code: &str, error: sqlx::Error) -> Error {
    match code {
        "53100" => Error::NoSpace { doing, source: Arc::new(error) },
        // A lock that was waited for too long, two that waited for each other, and too many
        // connections.
        "55P03" | "40P01" | "40001" | "53300" => Error::Busy { doing, source: Arc::new(error) },
        // As above: rows that must not exist, tables and columns that must, damaged pages.
        _ if code.starts_with("23") || code.starts_with("42P") || code.starts_with("XX") => {
            let said = error.as_database_error().map(|error| error.message().to_owned());
            Error::damaged(DATABASE, said.unwrap_or_default())
        }
        "42703" => Error::damaged(DATABASE, error.to_string()),
        _ => Error::Io { doing, source: Arc::new(error) },
    }
}

/// Translates an error of a commit. Where the log could not be written, the
/// commit is not in it; where writing it through to the disk failed, it may be.
pub(crate) fn of_commit(error: sqlx::Error) -> Error {
    // What PostgreSQL says of a commit is that it was taken back, unless it goes down.
    let is_known = |code: &str| !code.starts_with("57") && !code.starts_with("08");
    if postgres_code(&error).is_some_and(is_known)
        || matches!(error, sqlx::Error::InvalidArgument(_))
    {
        return of("committing", error);
    }
    match code_of(&error) {
        Some(FULL | BUSY | IO_WRITE) => of("committing", error),
        _ => Error::Uncertain { source: Arc::new(error) },
    }
}
