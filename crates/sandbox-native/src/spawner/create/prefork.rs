//! A process that is apart from the host's others and nobody's sandbox yet.
//!
//! Owns how one is made: its groups, and the socket over which it is told what to become.
//! It is a clone of the zygote that holds nothing of any sandbox and has all that
//! sandboxes have in common, which is most of what a start takes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Signal, pidfd_send_signal};
use rustix::thread::CapabilitySet;

use super::zygote::Zygote;
use crate::limits;
use crate::spawner::quota::cgroup::{Group, Groups, Handles};
use crate::spawner::rootfs::HostMounts;
use crate::spawner::sys;

/// What all guests are made from.
#[derive(Debug)]
pub(crate) struct GuestTemplate {
    /// The guest program, a sealed memory file.
    pub(crate) program: OwnedFd,
    pub(crate) groups: Groups,
    pub(crate) host: Rc<HostMounts>,
    /// What guests are left of their rights in their own user namespace.
    pub(crate) capabilities: CapabilitySet,
}

/// A guest in namespaces of its own that waits to be told whose it is.
#[derive(Debug)]
pub(crate) struct PreforkedGuest {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// Over which it is told, and over which its guest is spoken to later.
    pub(crate) control: OwnedFd,
    pub(crate) group: Group,
}

impl GuestTemplate {
    /// Makes a guest in groups of this name, or says why there is none. After an error the
    /// zygote is of no more use.
    pub(crate) fn prefork(
        &self,
        zygote: &Zygote,
        name: &str,
    ) -> io::Result<Result<PreforkedGuest, String>> {
        let group = self.groups.at(name);
        let handles = self.groups.make(&group).and_then(|()| group.handles());
        let made = match handles {
            Ok(handles) => clone(zygote, &handles),
            Err(error) => Ok(Err(format!("cannot make its groups: {error}"))),
        };
        match made {
            Ok(Ok((pid, pidfd, control))) => Ok(Ok(PreforkedGuest { pid, pidfd, control, group })),
            Ok(Err(why)) => {
                group.remove();
                Ok(Err(why))
            }
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }
}

type ClonedProcess = (i32, OwnedFd, OwnedFd);

fn clone(zygote: &Zygote, handles: &Handles) -> io::Result<Result<ClonedProcess, String>> {
    let (control, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let limit = Duration::from_millis(limits::GUEST_START_MS_MAX);
    set_socket_timeout(&control, Timeout::Recv, Some(limit))?;
    let answer = zygote.ask(theirs.as_fd(), handles)?;
    Ok(answer.map(|(pid, pidfd)| (pid, pidfd, control)))
}

impl PreforkedGuest {
    /// Whether it ended, which it does only if something is wrong.
    pub(crate) fn has_ended(&self) -> bool {
        sys::is_readable(&self.pidfd)
    }

    /// Ends it. To be called by the spawner.
    pub(crate) fn discard(self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        sys::wait(self.pid);
        self.group.remove();
    }
}
