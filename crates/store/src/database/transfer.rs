//! What leaves a store in one file, and comes back: backups of all of it, and sessions.

mod archive;
mod backup;
mod session_file;

pub use backup::{RestoreOutcome, SigningKey, backup, restore};
pub use session_file::{export, import};
