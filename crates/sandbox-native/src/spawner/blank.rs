//! A process that is apart from the host's others and nobody's sandbox yet.
//!
//! Owns how one is made: its groups, the fork, and the socket over which it is told
//! what to become. It holds nothing of any sandbox and has all that sandboxes have in
//! common, which is most of what a birth takes: it even executes the guest program, which
//! waits to be told whose it is. See [`setup`] for its own side.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Signal, pidfd_send_signal};
use rustix::thread::CapabilitySet;

use super::root::{Ground, Home};
use super::setup::{self, Child};
use super::sys::{self, Fork};
use crate::cgroup::{Group, Groups, Handles};
use crate::limits;

/// Namespaces that a process is born into; it takes the others when it is ready for them.
const NAMESPACES: libc::c_int = libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Whose child a blank is. It is always waited for by the spawner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    /// That of the process which makes it.
    This,
    /// The spawner, whose child this process is too.
    Above,
}

/// What all blanks are made from.
#[derive(Debug)]
pub(super) struct Mould {
    /// The guest program, a sealed memory file.
    pub(super) program: OwnedFd,
    pub(super) groups: Groups,
    pub(super) home: Rc<Home>,
    /// What guests are left of their rights in their own user namespace.
    pub(super) capabilities: CapabilitySet,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Blank {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    /// Over which it is told, and over which its guest is spoken to later.
    pub(super) control: OwnedFd,
    pub(super) group: Group,
}

impl Mould {
    /// Makes a blank on this ground, in groups of this name. To be called by a process with one thread.
    pub(super) fn cast(
        &self,
        ground: &Rc<Ground>,
        name: &str,
        parent: Parent,
    ) -> io::Result<Blank> {
        let group = self.groups.at(name);
        self.groups.make(&group)?;
        let made = self.fork(ground, &group, parent);
        if made.is_err() {
            group.remove();
        }
        let (pid, pidfd, control) = made?;
        Ok(Blank { pid, pidfd, control, group })
    }

    fn fork(
        &self,
        ground: &Rc<Ground>,
        group: &Group,
        parent: Parent,
    ) -> io::Result<(i32, OwnedFd, OwnedFd)> {
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let limit = Duration::from_millis(limits::GUEST_START_MS_MAX);
        set_socket_timeout(&control, Timeout::Recv, Some(limit))?;
        let mut handles = group.handles()?;
        let namespaces = match **ground {
            Ground::Apart(_) => NAMESPACES,
            Ground::Shared => 0,
        };
        let flags = match parent {
            Parent::This => namespaces,
            Parent::Above => namespaces | libc::CLONE_PARENT,
        };
        match fork(flags, &mut handles)? {
            Fork::Parent { pid, pidfd } => Ok((pid, pidfd, control)),
            Fork::Child => {
                drop(control);
                let (program, capabilities) = (self.program.as_fd(), self.capabilities);
                setup::run(Child { control: theirs, program, handles, ground, capabilities })
            }
        }
    }
}

/// Forks into the group of version 2 where the kernel can, else leaves a door to it.
fn fork(flags: libc::c_int, handles: &mut Handles) -> io::Result<Fork> {
    if let Some(unified) = &handles.unified {
        // SAFETY: the caller has one thread.
        match unsafe { sys::fork_into(flags, unified.as_fd()) } {
            // Kernels before 5.7 and containers refuse the call itself.
            Err(error) if UNKNOWN.contains(&error.raw_os_error().unwrap_or(0)) => {
                handles.knock_on_unified()?;
            }
            result => return result,
        }
    }
    // SAFETY: the caller has one thread.
    unsafe { sys::fork(flags) }
}

/// What a kernel says to a call or a flag that it does not have or is not to give.
const UNKNOWN: [i32; 4] = [libc::ENOSYS, libc::E2BIG, libc::EINVAL, libc::EPERM];

impl Blank {
    /// Whether it ended, which it does only if something is wrong.
    pub(super) fn has_ended(&self) -> bool {
        sys::is_readable(&self.pidfd)
    }

    /// Ends it. To be called by the spawner.
    pub(super) fn discard(self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        sys::wait(self.pid);
        self.group.remove();
    }
}
