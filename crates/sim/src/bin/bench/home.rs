//! A directory of a measurement's own, and the end of everything in it.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

use crate::error::{ErrorContext, Outcome};
use crate::spawner::Spawner;

/// A directory. Dropping it ends the sandboxes in it and deletes it, also when a
/// measurement was broken off.
#[derive(Debug)]
pub(crate) struct Home(TempDir);

impl Home {
    /// A new one, on a disk: beside this program, because the usual place for
    /// temporary files is often in memory, where a sync costs nothing.
    pub(crate) fn new() -> Outcome<Self> {
        let doing = "making a directory for the measurement";
        let program = std::env::current_exe().doing(doing)?;
        let beside = program.parent().unwrap_or(&program);
        tempfile::Builder::new().prefix("bench-").tempdir_in(beside).map(Self).doing(doing)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Where the sandboxes of a measurement are.
pub(crate) fn sandboxes(home: &Path) -> PathBuf {
    home.join("sandboxes")
}

/// Where the journal of a measurement is.
pub(crate) fn store(home: &Path) -> PathBuf {
    home.join("store")
}

impl Drop for Home {
    fn drop(&mut self) {
        // None is there if the measurement came to its end.
        if let Ok(spawner) = Spawner::of(&sandboxes(self.path())) {
            drop(spawner.end());
        }
    }
}
