//! Files that are made under another name first, and directories whose names are durable.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes changes of names in a directory durable.
///
/// # Errors
/// What the disk says.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a file of a new name, for its owner only.
///
/// # Errors
/// What the disk says.
pub fn create_new(directory: &Path, prefix: &str) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{prefix}{}-{count}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match file {
            // Left by a dead process that had the same number.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((path, file?)),
        }
    }
}
