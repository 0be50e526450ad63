//! Names for what is not whole yet.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use crate::limits;

/// Makes something under a name that nobody uses.
pub(crate) fn unused<T>(
    mut make: impl FnMut(&Path) -> Result<T, Errno>,
) -> Result<(PathBuf, T), Errno> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut tries = 0;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!(".outrigger-{}-{count}.tmp", std::process::id()));
        match make(&name) {
            // Left by a dead process that had the same number.
            Err(Errno::EXIST) if tries < limits::DRAFT_NAMES_MAX => tries += 1,
            made => return made.map(|made| (name, made)),
        }
    }
}
