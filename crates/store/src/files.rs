//! Directories for their owner only, what a crash left in them, and work that may block.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use crate::{Error, limits};

/// Makes a directory, and what is missing above it, for its owner only.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes old files with the prefix. Whatever stands in its way is left for the next time.
pub(crate) fn remove_leftovers(directory: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).map(|at| at.elapsed());
        let old = matches!(age, Ok(Ok(age)) if age > Duration::from_secs(limits::LEFTOVER_AGE_S));
        if old && entry.file_name().to_string_lossy().starts_with(prefix) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Runs file work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    // It ends early only when it panics or the runtime goes down.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Error::Closed))
}
