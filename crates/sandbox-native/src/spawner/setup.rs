//! What a new process does between its birth and becoming a guest.
//!
//! Owns the order in which it takes its namespaces and gives up the host. It starts
//! as a copy of the spawner, which holds no secret, and ends by executing the guest
//! program, after which nothing of the spawner's memory or descriptors is left. The
//! user namespace comes last, so that neither guest nor commands have any rights over
//! the other namespaces or the mounts. It knows nothing of whose guest it will be.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{SendFlags, send};
use rustix::thread::CapabilitySet;

use super::root::{Ground, enter_prepared};
use super::sys;
use crate::cgroup::Handles;

/// From the guest: it waits to be told whose it is.
pub(super) const WAITING: &[u8] = b"w";
/// From the guest: it serves.
pub(super) const READY: &[u8] = b"r";

/// Descriptor numbers of the guest, above the standard streams.
const CONTROL: i32 = 3;
const CGROUP2: i32 = 4;
const FREEZER: i32 = 5;
const EVENTS: i32 = 6;
const PROGRAM: i32 = 7;
/// Numbers that descriptors are moved above before they are put in place.
const SCRATCH: i32 = 32;

/// Capabilities of a guest with a range of ids: to kill, to set groups and users, and
/// to empty its bounding set.
pub(super) const GUEST_CAPABILITIES: CapabilitySet = CapabilitySet::KILL
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP);

/// What the child needs before it is told anything.
#[derive(Debug)]
pub(super) struct Child<'a> {
    /// The guest's control socket, over which the two agree until then.
    pub(super) control: OwnedFd,
    pub(super) program: BorrowedFd<'a>,
    pub(super) handles: Handles,
    pub(super) ground: &'a Ground,
    /// What the guest is left of its rights in its own user namespace.
    pub(super) capabilities: CapabilitySet,
}

/// Becomes the guest, or reports why not and ends.
pub(super) fn run(child: Child<'_>) -> ! {
    // Out of the way of all that is put in place.
    if let Ok(report) = sys::move_above(child.control.as_fd(), 2 * SCRATCH) {
        let Err(error) = become_guest(child, report.as_fd());
        let _ = send(&report, error.to_string().as_bytes(), SendFlags::NOSIGNAL);
    }
    sys::leave(1)
}

fn doing<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("cannot {what}: {error}"))
    })
}

fn become_guest(child: Child<'_>, report: BorrowedFd<'_>) -> io::Result<std::convert::Infallible> {
    sys::settle()?;
    // First, so that all that follows is charged to the sandbox, and while this
    // process has one thread: then the kernel need not stop all others' forks.
    child.handles.join()?;
    if let Ground::Apart(prepared) = child.ground {
        go_apart(prepared.as_fd(), child.capabilities)?;
    }
    let error = execute(child, report)?;
    doing("execute the guest program", Err(error))
}

/// Takes the namespaces that it was not born into, and leaves the host's root.
fn go_apart(prepared: BorrowedFd<'_>, capabilities: CapabilitySet) -> io::Result<()> {
    // SAFETY: this process was just forked from one with a single thread.
    doing("make a network namespace", unsafe { sys::unshare(libc::CLONE_NEWNET) })?;
    doing("name the host", rustix::system::sethostname(b"sandbox"))?;
    doing("bring the loopback interface up", sys::loopback_up())?;
    enter_prepared(prepared)?;
    // The groups that were entered above become the root of the namespace.
    // SAFETY: as above.
    doing("make a cgroup namespace", unsafe { sys::unshare(libc::CLONE_NEWCGROUP) })?;
    // SAFETY: as above.
    doing("make a user namespace", unsafe { sys::unshare(libc::CLONE_NEWUSER) })?;
    doing("give up capabilities", sys::bound_capabilities(capabilities))?;
    // Its ids are mapped later, and who has none is not root of its namespace.
    doing("keep capabilities", sys::keep_capabilities(capabilities))
}

/// Puts every descriptor at its number, closes all others, and executes. A failure of
/// that is still to be reported.
fn execute(child: Child<'_>, report: BorrowedFd<'_>) -> io::Result<io::Error> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let Handles { unified, freezer, events, doors: _ } = &child.handles;
    let given = [
        (Some(child.control.as_fd()), CONTROL, "--control"),
        (unified.as_ref().map(AsFd::as_fd), CGROUP2, "--cgroup2"),
        (freezer.as_ref().map(AsFd::as_fd), FREEZER, "--freezer"),
        (events.as_ref().map(AsFd::as_fd), EVENTS, "--memory-events"),
    ];
    let ground = match child.ground {
        Ground::Apart(_) => "apart",
        Ground::Shared => "shared",
    };
    let mut args = ["outrigger-guest", "--ground", ground].map(str::to_owned).to_vec();
    let mut moved = Vec::new();
    for (fd, number, name) in given {
        let Some(fd) = fd else { continue };
        moved.push((sys::move_above(fd, SCRATCH)?, number));
        args.extend([name.to_owned(), number.to_string()]);
    }
    let null = sys::move_above(null.as_fd(), SCRATCH)?;
    let program = sys::move_above(child.program, SCRATCH)?;
    for number in 0..=2 {
        sys::place(null.as_fd(), number)?;
    }
    for (fd, number) in &moved {
        sys::place(fd.as_fd(), *number)?;
    }
    sys::place_closing(program.as_fd(), PROGRAM)?;
    let args: Vec<CString> =
        args.into_iter().map(CString::new).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let args: Vec<&CStr> = args.iter().map(CString::as_c_str).collect();
    // What is closed here by number is never touched again: this process ends or becomes another.
    std::mem::forget((moved, null, program, child));
    let report = report.as_raw_fd().unsigned_abs();
    sys::close_between(PROGRAM.unsigned_abs() + 1, report - 1)?;
    sys::close_from(report + 1)?;
    Ok(sys::exec_number(PROGRAM, &args))
}
