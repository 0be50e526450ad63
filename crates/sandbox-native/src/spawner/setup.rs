//! What a new process does between its birth and becoming the guest.
//!
//! Owns the order in which it takes its namespaces and gives up the host. It starts
//! as a copy of the spawner, which holds no secret, and ends by executing the guest
//! program, after which nothing of the spawner's memory or descriptors is left. The
//! user namespace comes last, so that neither guest nor commands have any rights
//! over the other namespaces or the mounts.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use outrigger_sandbox::Generation;
use outrigger_sandbox::limits::HANDED_OVER_BYTES_MAX;
use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::root::Ready;
use super::sys;
use crate::cgroup::Handles;

/// From spawner to child: the disk is made, and later, the ids are mapped.
pub(super) const GO: &[u8] = b"g";
/// From child to spawner: the user namespace is there, map it.
pub(super) const MAP: &[u8] = b"m";
/// From the guest: it serves.
pub(super) const READY: &[u8] = b"r";

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
    /// The guest's control socket, over which the two agree until then.
    pub(super) control: OwnedFd,
    pub(super) program: BorrowedFd<'a>,
    pub(super) handles: Handles,
    pub(super) root: &'a Ready<'a>,
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

fn await_go(control: &OwnedFd) -> io::Result<()> {
    let mut byte = [0; 1];
    match recv(control, &mut byte, RecvFlags::empty())? {
        (_, 1) if byte == GO => Ok(()),
        _ => Err(io::Error::other("the spawner gave up")),
    }
}

/// No file of the sandbox's grows above its disk, whoever writes it; nor does what the
/// guest hands over.
fn limit_files(disk_bytes_max: u64) -> io::Result<()> {
    let bytes = Some(disk_bytes_max.max(HANDED_OVER_BYTES_MAX));
    let limit = Rlimit { current: bytes, maximum: bytes };
    Ok(setrlimit(Resource::Fsize, limit)?)
}

fn become_guest(child: Child<'_>, report: BorrowedFd<'_>) -> io::Result<std::convert::Infallible> {
    sys::settle()?;
    // First, so that all that follows is charged to the sandbox, and while this
    // process has one thread: then the kernel need not stop all others' forks.
    child.handles.join()?;
    // SAFETY: this process was just forked from one with a single thread.
    doing("make a network namespace", unsafe { sys::unshare(libc::CLONE_NEWNET) })?;
    doing("name the host", rustix::system::sethostname(b"sandbox"))?;
    doing("bring the loopback interface up", sys::loopback_up())?;
    forget_segments();
    await_go(&child.control)?;
    let output = child.root.enter()?;
    // The groups that were entered above become the root of the namespace.
    // SAFETY: as above.
    doing("make a cgroup namespace", unsafe { sys::unshare(libc::CLONE_NEWCGROUP) })?;
    // SAFETY: as above.
    doing("make a user namespace", unsafe { sys::unshare(libc::CLONE_NEWUSER) })?;
    send(&child.control, MAP, SendFlags::NOSIGNAL)?;
    await_go(&child.control)?;
    doing("limit its files", limit_files(child.file_bytes_max))?;
    doing("take the sandbox's user", sys::become_user(child.inside))?;
    let capabilities: &[u32] = if child.inside == 0 { &GUEST_CAPABILITIES } else { &[] };
    doing("give up capabilities", sys::bound_capabilities(capabilities))?;
    let error = execute(child, &output, report)?;
    doing("execute the guest program", Err(error))
}

/// Lets segments of shared memory go with the last process that has them, so that a
/// command that was killed for memory gives it back; see shm_rmid_forced in proc(5).
/// Where the kernel leaves this to the host's root alone, they stay until the sandbox ends.
fn forget_segments() {
    let _ = std::fs::write("/proc/sys/kernel/shm_rmid_forced", "1");
}

/// Puts every descriptor at its number, closes all others, and executes. A failure of
/// that is still to be reported.
fn execute(child: Child<'_>, output: &OwnedFd, report: BorrowedFd<'_>) -> io::Result<io::Error> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let Handles { unified, freezer, events, doors: _ } = &child.handles;
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
