//! Walking a tree that a sandbox wrote.
//!
//! Owns the way through it: by descriptors, never following a link, with a bounded
//! number of them open however deep the tree is, in the order of names. Reads nothing
//! but names and what the kernel notes of each.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::limits;

/// Whether anybody changes the tree meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeState {
    /// Nobody. What is named and not there is an error.
    AtRest,
    /// Its sandbox does. What is gone is passed over.
    InUse,
}

/// A place on the way.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// The directory that it is in.
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) stat: &'a Stat,
    /// 1 for what is in the top directory.
    pub(crate) depth: usize,
}

/// A directory on the way.
struct Frame {
    /// Its name in the one above.
    name: CString,
    held: DirHandle,
    /// What is left of it, last first.
    names: Vec<CString>,
}

/// How a directory on the way is known.
enum DirHandle {
    Open(OwnedFd),
    /// Closed while too many below it are open, and recognised by this.
    Closed(Identity),
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(dir: &OwnedFd) -> rustix::io::Result<Identity> {
    let stat = fstat(dir)?;
    Ok((stat.st_dev, stat.st_ino))
}

struct Walk {
    tree: TreeState,
    left: u64,
}

const FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory as this walk does.
pub(crate) fn open(dir: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    openat(dir, name, FLAGS, Mode::empty())
}

/// Opens the top of a tree.
pub(crate) fn open_top(tree: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, tree, FLAGS, Mode::empty())
}

/// Visits everything below a directory, each directory before what is in it. `None`:
/// there is more than `entries_max`, and not all was visited. What its sandbox moves
/// away meanwhile can be missed; nothing beside the tree is ever visited.
pub(crate) fn walk(
    top: OwnedFd,
    tree: TreeState,
    entries_max: u64,
    mut visit: impl FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<Option<()>> {
    let mut walk = Walk { tree, left: entries_max };
    let Some(names) = walk.names(top.as_fd())? else { return Ok(None) };
    let mut frames = vec![Frame { name: c".".to_owned(), held: DirHandle::Open(top), names }];
    while let Some(frame) = frames.last_mut() {
        let Some(name) = frame.names.pop() else {
            if walk.leave(&mut frames)?.is_none() {
                return Ok(None);
            }
            continue;
        };
        let depth = frames.len();
        let Some(Frame { held: DirHandle::Open(dir), .. }) = frames.last() else {
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
        frames.push(Frame { name, held: DirHandle::Open(child), names });
        // The first stays open, to begin from again.
        if let Some(far) = frames.len().checked_sub(limits::WALK_DIRS_MAX).filter(|far| *far > 0)
            && let DirHandle::Open(dir) = &frames[far].held
        {
            frames[far].held = DirHandle::Closed(identity(dir)?);
        }
    }
    Ok(Some(()))
}

/// The last directory again, by its names from the first one on. `None`: it is not there.
fn again(frames: &[Frame]) -> io::Result<Option<OwnedFd>> {
    let [Frame { held: DirHandle::Open(top), .. }, below @ ..] = frames else { return Ok(None) };
    let mut dir = top.try_clone()?;
    for frame in below {
        let Ok(next) = open(&dir, &frame.name) else { return Ok(None) };
        if let DirHandle::Closed(wanted) = frame.held
            && identity(&next)? != wanted
        {
            return Ok(None);
        }
        dir = next;
    }
    Ok(Some(dir))
}

impl Walk {
    /// Leaves the last directory; the one above it may have been closed. `None`: too
    /// many were opened on the way back.
    fn leave(&mut self, frames: &mut Vec<Frame>) -> io::Result<Option<()>> {
        let Some(left) = frames.pop() else { return Ok(Some(())) };
        let mut from = match left.held {
            DirHandle::Open(dir) => Some(dir),
            DirHandle::Closed(_) => None,
        };
        while let Some(Frame { held: DirHandle::Closed(wanted), .. }) = frames.last() {
            // In a tree in use the way up may lead elsewhere by now, out of it even.
            let above = from.take().and_then(|dir| open(dir, c"..").ok());
            let mut found = above.filter(|above| identity(above).is_ok_and(|id| id == *wanted));
            if found.is_none() {
                let Some(left) = self.left.checked_sub(frames.len() as u64) else {
                    return Ok(None);
                };
                self.left = left;
                found = again(frames)?;
            }
            match (found, frames.last_mut()) {
                (Some(dir), Some(above)) => above.held = DirHandle::Open(dir),
                (None, _) if self.tree == TreeState::AtRest => {
                    return Err(io::Error::other("a directory was moved while it was walked"));
                }
                // What is left of it is somewhere else, or gone.
                (None, _) | (_, None) => drop(frames.pop()),
            }
        }
        Ok(Some(()))
    }

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
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if self.tree == TreeState::InUse => {
                Ok(None)
            }
            result => Ok(Some(result?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// One directory in the other, deeper than are held open, each with a file beside it.
    fn deep(top: &Path, levels: usize) -> Vec<PathBuf> {
        let mut dirs = vec![top.to_owned()];
        for level in 0..levels {
            let dir = dirs[level].join("d");
            fs::create_dir(&dir).unwrap();
            fs::write(dirs[level].join("e"), "inside").unwrap();
            dirs.push(dir);
        }
        dirs
    }

    #[test]
    fn a_deep_tree_is_walked_whole_and_not_more_than_was_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        deep(dir.path(), 100);
        for tree in [TreeState::AtRest, TreeState::InUse] {
            let mut count = 0;
            let walked = walk(open_top(dir.path()).unwrap(), tree, 200, |_| {
                count += 1;
                Ok(())
            });
            assert_eq!((walked.unwrap(), count), (Some(()), 200));
            let short = walk(open_top(dir.path()).unwrap(), tree, 199, |_| Ok(()));
            assert_eq!(short.unwrap(), None);
        }
    }

    #[test]
    fn a_directory_that_is_moved_meanwhile_leads_nowhere_else() {
        for level in [1, 2, 20, 36, 60] {
            let dir = tempfile::tempdir().unwrap();
            let outside = dir.path().join("outside");
            let top = outside.join("tree");
            fs::create_dir_all(&top).unwrap();
            fs::write(outside.join("e"), "not of the tree").unwrap();
            let dirs = deep(&top, 100);
            let (mut moved, mut seen) = (false, 0);
            walk(open_top(&top).unwrap(), TreeState::InUse, u64::MAX, |entry| {
                if entry.depth == 100 && !moved {
                    moved = true;
                    fs::rename(&dirs[level], top.join("moved")).unwrap();
                }
                if entry.name == c"e" {
                    assert_eq!(entry.stat.st_size, 6, "moved at {level}, at {}", entry.depth);
                    seen += 1;
                }
                Ok(())
            })
            .unwrap();
            assert!(moved && seen >= 64, "{seen}");
        }
    }
}
