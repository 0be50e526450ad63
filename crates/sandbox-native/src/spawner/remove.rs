//! Deleting a tree that a sandbox wrote.
//!
//! Owns the walk: by descriptors, never following a link, with a bounded number of
//! them open however deep the tree is. Nothing in it is read or run.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::limits;

fn open(parent: BorrowedFd<'_>, name: &std::ffi::CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Deletes `name` in `parent` with everything in it. What is not there is fine.
pub(super) fn remove(parent: BorrowedFd<'_>, name: &std::ffi::CStr) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let dir = open(parent, name)?;
    let mut moved = 0;
    // Directories that were too deep are moved here, so one more look is needed until none is.
    while empty(dir.as_fd(), dir.as_fd(), 1, &mut moved)? {}
    unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(())
}

/// Empties a directory; says whether something was moved up to `top` instead.
fn empty(
    dir: BorrowedFd<'_>,
    top: BorrowedFd<'_>,
    depth: usize,
    moved: &mut u64,
) -> io::Result<bool> {
    let mut again = false;
    // Its owner may have forbidden even itself to look.
    let _ = fchmod(dir, Mode::RWXU);
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
                Err(error) => return Err(error.into()),
            }
        }
        if depth >= limits::REMOVE_DEPTH_MAX {
            *moved += 1;
            renameat(dir, name, top, format!(".outrigger-deep-{moved}"))?;
            again = true;
            continue;
        }
        let child = open(dir, name)?;
        again |= empty(child.as_fd(), top, depth + 1, moved)?;
        drop(child);
        unlinkat(dir, name, AtFlags::REMOVEDIR)?;
    }
    Ok(again)
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
