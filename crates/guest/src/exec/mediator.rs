//! Changes of files for which Landlock knows no right: of their modes and their times.
//!
//! Owns that they are made on the sandbox's disk alone. Where commands are of the user whose
//! files lie beside that, their filter has the kernel ask here instead
//! (seccomp_unotify(2)): what the call names is looked up once, and if it is on the disk the
//! change is made here, on what was found and not on the name, which may lead elsewhere by
//! then. Nothing outside can become something on the disk meanwhile: the domain of commands
//! keeps it from being moved or linked there. Never waits for a command.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use outrigger_sandbox::limits as door;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};

use crate::ground::{self, WRITTEN};
use crate::sys;

/// One command's way to ask.
#[derive(Debug)]
enum Way {
    /// Over which it hands its listener over before it executes anything.
    Expected(OwnedFd),
    /// On which the kernel asks for it and all that it started.
    Open(OwnedFd),
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Mediator {
    ways: Vec<Way>,
}

/// What is to be changed of a file.
#[derive(Debug, Clone, Copy)]
enum Change {
    Mode(u32),
    /// Last access and last change; both now if there are none.
    Times(Option<[libc::timespec; 2]>),
}

/// How times lie in the caller's memory.
#[derive(Debug, Clone, Copy)]
enum Layout {
    Nanoseconds,
    Microseconds,
    Seconds,
}

/// A call, as far as its registers tell.
#[derive(Debug, Clone, Copy)]
struct Call {
    dir: i32,
    /// Where its path is. `None`: the descriptor itself is meant.
    path: Option<u64>,
    wanted: Wanted,
    flags: i32,
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    Mode(u32),
    Times(u64, Layout),
}

/// The ends of what a listener comes over: ours, and the command's.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

impl Mediator {
    /// A command was started that hands its listener over.
    pub(crate) fn expect(&mut self, ours: OwnedFd) {
        self.ways.push(Way::Expected(ours));
    }

    /// Adds all that is to be waited for, each with its number.
    pub(crate) fn poll(&self, mut add: impl FnMut(libc::pollfd, usize)) {
        for (number, way) in self.ways.iter().enumerate() {
            let (Way::Expected(fd) | Way::Open(fd)) = way;
            add(sys::pollfd(fd, libc::POLLIN), number);
        }
    }

    /// One is ready, for one question. Those that are over stay until [`Mediator::tidy`], so
    /// that numbers hold.
    pub(crate) fn ready(&mut self, number: usize) {
        let Some(way) = self.ways.get_mut(number) else { return };
        match way {
            Way::Expected(socket) => {
                if let Some(listener) = take(socket) {
                    *way = Way::Open(listener);
                }
            }
            Way::Open(listener) => answer(listener),
        }
    }

    /// Forgets those that nobody asks by any more.
    pub(crate) fn tidy(&mut self) {
        self.ways.retain(|way| {
            let (Way::Expected(fd) | Way::Open(fd)) = way;
            let mut fds = [sys::pollfd(fd, libc::POLLIN)];
            sys::poll(&mut fds, 0).is_err()
                || fds[0].revents & libc::POLLIN != 0
                || fds[0].revents & (libc::POLLHUP | libc::POLLERR) == 0
        });
    }
}

/// The listener, if it came.
fn take(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [io::IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(socket, &mut parts, &mut ancillary, flags).ok()?;
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
        _ => None,
    })
}

/// Answers one question. Whoever asked may be gone, which is no matter.
fn answer(listener: &OwnedFd) {
    let Some(asked) = sys::asked(listener) else { return };
    let error = match decide(&asked, || sys::still_asks(listener, asked.id)) {
        Ok(()) => 0,
        Err(errno) => -errno.raw_os_error(),
    };
    sys::tell_asked(listener, asked.id, error);
}

