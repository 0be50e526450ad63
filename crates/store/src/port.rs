//! What is promised of a store: ports, and the values that pass through them.
//!
//! Every home passes [`crate::conformance`]. Must never name a database.

mod accounts;
mod blobs;
pub mod entries;
mod journal;
mod keys;
mod period;
mod reviews;
mod secrets;

pub use accounts::{
    Account, AccountStop, Accounts, Charge, Level, SessionCharge, Terms, TermsChange,
};
pub use blobs::{Blobs, StoredBlob};
pub use journal::{
    Before, CachedSnapshot, Cover, Journal, Page, SessionRow, SessionSnapshot, SessionSummary,
    VerifiedSession, load_all,
};
pub use keys::{KeyKind, Keys, StoredKey};
pub use period::Period;
pub use secrets::{Secrets, StoredSecret};
