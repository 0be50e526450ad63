//! The journal: append-only events, hash-chained and fenced per session, and the
//! blobs that are too large for it. Beside it the [`entries`] of memory and skills.
//!
//! Owns the two ports [`Journal`] and [`Blobs`], their home on one machine
//! ([`Sqlite`], with its blob [`Directory`]), one in memory ([`Memory`]) for
//! simulations, the suite in [`conformance`] that each passes, and the [`Audit`] that reads
//! what the log of [`outrigger_audit`] is verified against. Also the [`Accounts`] that
//! sessions are charged to, because only here many sessions are seen at once. Must never interpret what an event
//! means: folding belongs to the turn machine, and a session's title and status are
//! handed in by whoever appends.
//!
//! Read first: [`Journal`], [`outrigger_audit::chain`], [`Error`]; [`entries::Entries`].

#![forbid(unsafe_code)]

mod accounts;
mod blobs;
pub mod conformance;
mod directory;
pub mod entries;
mod entry;
mod error;
mod journal;
pub mod limits;
mod memory;
mod period;
mod snapshot;
mod sqlite;
mod transfer;

pub use accounts::{Account, Accounts, Change, Charge, Charged, Level, Stopped, Terms};
pub use blobs::{Blobs, Stored};
pub use directory::Directory;
pub use error::{Cause, Error, Fault, Retry};
pub use journal::{
    Before, Cached, Cover, Journal, Page, SessionRow, Snapshot, Summary, Verified, load_all,
};
pub use memory::Memory;
pub use period::Period;
pub use sqlite::{
    Audit, AuditRequest, EventText, FORMAT, Restored, Settings, SigningKey, Space, Sqlite, Unnamed,
    restore,
};
