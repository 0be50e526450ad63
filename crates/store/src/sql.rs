//! The tables, and the statements that read and write them.
//!
//! Texts are those that SQLite and PostgreSQL both take, as far as they can be; each is sent
//! to a connection that is handed in. Must never open a connection.

pub(crate) mod accounts;
pub(crate) mod connection;
pub(crate) mod copy;
pub(crate) mod entries;
pub(crate) mod fault;
pub(crate) mod integer;
pub(crate) mod journal;
pub(crate) mod keys;
pub(crate) mod leases;
pub(crate) mod log;
mod query;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod secrets;
pub(crate) mod text_vector;
mod value;

pub(crate) use query::{Query, query, query_as};
pub(crate) use value::SqlText;
