//! A file of ours that could not be written.

use std::io;
use std::path::Path;

/// Which, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub(crate) struct WriteError {
    path: String,
    #[source]
    source: io::Error,
}

impl WriteError {
    /// What the system said of a path.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self { path, source }
    }
}
