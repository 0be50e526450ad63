//! A socket that the guest listens on, where nobody can pass connections in: as
//! process 1 of a container.
//!
//! Owns who may connect. Commands are of the same user there, so the file of the
//! socket keeps nobody out; but whoever is started into the container from outside
//! has a parent that is not in it, and nothing that descends from a command does.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::net::SocketFlags;

use crate::exec::tree;

/// Begins to listen, instead of whoever did at this path before.
pub(crate) fn listen(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    // For whoever may connect and is of another user, whom commands can't signal.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}

/// Takes one connection. `None`: there is none, or not from one who may.
pub(crate) fn accept(listener: &OwnedFd) -> Option<OwnedFd> {
    // Whatever is wrong with one connection is over with it.
    let socket = rustix::net::accept_with(listener, SocketFlags::CLOEXEC).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&socket).ok()?;
    tree::is_from_outside(peer.pid.as_raw_nonzero().get()).then_some(socket)
}
