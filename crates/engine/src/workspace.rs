//! A session's workspace: a tar archive goes in, changes come out.

mod builder;
mod changes;
mod error;
mod import;

pub use builder::Builder;
pub use changes::{Base, Changes, changes};
pub use error::{Error, explain};
pub(crate) use import::is_empty;
pub use import::{ImportOutcome, import, is_filled};
