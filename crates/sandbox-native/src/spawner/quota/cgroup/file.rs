//! The files of a group, each of which is a word with the kernel.
//!
//! Owns how they are opened and written, in one system call each.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Writes to a file of the kernel's.
pub(super) fn put(path: &Path, text: &str) -> io::Result<()> {
    rustix::io::write(open(path, OFlags::WRONLY)?, text.as_bytes())?;
    Ok(())
}

/// Opens one.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?)
}
