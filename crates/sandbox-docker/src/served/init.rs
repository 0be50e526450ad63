//! The first process of a container, as this host sees it.
//!
//! Owns what is done by way of it: its root is looked into, its guest's sockets are
//! connected to, and its mount namespace is entered by a thread of its own. Whatever a
//! path in the container leads through must not be a link, and who listens there must be
//! this very process: commands could put something else in its place.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// See the module.
#[derive(Debug)]
pub(super) struct Init {
    pid: Pid,
    /// As long as it is alive the number is its own.
    alive: OwnedFd,
}

impl Init {
    /// That of a container, by the daemon's number for it. `None`: it ended.
    pub(super) fn of(container: &str, pid: i64) -> io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let alive = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(None),
            opened => opened?,
        };
        let init = Self { pid, alive };
        let groups = std::fs::read_to_string(init.place("cgroup"));
        if !init.is_alive() {
            return Ok(None);
        }
        // A daemon that counts processes otherwise than this host means another one by it.
        if !groups?.contains(container) {
            return Err(io::Error::other("the daemon's processes are not those of this host"));
        }
        Ok(Some(init))
    }

    fn place(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid.as_raw_nonzero())
    }

    pub(super) fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.alive, PollFlags::IN)];
        // Ready, once it ended; see pidfd_open(2).
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
    }

    /// Its root directory.
    pub(super) fn root(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(self.place("root"), flags, Mode::empty())?)
    }

    /// Connects to a socket that it listens on. `None`: it does not any more.
    pub(super) fn connect(&self, socket: &OwnedFd) -> io::Result<Option<UnixStream>> {
        // By its number, so that it is the one that was looked at.
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let stream = match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
            connected => connected?,
        };
        let listener = rustix::net::sockopt::socket_peercred(&stream)?;
        if listener.pid == self.pid && self.is_alive() {
            return Ok(Some(stream));
        }
        Err(io::Error::other("somebody listens in its guest's place"))
    }

    /// Mounts what is mounted nowhere on directories of the container, by their paths.
    pub(super) fn mount(&self, mounts: Vec<(String, OwnedFd)>) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let namespace = rustix::fs::open(self.place("ns/mnt"), flags, Mode::empty())?;
        if !self.is_alive() {
            return Err(io::Error::other("it ended"));
        }
        // A thread that ends with this work, because it stays in the container.
        let work = std::thread::Builder::new()
            .name("outrigger-mount".to_owned())
            .spawn(move || mount_within(&namespace, &mounts))?;
        work.join().map_err(|_| io::Error::other("the thread that mounts panicked"))?
    }
}

/// What is at a path beneath a root, without following any link.
pub(super) fn beneath(root: &OwnedFd, path: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(root, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOENT) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// To be called by a thread that does nothing else.
#[expect(
    deprecated,
    reason = "the wrapper without `unsafe` is unsound for FILES alone, which is not asked for"
)]
fn mount_within(namespace: &OwnedFd, mounts: &[(String, OwnedFd)]) -> io::Result<()> {
    // Root and working directory of its own, without which it can't go there (setns(2)).
    rustix::thread::unshare(UnshareFlags::FS)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
    for (path, mount) in mounts {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(mount, "", &target, "", flags)?;
    }
    Ok(())
}
