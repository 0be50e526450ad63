//! Verbs on mounts, each a few system calls.
//!
//! Owns how a tree is taken, restricted and put somewhere. Targets are given by
//! descriptor, or relative to one of a tree that is ours alone: which names can be
//! trusted is for the callers to say.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, mount, mount_change, move_mount, open_tree, unmount,
};

use crate::spawner::sys;

/// `MOUNT_ATTR_*` of linux/mount.h.
pub(super) const RDONLY: u64 = 1;
pub(super) const NOSUID: u64 = 2;
pub(super) const NODEV: u64 = 4;
pub(super) const NOEXEC: u64 = 8;

/// Says what was being done when the kernel refused.
pub(super) fn doing<T, E: Into<io::Error>>(
    what: &str,
    path: impl AsRef<Path>,
    result: Result<T, E>,
) -> io::Result<T> {
    result.map_err(|error| {
        let (error, path) = (error.into(), path.as_ref().display());
        io::Error::new(error.kind(), format!("cannot {what} {path}: {error}"))
    })
}

/// A detached copy of the mount at a path, with its attributes. Its descriptor can be
/// passed on: it is a directory or file without a way up.
pub(super) fn copy(dir: impl AsFd, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    doing("open", &path, open_tree(dir, path.as_ref(), flags))
}

/// As [`copy`], with all that is mounted below, and with attributes added.
pub(super) fn copy_all(path: &Path, attributes: u64) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = doing("open", path, open_tree(CWD, path, flags))?;
    doing("protect", path, sys::restrict_mounts(tree.as_fd(), attributes))?;
    Ok(tree)
}

/// As [`copy`], with attributes added.
pub(super) fn copy_with(
    dir: impl AsFd,
    path: impl AsRef<Path>,
    attributes: u64,
) -> io::Result<OwnedFd> {
    let tree = copy(dir, &path)?;
    doing("protect", &path, sys::restrict_mount(tree.as_fd(), attributes))?;
    Ok(tree)
}

/// Puts a detached tree at a path below `dir`, which must be free of links.
pub(super) fn attach(tree: &OwnedFd, dir: impl AsFd, path: impl AsRef<Path>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    doing("mount on", &path, move_mount(tree, "", dir, path.as_ref(), flags))
}

/// Puts a detached tree on what a descriptor names.
pub(super) fn attach_on(tree: &OwnedFd, target: &OwnedFd, name: &str) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    doing("mount on", name, move_mount(tree, "", target, "", flags))
}

/// Mounts a new file system on a path that can be trusted.
pub(super) fn make(
    kind: &str,
    path: impl AsRef<Path>,
    flags: MountFlags,
    options: &str,
) -> io::Result<()> {
    let options = CString::new(options).map_err(io::Error::other)?;
    let made = mount(kind, path.as_ref(), kind, flags, options.as_c_str());
    doing(&format!("mount {kind} on"), path, made)
}

/// A new file system, not mounted anywhere yet.
pub(super) fn create(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    doing("make a", kind, create_with(kind, options, &[], attributes))
}

/// As [`create`], with options that have no value. The error is the kernel's own.
pub(super) fn create_with(
    kind: &str,
    options: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    for flag in flags {
        fsconfig_set_flag(&context, *flag)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Cuts this mount namespace off from all others.
pub(super) fn make_private() -> io::Result<()> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    doing("make private", "/", mount_change("/", flags))
}

/// Makes a mount the root, and leaves the one before behind.
pub(super) fn enter(root: &Path) -> io::Result<()> {
    doing("enter", root, rustix::process::chdir(root))?;
    doing("turn the root to", root, rustix::process::pivot_root(".", "."))?;
    doing("leave", "/", unmount(".", UnmountFlags::DETACH))?;
    doing("enter", "/", rustix::process::chdir("/"))
}
