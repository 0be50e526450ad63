//! The fingerprint of a tree at rest.
//!
//! Owns the walk: by descriptors, never following a link, with a bounded number of
//! them open however deep the tree is. It covers what can't change without a change
//! of the time that the kernel notes for every inode (`ctime`), so contents are not
//! read. The times of the top directory are left out, because a rename of the tree
//! changes them.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::limits;

/// SHA-256 over every entry of a tree, in the order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.try_into().ok()?))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A directory that is being walked.
struct Frame {
    /// Closed while too many below it are open.
    dir: Option<OwnedFd>,
    /// What is left of it, last first.
    names: Vec<CString>,
}

struct Walk {
    hash: Sha256,
    left: u64,
}

const FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Takes the fingerprint of a tree that nobody changes meanwhile. `None`: it has more
/// entries than that.
pub(super) fn take(tree: &Path, entries_max: u64) -> io::Result<Option<Fingerprint>> {
    let top = openat(CWD, tree, FLAGS, Mode::empty())?;
    let mut walk = Walk { hash: Sha256::new(), left: entries_max };
    let stat = rustix::fs::fstat(&top)?;
    for number in [stat.st_mode, stat.st_uid, stat.st_gid] {
        walk.hash.update(number.to_le_bytes());
    }
    let Some(names) = walk.names(top.as_fd())? else { return Ok(None) };
    let mut frames = vec![Frame { dir: Some(top), names }];
    while let Some(frame) = frames.last_mut() {
        let Some(dir) = &frame.dir else {
            return Err(io::Error::other("a directory was closed while it was walked"));
        };
        let Some(name) = frame.names.pop() else {
            reopen_above(&mut frames)?;
            frames.pop();
            continue;
        };
        let stat = statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        let depth = frames.len();
        walk.entry(depth, &name, &stat);
        let kind = FileType::from_raw_mode(stat.st_mode);
        let Some(Frame { dir: Some(dir), .. }) = frames.last() else { continue };
        if kind == FileType::Symlink {
            let target = readlinkat(dir, &name, Vec::new())?;
            walk.bytes(target.to_bytes());
        }
        if kind == FileType::Directory {
            let child = openat(dir, &name, FLAGS, Mode::empty())?;
            let Some(names) = walk.names(child.as_fd())? else { return Ok(None) };
            frames.push(Frame { dir: Some(child), names });
            if let Some(far) = frames.len().checked_sub(limits::WALK_DIRS_MAX + 1) {
                frames[far].dir = None;
            }
        }
    }
    Ok(Some(Fingerprint(walk.hash.finalize().into())))
}

/// Before the last directory is left: the one above it may have been closed.
fn reopen_above(frames: &mut [Frame]) -> io::Result<()> {
    if let [.., above, Frame { dir: Some(dir), .. }] = frames
        && above.dir.is_none()
    {
        above.dir = Some(openat(dir, c"..", FLAGS, Mode::empty())?);
    }
    Ok(())
}

impl Walk {
    /// The names in a directory, last first. `None`: too many.
    fn names(&mut self, dir: BorrowedFd<'_>) -> io::Result<Option<Vec<CString>>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
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

    fn bytes(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }

    /// Its depth tells of which directory it is, because they come in order.
    fn entry(&mut self, depth: usize, name: &CString, stat: &Stat) {
        self.hash.update((depth as u64).to_le_bytes());
        self.bytes(name.as_bytes());
        for number in [stat.st_mode, stat.st_uid, stat.st_gid] {
            self.hash.update(number.to_le_bytes());
        }
        // The size of a directory is the file system's own business.
        let size = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => 0,
            _ => stat.st_size,
        };
        self.hash.update(size.to_le_bytes());
        self.hash.update(stat.st_rdev.to_le_bytes());
        self.hash.update(stat.st_mtime.to_le_bytes());
        self.hash.update(stat.st_mtime_nsec.to_le_bytes());
        self.hash.update(stat.st_ctime.to_le_bytes());
        self.hash.update(stat.st_ctime_nsec.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn of(tree: &Path) -> Fingerprint {
        take(tree, u64::MAX).unwrap().unwrap()
    }

    #[test]
    fn every_change_shows_and_a_rename_of_the_tree_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let mut deep = tree.clone();
        for _ in 0..200 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        fs::write(tree.join("e"), "after the deep one").unwrap();
        std::os::unix::fs::symlink("target", tree.join("link")).unwrap();
        let before = of(&tree);
        assert_eq!(of(&tree), before);
        let moved = dir.path().join("moved");
        fs::rename(&tree, &moved).unwrap();
        assert_eq!(of(&moved), before);
        fs::rename(&moved, &tree).unwrap();
        let changes: [&dyn Fn(); 6] = [
            &|| fs::write(deep.join("file"), "y").unwrap(),
            &|| fs::set_permissions(tree.join("e"), fs::Permissions::from_mode(0o600)).unwrap(),
            &|| fs::write(tree.join("new"), "").unwrap(),
            &|| fs::remove_file(tree.join("new")).unwrap(),
            &|| {
                fs::remove_file(tree.join("link")).unwrap();
                std::os::unix::fs::symlink("other", tree.join("link")).unwrap();
            },
            &|| fs::set_permissions(&tree, fs::Permissions::from_mode(0o700)).unwrap(),
        ];
        let mut last = before;
        for (number, change) in changes.iter().enumerate() {
            change();
            let now = of(&tree);
            assert_ne!(now, last, "change {number}");
            last = now;
        }
    }

    #[test]
    fn a_tree_above_the_budget_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(take(dir.path(), 2).unwrap(), None);
        assert!(take(dir.path(), 3).unwrap().is_some());
    }
}
