//! The system calls that have no safe wrapper elsewhere, each in one small function.
//!
//! Owns no state. Whatever is unsafe in this program is here or in
//! [`crate::exec::spawn`].

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use outrigger_sandbox::Generation;
use rustix::process::Signal;
use rustix::thread::{self, CapabilitySet, CapabilitySets, UnshareFlags};

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Waits until one of `fds` is ready or the time is over.
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout_ms: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of a live exclusive slice.
    let result = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
    check(libc::c_long::from(result)).map(|_| ())
}

/// Blocks every signal, of which commands could send any to a process that is about to
/// become one, and gives a descriptor that tells of SIGCHLD.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero sigset_t is valid for sigemptyset to initialise; the set
    // outlives both calls; the descriptor returned is new and owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        check(libc::c_long::from(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        )))?;
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(libc::c_long::from(fd))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A child that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildExit {
    pub(crate) pid: i32,
    pub(crate) status: i32,
    pub(crate) cpu_ms: u64,
    pub(crate) peak_bytes: u64,
}

/// Reaps one child that ended, if there is one.
pub(crate) fn reap() -> Option<ChildExit> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value, and both pointers are to live locals.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    if pid <= 0 {
        return None;
    }
    let ms = |time: libc::timeval| (time.tv_sec * 1000 + time.tv_usec / 1000).unsigned_abs();
    Some(ChildExit {
        pid,
        status,
        cpu_ms: ms(usage.ru_utime) + ms(usage.ru_stime),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    })
}

/// Sends a signal; a process that is gone is fine.
pub(crate) fn kill(pid: i32, signal: i32) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid, signal) };
}

/// A name for a life that nobody named.
pub(crate) fn generation() -> io::Result<Generation> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    let name = bytes.iter().fold(String::from("g"), |name, byte| format!("{name}{byte:02x}"));
    Generation::new(name).map_err(io::Error::other)
}

/// Which side of a clone this is.
pub(crate) enum CloneResult {
    Parent { pid: i32, pidfd: OwnedFd },
    Child,
}

/// `CLONE_INTO_CGROUP` of linux/sched.h, which is too wide for that of the C library.
pub(crate) const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Clones this process into new namespaces, as another child of its parent, and into a cgroup
/// of version 2: to move a process later waits for every fork and exit of the system, which
/// can take longer than all the rest of a start. To be called by a process with one thread.
pub(crate) fn clone_beside(
    namespaces: libc::c_int,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<CloneResult> {
    let flags = namespaces | libc::CLONE_PIDFD | libc::CLONE_PARENT;
    let mut pidfd: libc::c_int = -1;
    let pid = if let Some(cgroup) = cgroup {
        // SAFETY: it consists of numbers, of which zero says that nothing is asked for.
        let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
        args.flags = flags as u64 | CLONE_INTO_CGROUP;
        args.pidfd = (&raw mut pidfd) as u64;
        args.cgroup = cgroup.as_raw_fd() as u64;
        let size = size_of::<libc::clone_args>();
        // SAFETY: without a stack and shared memory this is fork(2), after which the clone
        // has its own copy of everything; callers have one thread, so that there are no
        // others whose locks it could copy. The kernel writes one descriptor to `pidfd`.
        unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size) }
    } else {
        let flags = flags as libc::c_ulong;
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, &raw mut pidfd, 0_usize, 0_usize) }
    };
    match check(pid)? {
        0 => Ok(CloneResult::Child),
        pid => {
            // SAFETY: the kernel made the descriptor for this call, and nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(CloneResult::Parent { pid: pid as i32, pidfd })
        }
    }
}

/// Enters new namespaces of its own. To be called by a process with one thread.
pub(crate) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: callers name namespaces, none of which is a table of descriptors.
    Ok(unsafe { thread::unshare_unsafe(namespaces) }?)
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: an all-zero ifreq is valid; the name fits and is null-terminated; the
    // kernel reads and writes the live local.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        check(libc::c_long::from(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &raw const request,
        )))?;
    }
    Ok(())
}