fn decide(asked: &libc::seccomp_notif, asks: impl Fn() -> bool) -> Result<(), Errno> {
    let call = Call::of(&asked.data).ok_or(Errno::PERM)?;
    let memory = open(&format!("/proc/{}/mem", asked.pid), OFlags::RDONLY)?;
    let path = call.path.map(|at| read_path(&memory, at)).transpose()?;
    let change = match call.wanted {
        Wanted::Mode(mode) => Change::Mode(mode),
        Wanted::Times(0, _) => Change::Times(None),
        Wanted::Times(at, layout) => Change::Times(Some(read_times(&memory, at, layout)?)),
    };
    let found = find(asked.pid, &call, path)?;
    // Else the number may be another's by now, who did not ask.
    if !asks() {
        return Err(Errno::SRCH);
    }
    if !is_on_disk(&found)? {
        return Err(Errno::PERM);
    }
    let changed = match change {
        Change::Mode(mode) => sys::change_mode(&found, mode & 0o7777),
        Change::Times(times) => sys::change_times(&found, times),
    };
    changed.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

impl Call {
    /// From the registers, whose upper halves the kernel leaves out where it takes an int.
    #[expect(clippy::cast_possible_truncation, reason = "as the kernel does")]
    fn of(data: &libc::seccomp_data) -> Option<Self> {
        let [first, second, third, fourth, ..] = data.args;
        let (here, dir) = (libc::AT_FDCWD, first as i32);
        let mode = |mode: u64| Wanted::Mode(mode as u32);
        let perhaps = |path: u64| (path != 0).then_some(path);
        let (dir, path, wanted, flags) = match i64::from(data.nr) {
            libc::SYS_fchmod => (dir, None, mode(second), 0),
            libc::SYS_fchmodat => (dir, Some(second), mode(third), 0),
            libc::SYS_utimensat => {
                let times = Wanted::Times(third, Layout::Nanoseconds);
                (dir, perhaps(second), times, fourth as i32)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fchmodat2 => (dir, Some(second), mode(third), fourth as i32),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => (here, Some(first), mode(second), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utime => (here, Some(first), Wanted::Times(second, Layout::Seconds), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utimes => (here, Some(first), Wanted::Times(second, Layout::Microseconds), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_futimesat => {
                (dir, perhaps(second), Wanted::Times(third, Layout::Microseconds), 0)
            }
            _ => return None,
        };
        Some(Self { dir, path, wanted, flags })
    }
}

fn open(path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())
}

/// What a call names, as whoever called sees it.
fn find(pid: u32, call: &Call, path: Option<CString>) -> Result<OwnedFd, Errno> {
    let absolute = path.as_ref().is_some_and(|path| path.as_bytes().starts_with(b"/"));
    let dir = match call.dir {
        _ if absolute => None,
        libc::AT_FDCWD => Some(open(&format!("/proc/{pid}/cwd"), OFlags::PATH)?),
        number if number < 0 => return Err(Errno::BADF),
        number => match open(&format!("/proc/{pid}/fd/{number}"), OFlags::PATH) {
            Err(Errno::NOENT) => return Err(Errno::BADF),
            opened => Some(opened?),
        },
    };
    let follow = match call.flags & libc::AT_SYMLINK_NOFOLLOW {
        0 => OFlags::empty(),
        _ => OFlags::NOFOLLOW,
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC | follow;
    match (dir, path) {
        (Some(dir), None) => Ok(dir),
        (Some(dir), Some(path)) if path.is_empty() => {
            if call.flags & libc::AT_EMPTY_PATH == 0 {
                Err(Errno::NOENT)
            } else {
                Ok(dir)
            }
        }
        (Some(dir), Some(path)) => openat(dir, &path, flags, Mode::empty()),
        (None, Some(path)) => openat(CWD, own(pid, path)?, flags, Mode::empty()),
        (None, None) => Err(Errno::FAULT),
    }
}

/// A path with whoever called where it says `self`, which would be this program.
fn own(pid: u32, path: CString) -> Result<CString, Errno> {
    let bytes = path.as_bytes();
    let prefixes = [&b"/proc/self/"[..], b"/proc/thread-self/"];
    match prefixes.iter().find_map(|prefix| bytes.strip_prefix(*prefix)) {
        Some(rest) => CString::new([format!("/proc/{pid}/").as_bytes(), rest].concat())
            .map_err(|_| Errno::INVAL),
        None => Ok(path),
    }
}

/// Whether what was opened is on the disk, and such that commands may write there.
fn is_on_disk(found: &OwnedFd) -> Result<bool, Errno> {
    let place = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()));
    let place = place.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let place = place.as_os_str().as_bytes();
    for part in WRITTEN {
        let part = ground::seen(part).map_err(|_| Errno::IO)?;
        let rest = place.strip_prefix(part.as_bytes());
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A string of the caller's memory, which may end with a page.
fn read_path(memory: &OwnedFd, at: u64) -> Result<CString, Errno> {
    let mut bytes = vec![0; door::PATH_BYTES_MAX];
    let length = rustix::io::pread(memory, &mut bytes, at).map_err(|_| Errno::FAULT)?;
    match bytes[..length].iter().position(|byte| *byte == 0) {
        Some(end) => {
            bytes.truncate(end);
            CString::new(bytes).map_err(|_| Errno::FAULT)
        }
        None if length < door::PATH_BYTES_MAX => Err(Errno::FAULT),
        None => Err(Errno::NAMETOOLONG),
    }
}

fn read_times(memory: &OwnedFd, at: u64, layout: Layout) -> Result<[libc::timespec; 2], Errno> {
    let mut words = [[0; 8]; 4];
    let count = match layout {
        Layout::Nanoseconds | Layout::Microseconds => 4,
        Layout::Seconds => 2,
    };
    let bytes = words[..count].as_flattened_mut();
    let wanted = bytes.len();
    match rustix::io::pread(memory, bytes, at) {
        Ok(length) if length == wanted => {}
        Ok(_) | Err(_) => return Err(Errno::FAULT),
    }
    let [a, b, c, d] = words.map(i64::from_ne_bytes);
    let micro = |seconds: i64, rest: i64| match rest {
        0..1_000_000 => Ok(libc::timespec { tv_sec: seconds, tv_nsec: rest * 1_000 }),
        _ => Err(Errno::INVAL),
    };
    Ok(match layout {
        Layout::Nanoseconds => {
            [(a, b), (c, d)].map(|(tv_sec, tv_nsec)| libc::timespec { tv_sec, tv_nsec })
        }
        Layout::Microseconds => [micro(a, b)?, micro(c, d)?],
        Layout::Seconds => [micro(a, 0)?, micro(b, 0)?],
    })
}
