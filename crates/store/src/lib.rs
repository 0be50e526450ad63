//! The journal: append-only events, hash-chained and fenced per session, and the
//! blobs that are too large for it. Beside it the [`entries`] of memory and skills.
//!
//! Owns the two ports [`Journal`] and [`Blobs`], their home on one machine
//! ([`Database`], with its [`BlobDirectory`]), one in memory ([`Memory`]) for
//! simulations, the suite in [`conformance`] that each passes, and the [`Audit`] that reads
//! what the log of [`outrigger_audit`] is verified against. Also the [`Accounts`] that
//! sessions are charged to, because only here many sessions are seen at once. Must never
//! interpret what an event means: folding belongs to the turn machine, and a session's title
//! and status are handed in by whoever appends.
//!
//! Read first: [`Journal`], [`outrigger_audit::chain`], [`Error`]; [`entries::Entries`].

#![forbid(unsafe_code)]

mod blob_directory;
mod book;
pub mod conformance;
mod database;
mod error;
mod event;
mod files;
pub mod limits;
mod memory;
mod port;
mod sql;

pub use blob_directory::BlobDirectory;
pub use database::{
    AddressError, Audit, AuditRequest, Database, DatabaseAddress, DatabaseBlobs, Lease,
    LeasePurpose, Notices, PostgresAddress, Settings, Space, UnnamedBlob, installation, transfer,
};
pub use error::{BudgetRefusal, Error, ErrorSource, Responsibility, Retry};
pub use memory::Memory;
pub use port::{
    Account, AccountStop, Accounts, Before, Blobs, CachedSnapshot, Charge, Cover, Journal, KeyKind,
    Keys, Level, Page, Period, Secrets, SessionCharge, SessionRow, SessionSnapshot, SessionSummary,
    StoredBlob, StoredKey, StoredSecret, Terms, TermsChange, VerifiedSession, entries, load_all,
};
pub use sql::leases::DueSession;
pub use sql::log::prove::EventText;
pub use sql::schema::FORMAT;
