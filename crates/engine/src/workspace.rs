//! A session's workspace: a tar archive goes in, changes come out.

mod builder;
mod changes;
mod error;
mod import;

pub use builder::Builder;
pub use changes::{Base, Change, Changes, File, changes};
pub use error::{Error, explain};
pub use import::{History, Imported, import, is_filled};
