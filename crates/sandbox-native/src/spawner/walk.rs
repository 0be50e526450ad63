//! Walking a tree that a sandbox wrote.
//!
//! Owns the way through it: by descriptors, never following a link, with a bounded
//! number of them open however deep the tree is, in the order of names. Reads nothing
//! but names and what the kernel notes of each.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

use crate::limits;

/// Whether anybody changes the tree meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// Nobody. What is named and not there is an error.
    AtRest,
    /// Its sandbox does. What is gone is passed over.
    InUse,
}

/// A place on the way.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The directory that it is in.
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    pub(super) stat: &'a Stat,
    /// 1 for what is in the top directory.
    pub(super) depth: usize,
}

/// A directory on the way.
struct Frame {
    /// Closed while too many below it are open.
    dir: Option<OwnedFd>,
    /// What is left of it, last first.
    names: Vec<CString>,
}

struct Walk {
    tree: Tree,
    left: u64,
}

const FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory as this walk does.
pub(super) fn open(dir: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    openat(dir, name, FLAGS, Mode::empty())
}

/// Opens the top of a tree.
pub(super) fn open_top(tree: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, tree, FLAGS, Mode::empty())
}

/// Visits everything below a directory, each directory before what is in it. `None`:
/// there is more than `entries_max`, and not all was visited.
pub(super) fn walk(
    top: OwnedFd,
    tree: Tree,
    entries_max: u64,
    mut visit: impl FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<Option<()>> {
    let mut walk = Walk { tree, left: entries_max };
    let Some(names) = walk.names(top.as_fd())? else { return Ok(None) };
    let mut frames = vec![Frame { dir: Some(top), names }];
    while let Some(frame) = frames.last_mut() {
        let Some(name) = frame.names.pop() else {
            leave(&mut frames)?;
            continue;
        };
        let depth = frames.len();
        let Some(Frame { dir: Some(dir), .. }) = frames.last() else {
            return Err(io::Error::other("a directory was closed while it was walked"));
        };
        let Some(stat) = walk.unless_gone(statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW))? else {
            continue;
        };
        visit(&Entry { dir: dir.as_fd(), name: &name, stat: &stat, depth })?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            continue;
        }
        let Some(child) = walk.unless_gone(open(dir, &name))? else { continue };
        let Some(names) = walk.names(child.as_fd())? else { return Ok(None) };
        frames.push(Frame { dir: Some(child), names });
        if let Some(far) = frames.len().checked_sub(limits::WALK_DIRS_MAX + 1) {
            frames[far].dir = None;
        }
    }
    Ok(Some(()))
}

/// Leaves the last directory; the one above it may have been closed. In a tree in use
/// it may have been moved, which is still somewhere in the tree.
fn leave(frames: &mut Vec<Frame>) -> io::Result<()> {
    if let [.., above, Frame { dir: Some(dir), .. }] = frames.as_mut_slice()
        && above.dir.is_none()
    {
        above.dir = Some(open(dir, c"..")?);
    }
    frames.pop();
    Ok(())
}

impl Walk {
    /// The names in a directory, last first. `None`: too many.
    fn names(&mut self, dir: BorrowedFd<'_>) -> io::Result<Option<Vec<CString>>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir)? {
            let Some(entry) = self.unless_gone(entry)? else { break };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
            self.left = left;
            names.push(name.to_owned());
        }
        names.sort_unstable_by(|one, other| other.cmp(one));
        Ok(Some(names))
    }

    fn unless_gone<T>(&self, result: rustix::io::Result<T>) -> io::Result<Option<T>> {
        match result {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if self.tree == Tree::InUse => Ok(None),
            result => Ok(Some(result?)),
        }
    }
}
