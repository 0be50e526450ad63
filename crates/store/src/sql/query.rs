//! A statement, put together and sent to a database of either kind.

use std::marker::PhantomData;

use futures_util::Stream;
use futures_util::stream::BoxStream;

use super::connection::DatabaseConnection;
use super::row::{DatabaseRow, FromColumns};
use super::value::{BoundValue, SqlText};

/// A statement.
#[derive(Debug)]
pub(crate) struct Query {
    text: SqlText,
    values: Vec<BoundValue>,
}

/// A statement whose rows are tuples.
#[derive(Debug)]
pub(crate) struct QueryAs<O> {
    query: Query,
    of: PhantomData<fn() -> O>,
}

pub(crate) fn query(text: impl Into<SqlText>) -> Query {
    Query { text: text.into(), values: Vec::with_capacity(8) }
}

pub(crate) fn query_as<O: FromColumns>(text: impl Into<SqlText>) -> QueryAs<O> {
    query(text).of()
}

impl Query {
    pub(crate) fn bind(mut self, value: impl Into<BoundValue>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Reads its rows as tuples.
    pub(crate) fn of<O: FromColumns>(self) -> QueryAs<O> {
        QueryAs { query: self, of: PhantomData }
    }

    /// Gives the number of rows that were written.
    pub(crate) async fn execute(
        self,
        connection: &mut DatabaseConnection,
    ) -> Result<u64, sqlx::Error> {
        connection.execute(self.text, self.values).await
    }

    pub(crate) async fn fetch_all(
        self,
        connection: &mut DatabaseConnection,
    ) -> Result<Vec<DatabaseRow>, sqlx::Error> {
        connection.fetch_all(self.text, self.values).await
    }

    /// The first row. No statement of ours has many of which one is wanted.
    pub(crate) async fn fetch_optional(
        self,
        connection: &mut DatabaseConnection,
    ) -> Result<Option<DatabaseRow>, sqlx::Error> {
        Ok(self.fetch_all(connection).await?.into_iter().next())
    }

    pub(crate) async fn fetch_one(
        self,
        connection: &mut DatabaseConnection,
    ) -> Result<DatabaseRow, sqlx::Error> {
        self.fetch_optional(connection).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// The rows as they come.
    pub(crate) fn fetch(
        self,
        connection: &mut DatabaseConnection,
    ) -> BoxStream<'_, Result<DatabaseRow, sqlx::Error>> {
        connection.fetch(self.text, self.values)
    }
}

impl<O: FromColumns> QueryAs<O> {
    pub(crate) fn bind(self, value: impl Into<BoundValue>) -> Self {
        Self { query: self.query.bind(value), ..self }
    }

    pub(crate) async fn fetch_all(
        self,
        connection: &mut DatabaseConnection,
    ) -> Result<Vec<O>, sqlx::Error> {
        self.query.fetch_all(connection).await?.iter().map(O::from_columns).collect()
    }

    pub(crate) async fn fetch_optional(
        self,
        connection: &mut DatabaseConnection,
    ) -> Result<Option<O>, sqlx::Error> {
        self.query.fetch_optional(connection).await?.as_ref().map(O::from_columns).transpose()
    }

    pub(crate) async fn fetch_one(
        self,
        connection: &mut DatabaseConnection,
    ) -> Result<O, sqlx::Error> {
        O::from_columns(&self.query.fetch_one(connection).await?)
    }

    /// The rows as they come.
    pub(crate) fn fetch(
        self,
        connection: &mut DatabaseConnection,
    ) -> impl Stream<Item = Result<O, sqlx::Error>> + Send + Unpin {
        use futures_util::StreamExt as _;
        self.query.fetch(connection).map(|row| O::from_columns(&row?))
    }
}
