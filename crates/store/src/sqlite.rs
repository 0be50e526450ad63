//! The journal in an SQLite database, with a directory of blobs beside it.
//!
//! Write-ahead log, synced at every commit; one writer, which commits together
//! what waits together; readers of their own. Several processes may have it
//! open. A file that is not ours, is damaged or newer is left as it is.

mod audit;
mod changes;
mod entries;
mod journal;
mod keys;
mod known;
mod open;
mod readers;
mod search;
mod secrets;
mod settings;
mod space;
mod store;
pub mod transfer;
mod writer;

pub use audit::{Audit, AuditRequest};
pub use settings::Settings;
pub use space::{Space, UnnamedBlob};
pub use store::Sqlite;
