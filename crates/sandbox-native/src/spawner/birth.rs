//! The spawner's side of a birth: fork, map, wait until the guest serves.
//!
//! Owns the handshake with the new process and its time limit. A birth that fails
//! leaves no process behind.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use outrigger_sandbox::Generation;
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::process::{Signal, pidfd_send_signal};

use super::ids::Lease;
use super::root::Plan;
use super::setup::{self, Child, GO, MAP, READY};
use super::sys::{self, Fork};
use crate::cgroup::{Group, Handles};
use crate::limits;

/// Namespaces that a process is born into; it takes the others when it is ready for
/// them, that of the network while the spawner makes its disk.
const NAMESPACES: libc::c_int = libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// What is to be born.
#[derive(Debug)]
pub(super) struct Order<'a> {
    /// The guest program, a sealed memory file.
    pub(super) program: &'a OwnedFd,
    pub(super) plan: Plan<'a>,
    pub(super) lease: &'a Lease,
    pub(super) group: &'a Group,
    pub(super) generation: &'a Generation,
    /// Processes of the commands together.
    pub(super) pids_max: u32,
    /// Largest file that a command can make, in bytes.
    pub(super) file_bytes_max: u64,
    /// The table of commands of an earlier life, a file open for reading.
    pub(super) kept: Option<&'a OwnedFd>,
}

/// A guest that serves.
#[derive(Debug)]
pub(super) struct Born {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) control: OwnedFd,
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let limit = Duration::from_millis(limits::GUEST_START_MS_MAX);
    set_socket_timeout(&ours, Timeout::Recv, Some(limit))?;
    Ok((ours, theirs))
}

/// Makes a guest.
pub(super) fn give_birth(order: Order<'_>) -> io::Result<Born> {
    let Order { program, plan, lease, group, generation, pids_max, file_bytes_max, kept } = order;
    let root = plan.ready()?;
    let (control, theirs) = pair()?;
    let mut handles = group.handles()?;
    let (pid, pidfd) = match fork(&mut handles)? {
        Fork::Parent { pid, pidfd } => (pid, pidfd),
        Fork::Child => setup::run(Child {
            control: theirs,
            program: program.as_fd(),
            handles,
            root: &root,
            generation,
            pids_max,
            file_bytes_max,
            kept: kept.map(AsFd::as_fd),
            inside: lease.inside(),
        }),
    };
    drop((theirs, handles));
    match root.make_disk().and_then(|()| attend(pid, &control, lease)) {
        Ok(()) => Ok(Born { pid, pidfd, control }),
        Err(error) => {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            sys::wait(pid);
            Err(error)
        }
    }
}

/// Forks into the group of version 2 where the kernel can, else leaves a door to it.
fn fork(handles: &mut Handles) -> io::Result<Fork> {
    if let Some(unified) = &handles.unified {
        // SAFETY: the spawner has one thread.
        match unsafe { sys::fork_into(NAMESPACES, unified.as_fd()) } {
            // Kernels before 5.7 and containers refuse the call itself.
            Err(error) if UNKNOWN.contains(&error.raw_os_error().unwrap_or(0)) => {
                handles.knock_on_unified()?;
            }
            result => return result,
        }
    }
    // SAFETY: the spawner has one thread.
    unsafe { sys::fork(NAMESPACES) }
}

/// What a kernel says to a call or a flag that it does not have or is not to give.
const UNKNOWN: [i32; 4] = [libc::ENOSYS, libc::E2BIG, libc::EINVAL, libc::EPERM];

fn attend(pid: i32, control: &OwnedFd, lease: &Lease) -> io::Result<()> {
    send(control, GO, SendFlags::NOSIGNAL)?;
    expect(control, MAP)?;
    let map = lease.map();
    // Root of a namespace may map many ids; with one, giving up groups stays forbidden.
    for file in ["uid_map", "gid_map"] {
        write_map(&format!("/proc/{pid}/{file}"), &map).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot map user ids ({file}): {error}"))
        })?;
    }
    send(control, GO, SendFlags::NOSIGNAL)?;
    expect(control, READY)
}

fn write_map(path: &str, map: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, map.as_bytes())?;
    Ok(())
}

/// Waits for a word of the new process; any other is why there is none.
fn expect(control: &OwnedFd, wanted: &[u8]) -> io::Result<()> {
    let mut report = [0; 512];
    let (_, length) = retry_on_intr(|| recv(control, &mut report[..], RecvFlags::empty()))?;
    match &report[..length] {
        [] => Err(io::Error::other("the new process ended before it served")),
        message if message == wanted => Ok(()),
        message => Err(io::Error::other(String::from_utf8_lossy(message).into_owned())),
    }
}
