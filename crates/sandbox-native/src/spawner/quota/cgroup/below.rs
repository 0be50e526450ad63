//! The groups below a group, as many and as deep as a guest made them.
//!
//! Owns the way through them: by descriptors, two at once however deep it goes, and
//! no further than it was told. The kernel lets no group be moved below another one,
//! so the way up is the way that led down.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::{Errno, Result};
use rustix::process::{Pid, Signal, kill_process};

/// What is done on the way. Both are given the group itself.
trait Visitor {
    /// On the way down, before those below it.
    fn enter(&mut self, group: BorrowedFd<'_>);
    /// On the way up, with the group above and its name there. Not for the top.
    fn leave(&mut self, group: BorrowedFd<'_>, above: BorrowedFd<'_>, name: &CStr);
}

fn open(dir: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// The names in a group, as far as `left` goes.
fn names(dir: &OwnedFd, left: &mut usize) -> Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() == FileType::Directory && name != c"." && name != c".." {
            *left = left.checked_sub(1).ok_or(Errno::TOOBIG)?;
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn walk(top: &Path, left: &mut usize, visit: &mut impl Visitor) -> Result<()> {
    let mut dir = open(CWD, top)?;
    visit.enter(dir.as_fd());
    let mut frames = vec![(CString::default(), names(&dir, left)?)];
    while let Some((_, below)) = frames.last_mut() {
        if let Some(name) = below.pop() {
            let child = match open(&dir, &name) {
                Err(Errno::NOENT) => continue,
                child => child?,
            };
            visit.enter(child.as_fd());
            frames.push((name, names(&child, left)?));
            dir = child;
        } else if let Some((name, _)) = frames.pop()
            && !frames.is_empty()
        {
            let above = open(&dir, c"..")?;
            visit.leave(dir.as_fd(), above.as_fd(), &name);
            dir = above;
        }
    }
    Ok(())
}

fn write(group: BorrowedFd<'_>, file: &str, text: &str) {
    let opened = openat(group, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    let _ = opened.and_then(|fd| rustix::io::write(fd, text.as_bytes()));
}

/// Kills the processes of one group.
fn kill(group: BorrowedFd<'_>) {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(fd) = openat(group, "cgroup.procs", flags, Mode::empty()) else { return };
    let members = std::io::read_to_string(std::fs::File::from(fd)).unwrap_or_default();
    for pid in members.lines().filter_map(|line| line.parse().ok()) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

struct Thawer;

impl Visitor for Thawer {
    fn enter(&mut self, group: BorrowedFd<'_>) {
        write(group, "freezer.state", "THAWED");
    }

    fn leave(&mut self, _: BorrowedFd<'_>, _: BorrowedFd<'_>, _: &CStr) {}
}

struct Remover;

impl Visitor for Remover {
    fn enter(&mut self, _: BorrowedFd<'_>) {}

    fn leave(&mut self, group: BorrowedFd<'_>, above: BorrowedFd<'_>, name: &CStr) {
        if unlinkat(above, name, AtFlags::REMOVEDIR) == Err(Errno::BUSY) {
            kill(group);
        }
    }
}

/// Lets a group of the freezer's hierarchy and those below it go on.
pub(super) fn thaw(group: &Path, mut most: usize) {
    // What it does not reach is tried again by who waits for an end.
    let _ = walk(group, &mut most, &mut Thawer);
}

/// Removes the groups below one; processes that are in the way are killed, and the group
/// is there still. `left` is how many more may be looked at.
pub(super) fn remove(group: &Path, left: &mut usize) {
    let _ = walk(group, left, &mut Remover);
}
