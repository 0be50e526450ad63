//! Rows of a database of either kind, by their columns.
//!
//! Owns what a column may be: numbers of 64 bits, texts, bytes, and none. What is something else
//! is an error, as a column that somebody changed is.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, TypeInfo, ValueRef};

/// A row.
#[derive(Debug)]
pub(crate) enum DatabaseRow {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// What a column is read as.
pub(crate) trait FromColumn: Sized {
    fn from_column(row: &DatabaseRow, index: usize) -> Result<Self, sqlx::Error>;
}

/// What a row is read as: tuples of columns.
pub(crate) trait FromColumns: Sized {
    fn from_columns(row: &DatabaseRow) -> Result<Self, sqlx::Error>;
}

macro_rules! columns {
    ($($type:ty),*) => {
        $(impl FromColumn for $type {
            fn from_column(row: &DatabaseRow, index: usize) -> Result<Self, sqlx::Error> {
                match row {
                    DatabaseRow::Sqlite(row) => row.try_get(index),
                    DatabaseRow::Postgres(row) => row.try_get(index),
                }
            }
        })*
    };
}

columns!(String, Option<String>, Vec<u8>, Option<Vec<u8>>);

/// A number of PostgreSQL, which has several sizes of them, and truth apart.
fn number(row: &PgRow, index: usize) -> Result<Option<i64>, sqlx::Error> {
    let value = row.try_get_raw(index)?;
    let of = value.type_info();
    match of.name() {
        "BOOL" => Ok(row.try_get::<Option<bool>, _>(index)?.map(i64::from)),
        "INT4" => Ok(row.try_get::<Option<i32>, _>(index)?.map(i64::from)),
        _ => row.try_get(index),
    }
}

impl FromColumn for Option<i64> {
    fn from_column(row: &DatabaseRow, index: usize) -> Result<Self, sqlx::Error> {
        match row {
            DatabaseRow::Sqlite(row) => row.try_get(index),
            DatabaseRow::Postgres(row) => number(row, index),
        }
    }
}

impl FromColumn for i64 {
    fn from_column(row: &DatabaseRow, index: usize) -> Result<Self, sqlx::Error> {
        match row {
            DatabaseRow::Sqlite(row) => row.try_get(index),
            DatabaseRow::Postgres(row) => number(row, index)?.ok_or_else(|| {
                let source = Box::new(sqlx::error::UnexpectedNullError);
                sqlx::Error::ColumnDecode { index: index.to_string(), source }
            }),
        }
    }
}

impl FromColumn for bool {
    fn from_column(row: &DatabaseRow, index: usize) -> Result<Self, sqlx::Error> {
        match row {
            DatabaseRow::Sqlite(row) => row.try_get(index),
            DatabaseRow::Postgres(_) => Ok(i64::from_column(row, index)? != 0),
        }
    }
}

macro_rules! tuples {
    ($(($($type:ident $index:tt),*))*) => {
        $(impl<$($type: FromColumn),*> FromColumns for ($($type,)*) {
            fn from_columns(row: &DatabaseRow) -> Result<Self, sqlx::Error> {
                Ok(($($type::from_column(row, $index)?,)*))
            }
        })*
    };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
}
