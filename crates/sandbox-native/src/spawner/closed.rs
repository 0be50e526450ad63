//! Directories that a sandbox closed to its own user, where that is the spawner's too.
//!
//! Owns the way into one, which a spawner with rights over its sandboxes' files never needs:
//! it is opened to its owner, and closed again when whoever looked is done. While commands
//! run it stays open, so that nobody finds it closed on the way: what they hide from the
//! watch over their disk is looked at all the same.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, chmodat, fstat, openat};
use rustix::io::Errno;

use crate::limits;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One that is open for now. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Unlocked {
    dir: OwnedFd,
    /// As it was, and as it is now.
    modes: (Mode, Mode),
}

/// Whether its owner may not list it, or look up what is in it.
fn is_closed(stat: &Stat) -> bool {
    stat.st_mode & 0o500 != 0o500
}

/// Whether it was closed to its owner just now.
pub(super) fn is_fresh(stat: &Stat) -> bool {
    let changed = u64::try_from(stat.st_ctime).unwrap_or(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    is_closed(stat) && changed + limits::CLOSED_SECONDS_MIN > now
}

/// Opens a directory, of which this is known, to read it and to look up what is in it.
pub(super) fn open_known(
    parent: impl AsFd,
    name: &CStr,
    stat: &Stat,
) -> rustix::io::Result<(OwnedFd, Option<Unlocked>)> {
    let (dir, unlocked) = open(&parent, name)?;
    // Who has rights over all files, or just got them, is done.
    if !is_closed(stat) || unlocked.is_some() || is_searched(&dir)? {
        return Ok((dir, unlocked));
    }
    unlock(parent, name)
}

/// Opens a directory to read it, closed or not.
pub(super) fn open(
    parent: impl AsFd,
    name: &CStr,
) -> rustix::io::Result<(OwnedFd, Option<Unlocked>)> {
    match openat(&parent, name, DIRECTORY | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => unlock(parent, name),
        opened => Ok((opened?, None)),
    }
}

fn unlock(parent: impl AsFd, name: &CStr) -> rustix::io::Result<(OwnedFd, Option<Unlocked>)> {
    let dir = openat(&parent, name, DIRECTORY | OFlags::PATH, Mode::empty())?;
    let stat = fstat(&dir)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::ACCESS);
    }
    let was = Mode::from_raw_mode(stat.st_mode & 0o7777);
    let now = was | Mode::RUSR | Mode::XUSR;
    set(&dir, now)?;
    let unlocked = Unlocked { dir, modes: (was, now) };
    let opened = openat(&unlocked.dir, c".", DIRECTORY | OFlags::RDONLY, Mode::empty())?;
    Ok((opened, Some(unlocked)))
}

/// Whether names in it can be looked up, which to read it does not need.
fn is_searched(dir: &OwnedFd) -> rustix::io::Result<bool> {
    match openat(dir, c".", DIRECTORY | OFlags::PATH, Mode::empty()) {
        Ok(_) => Ok(true),
        Err(Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// By its descriptor, because its name may be another's by now.
fn set(dir: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
    let place = format!("/proc/self/fd/{}", dir.as_raw_fd());
    chmodat(CWD, place, mode, AtFlags::empty())
}

impl Unlocked {
    /// Leaves it open: it is to be deleted.
    pub(super) fn leave_open(mut self) {
        self.modes.0 = self.modes.1;
    }
}

impl Drop for Unlocked {
    fn drop(&mut self) {
        let (was, now) = self.modes;
        // What its sandbox made of it meanwhile is its own.
        let same = |stat: Stat| stat.st_mode & 0o7777 == now.as_raw_mode();
        if was != now && fstat(&self.dir).is_ok_and(same) {
            let _ = set(&self.dir, was);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_was_closed_is_closed_again() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("d");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("f"), "").unwrap();
        let top = fs::File::open(dir.path()).unwrap();
        let mode = || fs::metadata(&inner).unwrap().permissions().mode() & 0o7777;
        for closed in [0o000, 0o400, 0o100, 0o755] {
            fs::set_permissions(&inner, Permissions::from_mode(closed)).unwrap();
            let stat = rustix::fs::statat(&top, c"d", AtFlags::empty()).unwrap();
            let (opened, unlocked) = open_known(&top, c"d", &stat).unwrap();
            let names = rustix::fs::Dir::read_from(&opened).unwrap().count();
            assert_eq!(names, 3, "{closed:o}");
            drop(unlocked);
            assert_eq!(mode(), closed);
        }
    }
}
