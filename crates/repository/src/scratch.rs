//! Files without a name.
//!
//! Owns how one is made: what is built in it is gone with whoever builds it.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// A file in a directory that is gone with its last handle, also when we are killed.
///
/// # Errors
/// If it can't be made.
pub fn nameless(scratch: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(scratch)?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(scratch, flags, Mode::RUSR | Mode::WUSR)?))
}
