//! The gate's directory.
//!
//! Owns that nobody else has anything of it, and the sockets in it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::protocol::CALLER;

/// The directory, of which nobody else may have anything.
pub(super) fn own(dir: &Path) -> io::Result<OwnedFd> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = File::from(rustix::fs::open(dir, flags, Mode::empty())?);
    let metadata = opened.metadata()?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        opened.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(opened.into())
}

/// Removes the sockets of callers, which ended with the gate before.
pub(super) fn sweep(dir: &OwnedFd) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        if entry.file_name().to_bytes().starts_with(CALLER.as_bytes()) {
            rustix::fs::unlinkat(dir, entry.file_name(), rustix::fs::AtFlags::empty())?;
        }
    }
    Ok(())
}

/// Listens under a name, which was another one's perhaps.
pub(super) fn listen(dir: &OwnedFd, name: &str) -> io::Result<UnixListener> {
    remove_socket(dir, name);
    // The name of a socket has room for 107 bytes, a path has not.
    let socket = UnixListener::bind(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

pub(super) fn remove_socket(dir: &OwnedFd, name: &str) {
    let _ = rustix::fs::unlinkat(dir.as_fd(), name, rustix::fs::AtFlags::empty());
}
