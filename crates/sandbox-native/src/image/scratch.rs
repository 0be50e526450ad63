//! Files for what is read twice: copies of archives, and blobs while they arrive.
//!
//! Owns how one is made. It never has a name that anybody could open or has to delete.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// A file without a name, gone when it is closed.
pub(super) fn scratch(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(dir, flags, mode) {
        Ok(file) => Ok(file.into()),
        // Not every file system has such files.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            let mut bytes = [0; 8];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
            let path = dir.join(format!(".blob-{:x}", u64::from_ne_bytes(bytes)));
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, mode)?;
            std::fs::remove_file(&path)?;
            Ok(file.into())
        }
        Err(error) => Err(error.into()),
    }
}
