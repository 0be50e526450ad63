//! What a new process does between its birth and becoming the guest.
//!
//! Owns the order in which it takes its namespaces and gives up the host. It starts
//! as a copy of the spawner, which holds no secret, and ends by executing the guest
//! program, after which nothing of the spawner's memory or descriptors is left. The
//! user namespace comes last, so that neither guest nor commands have any rights
//! over the other namespaces or the mounts.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use outrigger_sandbox::Generation;
use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::root::{self, Plan};
use super::sys;
use crate::cgroup::Handles;

/// From spawner to child: go on.
pub(super) const GO: &[u8] = b"g";
/// From child to spawner: the user namespace is there, map it.
pub(super) const MAP: &[u8] = b"m";

/// Descriptor numbers of the guest, above the standard streams.
const CONTROL: i32 = 3;
const OUTPUT: i32 = 4;
const CGROUP2: i32 = 5;
const FREEZER: i32 = 6;
const EVENTS: i32 = 7;
const KEPT: i32 = 8;
const PROGRAM: i32 = 9;
/// Numbers that descriptors are moved above before they are put in place.
const SCRATCH: i32 = 32;

/// Capabilities of a guest with a range of ids, by number (linux/capability.h): to
/// kill, to set groups and users, and to empty its bounding set.
const GUEST_CAPABILITIES: [u32; 4] = [5, 6, 7, 8];

/// What the child needs.
#[derive(Debug)]
pub(super) struct Child<'a> {
    pub(super) sync: OwnedFd,
    pub(super) control: OwnedFd,
    pub(super) program: BorrowedFd<'a>,
    pub(super) handles: Handles,
    pub(super) root: Plan<'a>,
    pub(super) generation: &'a Generation,
    pub(super) pids_max: u32,
    /// Largest file that a command can make, in bytes.
    pub(super) file_bytes_max: u64,
    /// The table of commands of an earlier life.
    pub(super) kept: Option<BorrowedFd<'a>>,
    /// The guest's id inside.
    pub(super) inside: u32,
}

/// Becomes the guest, or reports why not and ends.
pub(super) fn run(child: Child<'_>) -> ! {
    let sync = child.sync.try_clone();
    let Err(error) = become_guest(child);
    if let Ok(sync) = sync {
        let _ = send(&sync, error.to_string().as_bytes(), SendFlags::NOSIGNAL);
    }
    sys::leave(1)
}

fn doing<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("cannot {what}: {error}"))
    })
}

fn await_go(sync: &OwnedFd) -> io::Result<()> {
    let mut byte = [0; 1];
    match recv(sync, &mut byte, RecvFlags::empty())? {
        (_, 1) if byte == GO => Ok(()),
        _ => Err(io::Error::other("the spawner gave up")),
    }
}

fn become_guest(child: Child<'_>) -> io::Result<std::convert::Infallible> {
    sys::settle()?;
    doing("name the host", rustix::system::sethostname(b"sandbox"))?;
    doing("bring the loopback interface up", sys::loopback_up())?;
    let output = root::enter(&child.root)?;
    // Meanwhile the spawner moved this process into its cgroups, which can take the
    // kernel longer than all of the above; they become the root of the namespace.
    await_go(&child.sync)?;
    // SAFETY: this process was just forked from one with a single thread.
    doing("make a cgroup namespace", unsafe { sys::unshare(libc::CLONE_NEWCGROUP) })?;
    // SAFETY: as above.
    doing("make a user namespace", unsafe { sys::unshare(libc::CLONE_NEWUSER) })?;
    send(&child.sync, MAP, SendFlags::NOSIGNAL)?;
    await_go(&child.sync)?;
    doing("take the sandbox's user", sys::become_user(child.inside))?;
    let capabilities: &[u32] = if child.inside == 0 { &GUEST_CAPABILITIES } else { &[] };
    doing("give up capabilities", sys::bound_capabilities(capabilities))?;
    let error = execute(child, &output)?;
    doing("execute the guest program", Err(error))
}

/// Puts every descriptor at its number, closes all others, and executes.
fn execute(child: Child<'_>, output: &OwnedFd) -> io::Result<io::Error> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let Handles { unified, freezer, events } = &child.handles;
    let given = [
        (Some(child.control.as_fd()), CONTROL, "--control"),
        (Some(output.as_fd()), OUTPUT, "--output"),
        (unified.as_ref().map(AsFd::as_fd), CGROUP2, "--cgroup2"),
        (freezer.as_ref().map(AsFd::as_fd), FREEZER, "--freezer"),
        (events.as_ref().map(AsFd::as_fd), EVENTS, "--memory-events"),
        (child.kept, KEPT, "--kept"),
    ];
    let mut args = vec!["outrigger-guest".to_owned()];
    args.extend(["--generation".to_owned(), child.generation.to_string()]);
    args.extend(["--pids".to_owned(), child.pids_max.to_string()]);
    args.extend(["--file-bytes".to_owned(), child.file_bytes_max.to_string()]);
    let mut moved = Vec::new();
    for (fd, number, name) in given {
        let Some(fd) = fd else { continue };
        moved.push((sys::move_above(fd, SCRATCH)?, number));
        args.extend([name.to_owned(), number.to_string()]);
    }
    let null = sys::move_above(null.as_fd(), SCRATCH)?;
    let program = sys::move_above(child.program, SCRATCH)?;
    let sync = sys::move_above(child.sync.as_fd(), SCRATCH)?;
    for number in 0..=2 {
        sys::place(null.as_fd(), number)?;
    }
    for (fd, number) in &moved {
        sys::place(fd.as_fd(), *number)?;
    }
    sys::place_closing(program.as_fd(), PROGRAM)?;
    // A failure to execute is still to be reported.
    sys::place_closing(sync.as_fd(), PROGRAM + 1)?;
    let args: Vec<CString> =
        args.into_iter().map(CString::new).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let args: Vec<&CStr> = args.iter().map(CString::as_c_str).collect();
    // What is closed here by number is never touched again: this process ends or becomes another.
    std::mem::forget((moved, null, program, sync, child));
    sys::close_from(PROGRAM.unsigned_abs() + 2)?;
    Ok(sys::exec_number(PROGRAM, &args))
}
