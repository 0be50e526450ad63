//! What is shown of the host, without a way to whoever listens there.
//!
//! Owns how a tree of the host is taken so that its sockets and FIFOs do not answer: to a
//! mount that is only read they are open, because what is said to them is no write to a
//! disk. Where the ids of all files can be mapped away nobody may write to any of them, and
//! the kernel counts that as one (inode_permission in fs/namei.c). Elsewhere an overlay has
//! inodes of its own, behind which nobody listens. Both hold for what appears later too.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::mount::MountAttrFlags;

use super::mounts::{self, NODEV, NOSUID, RDONLY};
use super::{idmap, overlay};
use crate::spawner::sys;

/// How trees of the host are taken.
#[derive(Debug)]
pub(super) struct HostTrees {
    /// The map in which no file belongs to anybody, where it can be made.
    nobody: Option<OwnedFd>,
}

impl HostTrees {
    /// As it can be done here.
    pub(super) fn new() -> Self {
        Self { nobody: idmap::nobody().ok() }
    }

    /// A tree of the host, with all that is mounted below. `empty` is a folder with nothing
    /// in it.
    pub(super) fn take(&self, host: &Path, empty: &Path) -> io::Result<OwnedFd> {
        let tree = mounts::copy_all(host, RDONLY | NOSUID | NODEV)?;
        // Not every file system has its ids mapped.
        let mapped =
            self.nobody.as_ref().map(|nobody| sys::map_mounts(tree.as_fd(), nobody.as_fd()));
        if matches!(mapped, Some(Ok(()))) || !host.is_dir() || has_mounts_below(host)? {
            return Ok(tree);
        }
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV;
        let lowers = format!("{}:{}", overlay::quoted(host)?, overlay::quoted(empty)?);
        // Kernels before 5.11 give none to who is not root on the host.
        mounts::create("overlay", &[("lowerdir", &lowers)], attributes).or(Ok(tree))
    }
}

/// Whether anything is mounted below, which an overlay would not show.
fn has_mounts_below(host: &Path) -> io::Result<bool> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let mut points = table.lines().filter_map(|line| line.split(' ').nth(4));
    // The kernel writes blanks and the like as numbers. A folder with such a name is not found
    // here, and shown as it is without what is mounted below.
    Ok(points.any(|point| Path::new(point) != host && Path::new(point).starts_with(host)))
}
