//! The spawner's side of a birth: fork, attach, map, wait until the guest serves.
//!
//! Owns the handshake with the new process and its time limit. A birth that fails
//! leaves no process behind.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use outrigger_sandbox::Generation;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::process::{Signal, pidfd_send_signal};

use super::ids::Lease;
use super::root::Plan;
use super::setup::{self, Child, GO, MAP};
use super::sys::{self, Fork};
use crate::cgroup::Group;
use crate::limits;

/// Namespaces that a process is born into; cgroup and user follow when it is ready for them.
const NAMESPACES: libc::c_int = libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

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
    let (sync, child_sync) = pair()?;
    let (control, child_control) = pair()?;
    let handles = group.handles()?;
    // SAFETY: the spawner has one thread.
    let (pid, pidfd) = match unsafe { sys::fork(NAMESPACES) }? {
        Fork::Parent { pid, pidfd } => (pid, pidfd),
        Fork::Child => setup::run(Child {
            sync: child_sync,
            control: child_control,
            program: program.as_fd(),
            handles,
            root: plan,
            generation,
            pids_max,
            file_bytes_max,
            kept: kept.map(AsFd::as_fd),
            inside: lease.inside(),
        }),
    };
    drop((child_sync, child_control, handles));
    match attend(pid, &sync, &control, lease, group) {
        Ok(()) => Ok(Born { pid, pidfd, control }),
        Err(error) => {
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            sys::wait(pid);
            Err(error)
        }
    }
}

fn attend(
    pid: i32,
    sync: &OwnedFd,
    control: &OwnedFd,
    lease: &Lease,
    group: &Group,
) -> io::Result<()> {
    group.attach(pid)?;
    send(sync, GO, SendFlags::NOSIGNAL)?;
    expect(sync, MAP)?;
    let map = lease.map();
    // Root of a namespace may map many ids; with one, giving up groups stays forbidden.
    for file in ["uid_map", "gid_map"] {
        fs::write(format!("/proc/{pid}/{file}"), &map).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot map user ids ({file}): {error}"))
        })?;
    }
    send(sync, GO, SendFlags::NOSIGNAL)?;
    // Its end closes by the exec; before that it may tell why there is none.
    let mut report = [0; 512];
    let (_, length) = recv(sync, &mut report, RecvFlags::empty())?;
    if length > 0 {
        return Err(io::Error::other(String::from_utf8_lossy(&report[..length]).into_owned()));
    }
    let mut ready = [0; 1];
    match recv(control, &mut ready, RecvFlags::empty())? {
        (_, 1) => Ok(()),
        _ => Err(io::Error::other("the guest program ended before it served")),
    }
}

fn expect(sync: &OwnedFd, wanted: &[u8]) -> io::Result<()> {
    let mut report = [0; 512];
    let (_, length) = recv(sync, &mut report, RecvFlags::empty())?;
    match &report[..length] {
        [] => Err(io::Error::other("the new process ended at once")),
        message if message == wanted => Ok(()),
        message => Err(io::Error::other(String::from_utf8_lossy(message).into_owned())),
    }
}
