//! A session's workspace: a tar archive goes in, changes come out.

mod builder;
mod changes;
mod error;
mod import;
mod made;

pub use builder::Builder;
pub use changes::{Base, Changes, changes};
pub use error::{Error, explain};
pub(crate) use import::is_empty;
pub use import::{ImportOutcome, import, is_filled};
pub use made::{FilledSandbox, MadeFile};