/// Takes over a descriptor that was inherited by number.
pub(crate) fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed; a number that is no descriptor gives an error.
    check(libc::c_long::from(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }))?;
    // SAFETY: the call above showed that it is open, and each number is named once
    // on the command line, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a descriptor give EAGAIN instead of waiting.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}

/// Switches this thread, and no other, to a user and group, for good.
///
/// The wrappers of the C library would switch every thread, hence the raw calls.
/// Leaving uid 0 also empties the thread's capability sets (capabilities(7)). Who has
/// no other id than its own is that user already.
pub(crate) fn become_user(id: u32) -> io::Result<()> {
    if rustix::process::geteuid().as_raw() == id {
        return Ok(());
    }
    // SAFETY: no memory is passed but a null list of length zero.
    unsafe {
        check(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()))?;
        check(libc::syscall(libc::SYS_setresgid, id, id, id))?;
        check(libc::syscall(libc::SYS_setresuid, id, id, id))?;
    }
    Ok(())
}

/// The user of commands and file operations. Root becomes another for them; whoever is not,
/// in a container, is the only one.
pub(crate) fn agent_id() -> u32 {
    /// That of every template.
    const AGENT_ID: u32 = 1000;
    let own = rustix::process::geteuid();
    if own.is_root() { AGENT_ID } else { own.as_raw() }
}

/// The rights of the sandbox's user on files, and no others, for this thread and until
/// this is dropped. What it held before had no rights on files but its own user's.
#[derive(Debug)]
pub(crate) struct AgentRights {
    /// The user before, and the signal that its parent's end is told by, which a change
    /// of rights clears (prctl(2)).
    own: Option<(u32, Option<Signal>)>,
}

impl AgentRights {
    /// `None`: they can't be taken, and nothing has changed.
    pub(crate) fn take() -> Option<Self> {
        let (own, agent) = (rustix::process::geteuid().as_raw(), agent_id());
        if own == agent {
            return Some(Self { own: None });
        }
        let signal = rustix::process::parent_process_death_signal().ok()?;
        let rights = Self { own: Some((own, signal)) };
        file_ids(agent).then_some(rights)
    }
}

impl Drop for AgentRights {
    fn drop(&mut self) {
        let Some((own, signal)) = self.own else { return };
        // With the rights of the sandbox's user this goes on, if it must.
        file_ids(own);
        let _ = rustix::process::set_parent_process_death_signal(signal);
    }
}

/// Sets whose files this thread opens (setfsuid(2), which tells of no failure).
fn file_ids(id: u32) -> bool {
    // SAFETY: no memory is passed.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, id);
        libc::syscall(libc::SYS_setfsuid, id);
    }
    file_ids_are(id)
}

/// Whether they are these: an id that is none changes nothing and gives the present one.
fn file_ids_are(id: u32) -> bool {
    // SAFETY: no memory is passed.
    let (group, user) = unsafe {
        (libc::syscall(libc::SYS_setfsgid, u32::MAX), libc::syscall(libc::SYS_setfsuid, u32::MAX))
    };
    group == libc::c_long::from(id) && user == libc::c_long::from(id)
}

/// Gives up every capability but those that start and kill commands of another
/// user, and the whole bounding set, so that nothing started from here has any.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    let keep = if rustix::process::geteuid().is_root() {
        CapabilitySet::KILL | CapabilitySet::SETGID | CapabilitySet::SETUID
    } else {
        CapabilitySet::empty()
    };
    empty_bounding_set()?;
    let inheritable = CapabilitySet::empty();
    thread::set_capabilities(
        None,
        CapabilitySets { effective: keep, permitted: keep, inheritable },
    )?;
    Ok(thread::clear_ambient_capability_set()?)
}

fn empty_bounding_set() -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match thread::capability_is_in_bounding_set(capability) {
            Ok(false) => continue,
            Ok(true) => {}
            // The kernel knows no such capability, nor any above.
            Err(_) => break,
        }
        thread::remove_capability_from_bounding_set(capability).map_err(|error| {
            let why = format!("capability {number} stays in the bounding set: {error}");
            io::Error::new(io::Error::from(error).kind(), why)
        })?;
    }
    Ok(())
}

