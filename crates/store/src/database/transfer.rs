//! What leaves a store: in one file that comes back, all of it or sessions; or all of it for
//! another database.

mod archive;
mod backup;
mod copy;
mod session_file;

pub use backup::{RestoreOutcome, SigningKey, backup, restore};
pub use copy::{CopyError, CopyOutcome, CopyProgress, copy};
pub use session_file::{export, import};
