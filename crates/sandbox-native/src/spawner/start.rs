//! From a fresh program to a spawner that serves.
//!
//! Owns the clean start: which descriptors are kept, who is told what, which tier of
//! isolation this process can give.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::UNIX_EPOCH;

use outrigger_sandbox::Isolation;
use rustix::fs::{FlockOperation, Mode, OFlags, SealFlags, fcntl_get_seals, flock};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::CapabilitySet;

use super::create::prefork::GuestTemplate;
use super::event_loop::Spawner;
use super::lifecycle::sandboxes::Sandboxes;
use super::rootfs::HostMounts;
use super::sys::{self, Fork};
use super::tier::{self, Tier};
use crate::limits;
use crate::spawner::quota::cgroup;

/// What the spawner tells its starter on standard output before it serves.
pub(crate) const READY: &str = "ready";
/// What it tells when another one serves this state directory already.
pub(crate) const BUSY: &str = "busy";

/// Numbers that what is kept is moved above while the rest is closed.
const KEPT: i32 = 10;

/// Capabilities of a guest with a range of ids: to kill, and to set groups and users.
const GUEST_CAPABILITIES: CapabilitySet =
    CapabilitySet::KILL.union(CapabilitySet::SETGID).union(CapabilitySet::SETUID);

/// Starts. `None`: this process has nothing more to do.
pub(crate) fn start(mut args: impl Iterator<Item = OsString>) -> io::Result<Option<Spawner>> {
    let (program, status) = leave_starter()?;
    let mut status = fs::File::from(status);
    let state = match (args.next(), args.next()) {
        (Some(state), None) => PathBuf::from(state),
        _ => {
            status.write_all(b"the spawner takes the state directory as its one argument")?;
            return Ok(None);
        }
    };
    // SAFETY: this process has one thread, as `spawner::main` demands.
    if let Fork::Parent { .. } = unsafe { sys::fork(0) }? {
        // The starter waits for this process alone; its child belongs to nobody.
        return Ok(None);
    }
    rustix::process::setsid()?;
    sys::schedule_normally();
    match open(&state, program) {
        Ok(Some(spawner)) => {
            // Whoever started it may have waited no longer. It serves all the same.
            let _ = status.write_all(READY.as_bytes());
            Ok(Some(spawner))
        }
        Ok(None) => {
            status.write_all(BUSY.as_bytes())?;
            Ok(None)
        }
        Err(error) => {
            status.write_all(error.to_string().as_bytes())?;
            Err(error)
        }
    }
}

/// Keeps the program and the status pipe, and nothing else of the starter.
fn leave_starter() -> io::Result<(OwnedFd, OwnedFd)> {
    let program = sys::move_above(rustix::stdio::stdin(), KEPT)?;
    let status = sys::move_above(rustix::stdio::stdout(), KEPT)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for number in 0..=2 {
        sys::place(null.as_fd(), number)?;
    }
    drop(null);
    // Everything before, between and after the two: a starter's own parent may have
    // left descriptors open at any number.
    let mut kept = [&program, &status].map(|fd| fd.as_raw_fd().unsigned_abs());
    kept.sort_unstable();
    for (first, end) in [(3, kept[0]), (kept[0] + 1, kept[1])] {
        if first < end {
            sys::close_between(first, end - 1)?;
        }
    }
    sys::close_from(kept[1] + 1)?;
    sealed(program.as_fd())?;
    rustix::process::chdir("/")?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    leave_no_core();
    Ok((program, status))
}

/// What handles hostile input below this process, guests among it, leaves no core: see
/// [`limits::CORE_BYTES_MAX`]. Who may not raise a limit of 0 has none.
fn leave_no_core() {
    let most = Some(limits::CORE_BYTES_MAX);
    let _ = setrlimit(Resource::Core, Rlimit { current: most, maximum: most });
}

/// The guest program must be one that nobody can change any more.
fn sealed(program: BorrowedFd<'_>) -> io::Result<()> {
    let wanted = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    if fcntl_get_seals(program)?.contains(wanted) {
        return Ok(());
    }
    Err(io::Error::other("the guest program is not a sealed memory file"))
}

/// Opens the state directory. `None`: another spawner serves it.
fn open(state: &Path, program: OwnedFd) -> io::Result<Option<Spawner>> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = rustix::fs::open(state.join("spawner.lock"), flags, Mode::from_raw_mode(0o600))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let isolation = take_tier(state)?;
    let groups = cgroup::Groups::open(cgroup::find(), &name(&fs::metadata(state)?));
    let capabilities = match isolation {
        Isolation::RootlessSingle => CapabilitySet::empty(),
        _ => GUEST_CAPABILITIES,
    };
    let template =
        GuestTemplate { program, groups, host: Rc::new(HostMounts::here()?), capabilities };
    let sandboxes = Sandboxes::open(state.to_owned(), isolation, template)?;
    let socket = state.join("spawner.sock");
    let _ = fs::remove_file(&socket);
    // By descriptor, because the path of a socket is at most 107 bytes long (unix(7)).
    let dir =
        rustix::fs::open(state, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let number = dir.as_raw_fd();
    let listener = UnixListener::bind(format!("/proc/self/fd/{number}/spawner.sock"))?;
    listener.set_nonblocking(true)?;
    Spawner::new(listener, sandboxes, lock).map(Some)
}

/// What the groups of a state directory are called. Numbers of files are given again
/// soon: without its birth, one that was just deleted could have those of this one, and
/// its spawner, on its way out, would end what lives here.
fn name(state: &fs::Metadata) -> String {
    let born = state.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.map_or(0, |born| born.as_nanos());
    format!("outrigger-{:x}-{:x}-{born:x}", state.dev(), state.ino())
}

/// Finds the best tier, and becomes root of a user namespace where this is not root
/// already: from there on both are the same.
fn take_tier(state: &Path) -> io::Result<Isolation> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let Tier { isolation, .. } = tier::choose(Some(state)).map_err(io::Error::other)?;
    if isolation == Isolation::RootRange {
        // SAFETY: this process has one thread.
        unsafe { sys::unshare(libc::CLONE_NEWNS) }?;
        // What is mounted here stays here, and what the host unmounts is not kept.
        let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change("/", flags)?;
        return Ok(isolation);
    }
    if isolation == Isolation::RootlessRange {
        tier::take_subordinate(state)?;
        return Ok(isolation);
    }
    tier::forget_subordinate(state)?;
    // SAFETY: this process has one thread.
    unsafe { sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {} 1", uid.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", gid.as_raw()))?;
    Ok(isolation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_a_directory_are_not_those_of_one_before_it() {
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("state");
        let make = || {
            fs::create_dir(&dir).unwrap();
            let found = fs::metadata(&dir).unwrap();
            assert_eq!(name(&found), name(&fs::metadata(&dir).unwrap()));
            fs::remove_dir(&dir).unwrap();
            (name(&found), found.created().expect("this file system notes births"))
        };
        let (first, born) = make();
        // poll: until the clock of the file system goes on
        let later = std::iter::repeat_with(make).take(1_000_000).find(|(_, later)| *later > born);
        assert_ne!(first, later.expect("a clock that goes on").0);
    }
}