/// Keeps these capabilities of those that a new user namespace gives, and none for what is
/// started from here.
pub(crate) fn keep_capabilities(keep: CapabilitySet) -> io::Result<()> {
    empty_bounding_set()?;
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: keep, permitted: keep, inheritable };
    Ok(thread::set_capabilities(None, sets)?)
}

/// Hides this process from its own children: no ptrace, no core, no `/proc/1/fd`.
pub(crate) fn hide() -> io::Result<()> {
    hide_memory()?;
    // SAFETY: no memory is passed.
    check(libc::c_long::from(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }))?;
    Ok(())
}

/// The part of [`hide`] that is about memory.
pub(crate) fn hide_memory() -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(libc::c_long::from(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })).map(drop)
}

/// Gives this thread descriptors of its own, of which there is but one: that alone may it
/// use, under its number.
pub(crate) fn keep_apart(kept: BorrowedFd<'_>) -> io::Result<()> {
    let number = libc::c_ulong::try_from(kept.as_raw_fd()).map_err(io::Error::other)?;
    let most = libc::c_ulong::from(u32::MAX);
    let unshare = libc::c_ulong::from(libc::CLOSE_RANGE_UNSHARE);
    // SAFETY: no memory is passed. The first call gives this thread a table of its own, in
    // which nobody owns the numbers that are closed.
    unsafe {
        check(libc::syscall(libc::SYS_close_range, number + 1, most, unshare))?;
        if number > 0 {
            check(libc::syscall(libc::SYS_close_range, 0_u64, number - 1, 0_u64))?;
        }
    }
    Ok(())
}

/// As linux/landlock.h has it.
#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// Grants rights beneath a directory in a ruleset of Landlock (landlock_add_rule(2)).
pub(crate) fn allow_beneath(
    ruleset: &OwnedFd,
    rights: u64,
    place: BorrowedFd<'_>,
) -> io::Result<()> {
    /// `LANDLOCK_RULE_PATH_BENEATH`.
    const PATH_BENEATH: libc::c_int = 1;
    let rule = PathBeneath { allowed_access: rights, parent_fd: place.as_raw_fd() };
    // SAFETY: the rule is a live local of the layout that its kind has.
    let added = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    };
    check(added).map(drop)
}

/// Gives memory back that was needed once and is free now.
pub(crate) fn give_back_memory() {
    // SAFETY: it takes a number alone, and leaves everything that is in use as it is.
    unsafe { libc::malloc_trim(0) };
}

/// Has signals do what they usually do, whatever whoever started the harness ignores: commands
/// would inherit that, and no Ctrl-C would end them. A write to what nobody reads fails instead of
/// ending this program.
pub(crate) fn reset_signals() {
    for signal in 1..libc::SIGSYS + 1 {
        let action = if signal == libc::SIGPIPE { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: neither action is a function. SIGKILL and SIGSTOP stay as they are.
        unsafe { libc::signal(signal, action) };
    }
}

/// Asks to be killed when whoever started this program ends. After every change of
/// credentials, because those clear it (prctl(2)).
pub(crate) fn die_with_parent() -> io::Result<()> {
    // SAFETY: no memory is passed.
    let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    check(libc::c_long::from(result)).map(|_| ())
}

/// Sets both limits of a resource, not above what is allowed already.
pub(crate) fn limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let mut held = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live local.
    check(libc::c_long::from(unsafe { libc::getrlimit(resource, &raw mut held) }))?;
    let value = value.min(held.rlim_max);
    let wanted = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the pointer is to a live local.
    check(libc::c_long::from(unsafe { libc::setrlimit(resource, &raw const wanted) })).map(|_| ())
}

/// The number of a descriptor for [`poll`].
pub(crate) fn pollfd(fd: &impl AsRawFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }
}
