//! What is beneath a directory of the host, opened by the kernel and never through a link.
//!
//! Owns the one way to a path that somebody else had a hand in: a repository, a sandbox, a
//! skill, an archive. A [`Dir`] is a handle, and every path is resolved from it by
//! openat2(2) with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`, so that neither a link that
//! stands on the way nor one that is put there meanwhile leads elsewhere. Must never follow
//! a link, nor open what is no regular file.
//!
//! The directory itself is named by a person: links on the way to it are followed, because
//! the person said so.

mod dir;
mod draft;
mod error;
mod file_type;
pub mod limits;
mod temporary;

pub use dir::{Dir, FileVersion, Stat};
pub use draft::Draft;
pub use error::Error;
pub use file_type::words;
