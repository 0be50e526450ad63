//! The tables, and the statements that read and write them.
//!
//! Texts are those that SQLite and PostgreSQL both take, as far as they can be; each is sent
//! to a connection that is handed in. Must never open a connection.

pub(crate) mod accounts;
pub(crate) mod entries;
pub(crate) mod fault;
pub(crate) mod integer;
pub(crate) mod journal;
pub(crate) mod keys;
pub(crate) mod log;
pub(crate) mod schema;
pub(crate) mod secrets;
