//! The journal in a database of SQLite or PostgreSQL.
//!
//! One writer in each process, which commits together what waits together, and of all
//! processes one at a time; readers of their own. SQLite has a write-ahead log, synced at every
//! commit, and a directory of blobs beside it. A database that is not ours, is damaged or newer
//! is left as it is.

mod audit;
mod blobs;
mod changes;
mod driven;
mod entries;
mod installation;
mod journal;
mod keys;
mod known;
mod leased;
mod leases;
mod notices;
mod place;
mod postgres;
mod readers;
mod secrets;
mod settings;
mod space;
mod sqlite;
mod store;
pub mod transfer;
mod writer;

pub use audit::{Audit, AuditRequest};
pub use blobs::DatabaseBlobs;
pub use installation::installation;
pub use leases::{Lease, LeasePurpose};
pub use notices::Notices;
pub use place::DatabaseAddress;
pub use postgres::{AddressError, PostgresAddress};
pub use settings::Settings;
pub use space::{Space, UnnamedBlob};
pub use store::Database;
