//! Files that are there whole or not at all, also after a crash.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Through a temporary name, so that what is half-written is never taken for whole.
pub(crate) fn write(path: &Path, patch: &[u8]) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(patch)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(dir)?.sync_all()
}
