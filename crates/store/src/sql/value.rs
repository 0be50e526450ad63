//! The text of a statement and the values that it is given, for a database of either kind.
//!
//! Owns how a value is handed to each. Must never put a value into a text.

use std::borrow::Cow;
use std::sync::Arc;

use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, SqlSafeStr};

/// The text of a statement: one for both kinds where they agree.
#[derive(Debug, Clone)]
pub(crate) enum SqlText {
    Same(&'static str),
    Made(Arc<str>),
    /// Where they do not.
    Apart {
        sqlite: &'static str,
        postgres: &'static str,
    },
}

impl From<&'static str> for SqlText {
    fn from(text: &'static str) -> Self {
        Self::Same(text)
    }
}

impl From<Arc<str>> for SqlText {
    fn from(text: Arc<str>) -> Self {
        Self::Made(text)
    }
}

impl From<String> for SqlText {
    fn from(text: String) -> Self {
        Self::Made(text.into())
    }
}

impl SqlText {
    pub(super) fn sqlite(self) -> impl SqlSafeStr {
        match self {
            Self::Same(text) | Self::Apart { sqlite: text, .. } => text.into_sql_str(),
            Self::Made(text) => AssertSqlSafe(text).into_sql_str(),
        }
    }

    pub(super) fn postgres(&self) -> &str {
        match self {
            Self::Same(text) | Self::Apart { postgres: text, .. } => text,
            Self::Made(text) => text,
        }
    }
}

/// A value that a statement is given.
#[derive(Debug)]
pub(crate) enum BoundValue {
    Number(Option<i64>),
    Text(Option<String>),
    /// A text that others have too.
    Shared(Option<Arc<str>>),
    Bytes(Option<Vec<u8>>),
}

/// PostgreSQL takes no text with a NUL in it. None that is hashed or looked for has one.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

impl BoundValue {
    pub(super) fn sqlite(values: Vec<Self>) -> Result<SqliteArguments, sqlx::Error> {
        let mut arguments = SqliteArguments::default();
        arguments.reserve(values.len(), 0);
        for value in values {
            let added = match value {
                Self::Number(value) => arguments.add(value),
                Self::Text(value) => arguments.add(value),
                Self::Shared(value) => arguments.add(value),
                Self::Bytes(value) => arguments.add(value),
            };
            added.map_err(sqlx::Error::Encode)?;
        }
        Ok(arguments)
    }

    /// Those with the numbers that are used, which begin at 1.
    pub(super) fn postgres(values: &[Self], used: &[usize]) -> Result<PgArguments, sqlx::Error> {
        let mut arguments = PgArguments::default();
        for number in used {
            let value = number.checked_sub(1).and_then(|index| values.get(index));
            let missing = || sqlx::Error::Protocol(format!("a statement has no value {number}"));
            let added = match value.ok_or_else(missing)? {
                Self::Number(value) => arguments.add(value),
                Self::Text(value) => arguments.add(value.as_deref().map(without_nul)),
                Self::Shared(value) => arguments.add(value.as_deref().map(without_nul)),
                Self::Bytes(value) => arguments.add(value),
            };
            added.map_err(sqlx::Error::Encode)?;
        }
        Ok(arguments)
    }
}

macro_rules! bound {
    ($($from:ty => |$value:ident| $into:expr),* $(,)?) => {
        $(impl From<$from> for BoundValue {
            fn from($value: $from) -> Self {
                $into
            }
        })*
    };
}

bound! {
    i64 => |value| Self::Number(Some(value)),
    &i64 => |value| Self::Number(Some(*value)),
    u32 => |value| Self::Number(Some(value.into())),
    bool => |value| Self::Number(Some(value.into())),
    Option<i64> => |value| Self::Number(value),
    String => |value| Self::Text(Some(value)),
    &str => |value| Self::Text(Some(value.to_owned())),
    Option<String> => |value| Self::Text(value),
    Option<Arc<str>> => |value| Self::Shared(value),
    &[u8] => |value| Self::Bytes(Some(value.to_owned())),
    Option<Vec<u8>> => |value| Self::Bytes(value),
}
