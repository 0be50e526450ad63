//! `Remove`: a file, a link, or a tree however deep.
//!
//! Owns the walk: by descriptors, never through a link, a bounded number of them open.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};

use outrigger_sandbox::{FileError, FileReply};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::{Errno, Result};

use super::resolve::{ResolvedPath, Symlinks};
use crate::limits;

/// `Remove`.
pub(super) fn remove(path: &str) -> std::result::Result<FileReply, FileError> {
    let resolved = ResolvedPath::find_writable(path, Symlinks::AsItIs)?;
    let (dir, name) = resolved.parent()?;
    let name = CString::new(name).map_err(|_| resolved.kernel(Errno::INVAL))?;
    tree(dir.as_fd(), &name).map_err(|errno| resolved.kernel(errno))?;
    Ok(FileReply::Done)
}

fn tree(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        done => return done,
    }
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(parent, name, flags, Mode::empty())?;
    let mut moved = 0;
    while empty(dir.as_fd(), dir.as_fd(), 1, &mut moved)? {}
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Moves a directory up to `top` under the next name that is free there.
fn move_up(dir: BorrowedFd<'_>, name: &CStr, top: BorrowedFd<'_>, moved: &mut u64) -> Result<()> {
    loop {
        *moved += 1;
        match renameat(dir, name, top, format!(".outrigger-deep-{moved}")) {
            // The tree may have such names itself.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR)
                if *moved < limits::REMOVE_NAMES_MAX => {}
            done => return done,
        }
    }
}

/// Empties a directory; says whether something too deep was moved up to `top` instead.
fn empty(dir: BorrowedFd<'_>, top: BorrowedFd<'_>, depth: usize, moved: &mut u64) -> Result<bool> {
    let mut again = false;
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if entry.file_type() != FileType::Directory {
            match unlinkat(dir, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR) => {}
                Err(error) => return Err(error),
            }
        }
        if depth >= limits::REMOVE_DEPTH_MAX {
            move_up(dir, name, top, moved)?;
            again = true;
            continue;
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let child = openat(dir, name, flags, Mode::empty())?;
        again |= empty(child.as_fd(), top, depth + 1, moved)?;
        drop(child);
        unlinkat(dir, name, AtFlags::REMOVEDIR)?;
    }
    Ok(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_tree_goes() {
        let dir = tempfile::tempdir().unwrap();
        let mut deep = dir.path().join("tree");
        for _ in 0..300 {
            deep.push("d");
        }
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), "x").unwrap();
        // In the way of what is moved up: a directory that is not empty, and a file.
        std::fs::create_dir_all(dir.path().join("tree/.outrigger-deep-1/d")).unwrap();
        std::fs::write(dir.path().join("tree/.outrigger-deep-2"), "x").unwrap();
        let parent = std::fs::File::open(dir.path()).unwrap();
        tree(parent.as_fd(), c"tree").unwrap();
        assert!(!dir.path().join("tree").exists());
    }
}
