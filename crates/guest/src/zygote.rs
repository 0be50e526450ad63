//! A program that has started and of which guests are cloned, so that none has to start.
//!
//! Owns how one is asked for. A static program's start asks the processor what it is, some
//! seventy times, and a hypervisor answers each: that alone takes as long as half of a start.
//! A zygote holds nothing of any sandbox, only what all guests have in common, and the
//! descriptors of an order are its guest's alone. What a clone does first is in
//! [`crate::confine::namespaces`].

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::CapabilitySet;

use crate::confine::namespaces;
use crate::options::{Options, Transport};
use crate::sys::{self, CloneResult};
use crate::{control, limits};

/// The process of which guests are cloned.
#[derive(Debug)]
pub(crate) struct Zygote {
    /// Over which guests are asked for, one at a time. An answer with a descriptor is the
    /// number of a process, and that is its pidfd; another says why there is none.
    pub(crate) socket: OwnedFd,
    /// The mount namespace of which each guest has a copy.
    pub(crate) prepared: OwnedFd,
    /// What guests are left of their rights in their own user namespace.
    pub(crate) capabilities: CapabilitySet,
}

impl Zygote {
    /// Makes guests until nobody can ask for one any more. In a process that was made so it
    /// gives what that one is to be; a clone that fails tells whoever waits for it why.
    pub(crate) fn serve(self) -> io::Result<Option<Options>> {
        // What is cloned from here never gains rights.
        rustix::thread::set_no_new_privs(true)?;
        let mut order = [0; limits::REST_BYTES_MAX];
        loop {
            let received = || control::take(&self.socket, &mut order, RecvFlags::empty());
            let (length, fds) = retry_on_intr(received)?;
            if length == 0 {
                return Ok(None);
            }
            let mut options = Options::default();
            let taken = options.take_pieces(&order[..length], fds);
            let cloned = match taken.and(options.awaits_the_rest()) {
                Some(_) => clone_for(&mut options),
                None => Err(io::Error::from(io::ErrorKind::InvalidInput)),
            };
            match cloned {
                Ok(CloneResult::Parent { pid, pidfd }) => self.answer(pid, &pidfd)?,
                Ok(CloneResult::Child) => return self.become_guest(options).map(Some),
                Err(error) => {
                    send(&self.socket, error.to_string().as_bytes(), SendFlags::NOSIGNAL)?;
                }
            }
        }
    }

    fn answer(&self, pid: i32, pidfd: &OwnedFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let passed = [pidfd.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&passed));
        let said = pid.to_string();
        let parts = [IoSlice::new(said.as_bytes())];
        sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// In a clone: gives up what is not its own.
    fn become_guest(self, mut options: Options) -> io::Result<Options> {
        let anew = self.capabilities.is_empty();
        let left = match self.leave(&mut options) {
            Ok(()) if anew => Err(start_anew(&options)),
            left => left,
        };
        if let (Err(error), Transport::Control(control)) = (&left, &options.transport) {
            let _ = send(control, error.to_string().as_bytes(), SendFlags::NOSIGNAL);
        }
        left.map(|()| options)
    }

    fn leave(self, options: &mut Options) -> io::Result<()> {
        let Self { socket, prepared, capabilities } = self;
        drop(socket);
        sys::die_with_parent()?;
        // First, so that all that follows is charged to the sandbox, and while this
        // process has one thread: then the kernel need not stop all others' forks.
        for door in std::mem::take(&mut options.doors) {
            rustix::io::write(door, b"0").map_err(|error| {
                io::Error::new(error.kind(), format!("cannot enter a cgroup: {error}"))
            })?;
        }
        namespaces::go(prepared, capabilities)?;
        // Those of before are the host's.
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        dup2_stderr(&null)?;
        Ok(())
    }
}

/// Clones this process into the group of version 2 where the kernel can, else leaves the
/// clone a way to it.
fn clone_for(options: &mut Options) -> io::Result<CloneResult> {
    if let Some(unified) = &options.cgroup2 {
        match sys::clone_beside(namespaces::BORN_INTO, Some(unified.as_fd())) {
            // Kernels before 5.7 and containers refuse the call itself.
            Err(error) if UNKNOWN.contains(&error.raw_os_error().unwrap_or(0)) => {
                let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                options.doors.push(openat(unified, "cgroup.procs", flags, Mode::empty())?);
            }
            result => return result,
        }
    }
    sys::clone_beside(namespaces::BORN_INTO, None)
}

/// Executes the program once more. Whose the files of a process in `/proc` are that may not be
/// looked at is said by the user namespace in which it was executed: root of that (proc(5)).
/// Where the zygote's root is one with the user of commands, and a guest without capabilities
/// with both, they would be theirs.
fn start_anew(options: &Options) -> io::Error {
    let Options { transport, cgroup2, freezer, memory_events, .. } = options;
    let Transport::Control(control) = transport else { return io::ErrorKind::InvalidInput.into() };
    let mut program = Command::new("/proc/self/exe");
    program.arg0("outrigger-guest").env_clear();
    let given = [
        ("--control", Some(control)),
        ("--cgroup2", cgroup2.as_ref()),
        ("--freezer", freezer.as_ref()),
        ("--memory-events", memory_events.as_ref()),
    ];
    for (name, fd) in given {
        let Some(fd) = fd else { continue };
        if let Err(error) = fcntl_setfd(fd, FdFlags::empty()) {
            return error.into();
        }
        program.args([name, &fd.as_raw_fd().to_string()]);
    }
    program.exec()
}

/// What a kernel says to a call or a flag that it does not have or is not to give.
const UNKNOWN: [i32; 4] = [libc::ENOSYS, libc::E2BIG, libc::EINVAL, libc::EPERM];
