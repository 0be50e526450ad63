//! Deleting a tree that a sandbox wrote.
//!
//! Owns the walk: by descriptors, never following a link, with a bounded number of
//! them open however deep the tree is. Nothing in it is read or run.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::limits;

fn open(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Takes what is not there any more for done: two may delete the same.
fn unless_gone(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}

/// Deletes `name` in `parent` with everything in it, as far as that goes; the first
/// error is the answer. What is not there is fine.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        done => return unless_gone(done),
    }
    let dir = match open(parent, name) {
        Ok(dir) => dir,
        Err(error) => return unless_gone(Err(error)),
    };
    // Directories that were too deep are moved here, so one more look is needed until none is.
    let mut walk = Walk { top: dir.as_fd(), moved: 0, again: true, failed: None };
    while std::mem::take(&mut walk.again) {
        walk.empty(dir.as_fd(), 1);
    }
    match walk.failed {
        Some(error) => Err(error),
        None => unless_gone(unlinkat(parent, name, AtFlags::REMOVEDIR)),
    }
}

struct Walk<'a> {
    top: BorrowedFd<'a>,
    /// The last number that was tried for a name in `top`.
    moved: u64,
    /// Whether something was moved to `top` since this was last looked at.
    again: bool,
    /// The first error.
    failed: Option<io::Error>,
}

impl Walk<'_> {
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    /// Empties a directory, as far as that goes.
    fn empty(&mut self, dir: BorrowedFd<'_>, depth: usize) {
        // Its owner may have forbidden even itself to look.
        let _ = fchmod(dir, Mode::RWXU);
        let entries = match Dir::read_from(dir) {
            Ok(entries) => entries,
            Err(error) => return self.note(unless_gone(Err(error))),
        };
        for entry in entries {
            match entry {
                Ok(entry) if entry.file_name() == c"." || entry.file_name() == c".." => {}
                Ok(entry) => {
                    let done = self.remove(dir, entry.file_name(), entry.file_type(), depth);
                    self.note(done);
                }
                Err(error) => return self.note(unless_gone(Err(error))),
            }
        }
    }

    fn remove(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        depth: usize,
    ) -> io::Result<()> {
        if kind != FileType::Directory {
            match unlinkat(dir, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => {}
                done => return unless_gone(done),
            }
        }
        if depth >= limits::REMOVE_DEPTH_MAX {
            return unless_gone(self.move_up(dir, name));
        }
        let child = match open(dir, name) {
            Ok(child) => child,
            Err(error) => return unless_gone(Err(error)),
        };
        let failed = self.failed.take();
        self.empty(child.as_fd(), depth + 1);
        drop(child);
        // Why something in it stays says more than that it is not empty.
        let inside = std::mem::replace(&mut self.failed, failed);
        match inside {
            Some(error) => Err(error),
            None => unless_gone(unlinkat(dir, name, AtFlags::REMOVEDIR)),
        }
    }

    /// Moves a directory to `top` under the next name that is free there.
    fn move_up(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
        loop {
            self.moved += 1;
            match renameat(dir, name, self.top, format!(".outrigger-deep-{}", self.moved)) {
                // The tree may have such names itself.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR)
                    if self.moved < limits::REMOVE_NAMES_MAX => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    self.again = true;
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn deep_trees_odd_modes_and_links_go_and_what_links_point_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        let tree = dir.path().join("tree");
        let mut deep = tree.clone();
        for _ in 0..300 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        // In the way of what is moved up: a directory that is not empty, and a file.
        fs::create_dir_all(tree.join(".outrigger-deep-1/d")).unwrap();
        fs::write(tree.join(".outrigger-deep-2"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, deep.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", tree.join("link")).unwrap();
        fs::create_dir(tree.join("locked")).unwrap();
        fs::write(tree.join("locked/file"), "x").unwrap();
        fs::set_permissions(tree.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        let parent = fs::File::open(dir.path()).unwrap();
        remove(parent.as_fd(), c"tree").unwrap();
        remove(parent.as_fd(), c"tree").unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    }
}
