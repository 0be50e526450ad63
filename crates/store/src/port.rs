//! What is promised of a store: ports, and the values that pass through them.
//!
//! Every home passes [`crate::conformance`]. Must never name a database.

mod accounts;
mod blobs;
pub mod entries;
mod journal;
mod period;
mod reviews;

pub use accounts::{Account, Accounts, Change, Charge, Charged, Level, Stopped, Terms};
pub use blobs::{Blobs, Stored};
pub use journal::{
    Before, Cached, Cover, Journal, Page, SessionRow, Snapshot, Summary, Verified, load_all,
};
pub use period::Period;
