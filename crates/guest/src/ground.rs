//! What the guest stands on: namespaces with a root of their own, or the host itself, of
//! which it has a part.
//!
//! Owns the way from a path of the sandbox to where that is. In a root of its own both are
//! the same. Where there is none, the sandbox's disk is a directory of the host: callers
//! and file operations name `/workspace` as always, and commands, who see the host's
//! paths, find it by their working directory and by `$WORKSPACE`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::CWD;

/// Where the kernel has the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// In namespaces of its own.
    Apart,
    /// On the host, with all its other programs: Landlock and the filter are all there is.
    Shared,
}

/// Where relative paths start.
pub(crate) const WORKSPACE: &str = "/workspace";
/// The home of the sandbox's user.
pub(crate) const HOME: &str = "/home/agent";
/// For what is soon forgotten.
pub(crate) const TMP: &str = "/tmp";
/// Where whole outputs are, which commands can read and not change.
pub(crate) const OUTPUT: &str = "/var/outrigger/output";
/// What commands write of the disk.
pub(crate) const WRITTEN: [&str; 4] = [WORKSPACE, TMP, HOME, "/var/tmp"];

/// The disk, where it is not the root. Like the root it is one for the whole program, and
/// is set before anything is asked for.
static DISK: OnceLock<OwnedFd> = OnceLock::new();

/// Has the paths of the disk begin here.
pub(crate) fn begin_at(disk: OwnedFd) -> io::Result<&'static OwnedFd> {
    DISK.set(disk).map_err(|_| io::Error::other("the disk is named twice"))?;
    DISK.get().ok_or_else(|| io::Error::other("the disk is not kept"))
}

/// Whether `path` is `root` or beneath it.
pub(crate) fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path is on the disk, or above a part of it.
fn is_on_disk(path: &str) -> bool {
    let parts = || WRITTEN.into_iter().chain([OUTPUT]);
    path == "/" || parts().any(|part| is_within(path, part) || is_within(part, path))
}

/// Where an absolute path without links, `.` and `..` is to be looked up.
pub(crate) fn at(path: &str) -> (BorrowedFd<'static>, &str) {
    match DISK.get() {
        Some(disk) if path == "/" => (disk.as_fd(), "."),
        Some(disk) if is_on_disk(path) => (disk.as_fd(), path.trim_start_matches('/')),
        Some(_) | None => (CWD, path),
    }
}

/// A path that a caller named, as the kernel knows it for commands. The disk may have been
/// moved since the last time.
pub(crate) fn seen(path: &str) -> io::Result<String> {
    let Some(disk) = DISK.get() else { return Ok(path.to_owned()) };
    if !WRITTEN.into_iter().chain([OUTPUT]).any(|part| is_within(path, part)) {
        return Ok(path.to_owned());
    }
    let disk = std::fs::read_link(format!("/proc/self/fd/{}", disk.as_raw_fd()))?;
    let disk = disk.to_str().ok_or_else(|| io::Error::other("its place is no UTF-8"))?;
    Ok(format!("{disk}{path}"))
}

/// The user of commands and file operations. Root in namespaces of its own becomes another
/// for them; whoever is not, in a container or on the host's own ground, is the only one.
pub(crate) fn agent_id() -> u32 {
    /// That of every template.
    const AGENT_ID: u32 = 1000;
    let own = rustix::process::geteuid();
    if own.is_root() && DISK.get().is_none() { AGENT_ID } else { own.as_raw() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_has_its_parts_and_what_is_above_them_and_nothing_of_the_host() {
        for path in ["/", "/workspace", "/workspace/a", "/home", "/home/agent/.x", "/var/tmp"] {
            assert!(is_on_disk(path), "{path}");
        }
        for path in ["/usr", "/workspacer", "/homer", "/var/lib", "/var/outrigger/x", "/etc"] {
            assert!(!is_on_disk(path), "{path}");
        }
    }
}
