//! The program of which guests are cloned.
//!
//! Owns its start, after which nothing of the spawner's memory or descriptors is left, and
//! how it is asked for a guest. It holds no more than all guests have in common, and ends
//! with the spawner. See `zygote.rs` of the guest for its own side.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::process::{Signal, pidfd_send_signal};
use rustix::thread::CapabilitySet;

use crate::spawner::quota::cgroup::Handles;
use crate::spawner::sys::{self, Fork};
use crate::{limits, passing};

/// Its descriptor numbers, above the standard streams.
const SOCKET: i32 = 3;
const PREPARED: i32 = 4;
const PROGRAM: i32 = 5;
/// Numbers that descriptors are moved above before they are put in place.
const SCRATCH: i32 = 32;

/// The process of which guests are cloned.
#[derive(Debug)]
pub(crate) struct Zygote {
    pid: i32,
    pidfd: OwnedFd,
    /// Over which it is asked, one guest at a time.
    pub(crate) socket: OwnedFd,
}

impl Zygote {
    /// Starts one of this sealed program for this prepared root, a mount namespace. Its
    /// guests keep these capabilities. To be called by the spawner, whose children they are.
    pub(crate) fn start(
        program: &OwnedFd,
        capabilities: CapabilitySet,
        prepared: &OwnedFd,
    ) -> io::Result<Self> {
        let spawner = rustix::process::getpid().as_raw_nonzero().get();
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let limit = Duration::from_millis(limits::GUEST_START_MS_MAX);
        set_socket_timeout(&socket, Timeout::Recv, Some(limit))?;
        // SAFETY: the spawner has one thread.
        match unsafe { sys::fork(0) }? {
            Fork::Parent { pid, pidfd } => Ok(Self { pid, pidfd, socket }),
            Fork::Child => {
                // Out of the way of all that is put in place.
                let Ok(report) = sys::move_above(theirs.as_fd(), 2 * SCRATCH) else {
                    sys::leave(1)
                };
                let ready = sys::die_with(spawner);
                let Err(error) = ready.and_then(|()| {
                    execute(program, capabilities, prepared, &theirs, report.as_raw_fd())
                });
                let why = format!("cannot execute the guest program: {error}");
                let _ = send(&report, why.as_bytes(), SendFlags::NOSIGNAL);
                sys::leave(1)
            }
        }
    }

    /// Has a guest cloned that waits to be told over `control` whose it is. Gives its number
    /// and its pidfd, or the zygote's word for why there is none. After an error of the
    /// socket's, or none in time, what comes over it may be for another guest.
    pub(crate) fn ask(
        &self,
        control: BorrowedFd<'_>,
        handles: &Handles,
    ) -> io::Result<Result<(i32, OwnedFd), String>> {
        let Handles { unified, freezer, events, doors } = handles;
        let named = [("--cgroup2", unified), ("--freezer", freezer), ("--memory-events", events)];
        let named = named.into_iter().filter_map(|(name, fd)| Some((name, fd.as_ref()?.as_fd())));
        let doors = doors.iter().map(|door| ("--door", door.as_fd()));
        let (names, fds): (Vec<_>, Vec<_>) =
            std::iter::once(("--control", control)).chain(named).chain(doors).unzip();
        let places = names.iter().enumerate().map(|(place, name)| format!("{name}\0{place}"));
        let order = places.collect::<Vec<_>>().join("\0");
        match passing::send(&self.socket, order.as_bytes(), &fds, SendFlags::empty()) {
            Ok(_) => self.answer(RecvFlags::empty()),
            // It may have said why before it ended.
            Err(error) => self.answer(RecvFlags::DONTWAIT).map_err(|_| error),
        }
    }

    fn answer(&self, flags: RecvFlags) -> io::Result<Result<(i32, OwnedFd), String>> {
        let mut said = [0; 512];
        let (length, fds) = passing::receive(&self.socket, &mut said, flags)?;
        let said = String::from_utf8_lossy(&said[..length]);
        match (<[OwnedFd; 1]>::try_from(fds), said.parse()) {
            (Ok([pidfd]), Ok(pid)) => Ok(Ok((pid, pidfd))),
            _ if said.is_empty() => Err(io::Error::other("the guest program ended")),
            _ => Ok(Err(said.into_owned())),
        }
    }

    /// Ends it, and what it made that nobody heard of. To be called by the spawner.
    pub(crate) fn dismiss(self) {
        end(self.pid, &self.pidfd);
        while let Ok(made) = self.answer(RecvFlags::DONTWAIT) {
            if let Ok((pid, pidfd)) = made {
                end(pid, &pidfd);
            }
        }
    }
}

fn end(pid: i32, pidfd: &OwnedFd) {
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
    sys::wait(pid);
}

/// Puts every descriptor at its number, closes all others but `report`, and executes.
fn execute(
    program: &OwnedFd,
    capabilities: CapabilitySet,
    prepared: &OwnedFd,
    socket: &OwnedFd,
    report: i32,
) -> io::Result<Infallible> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut args = vec!["outrigger-guest".to_owned()];
    args.extend(["--zygote".to_owned(), SOCKET.to_string()]);
    args.extend(["--capabilities".to_owned(), capabilities.bits().to_string()]);
    args.extend(["--prepared".to_owned(), PREPARED.to_string()]);
    let above = |fd: BorrowedFd<'_>| sys::move_above(fd, SCRATCH);
    let (null, program) = (above(null.as_fd())?, above(program.as_fd())?);
    let given: Vec<_> = [(socket.as_fd(), SOCKET), (prepared.as_fd(), PREPARED)]
        .into_iter()
        .map(|(fd, number)| Ok((above(fd)?, number)))
        .collect::<io::Result<_>>()?;
    for number in 0..=2 {
        sys::place(null.as_fd(), number)?;
    }
    for (fd, number) in &given {
        sys::place(fd.as_fd(), *number)?;
    }
    sys::place_closing(program.as_fd(), PROGRAM)?;
    let args: Vec<CString> =
        args.into_iter().map(CString::new).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let args: Vec<&CStr> = args.iter().map(CString::as_c_str).collect();
    // What is closed here by number is never touched again: this process becomes another or ends.
    std::mem::forget((null, program, given));
    let report = report.unsigned_abs();
    sys::close_between(PROGRAM.unsigned_abs() + 1, report - 1)?;
    sys::close_from(report + 1)?;
    Err(sys::exec_number(PROGRAM, &args))
}
