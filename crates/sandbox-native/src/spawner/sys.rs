//! System calls without a safe wrapper elsewhere, each in one small function.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::thread::CapabilitySet;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a fork this is.
pub(crate) enum Fork {
    Parent { pid: i32, pidfd: OwnedFd },
    Child,
}

/// Forks into new namespaces.
///
/// # Safety
/// The process must have one thread.
pub(crate) unsafe fn fork(namespaces: libc::c_int) -> io::Result<Fork> {
    let mut pidfd: libc::c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without a stack and shared memory this is fork(2), after which the
    // child has its own copy of everything; by the contract of this function there
    // are no other threads whose locks it could copy. The kernel writes one
    // descriptor to `pidfd`.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags as libc::c_ulong,
            0_usize,
            &raw mut pidfd,
            0_usize,
            0_usize,
        )
    };
    match check(pid)? {
        0 => Ok(Fork::Child),
        // SAFETY: the kernel made the descriptor for this call, and nobody else owns it.
        pid => Ok(Fork::Parent { pid: pid as i32, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
    }
}

/// Stack of a process that only sleeps, in words of 16 bytes for its alignment.
const STACK_WORDS: usize = 1 << 10;

/// A process that does nothing, so that its namespaces can be looked at.
pub(crate) struct SleepingProcess {
    pid: i32,
    _stack: Vec<u128>,
}

impl SleepingProcess {
    /// One in a new user namespace.
    pub(crate) fn in_user_namespace() -> io::Result<Self> {
        let mut stack = vec![0_u128; STACK_WORDS];
        // SAFETY: the child runs `sleep` on a stack that lives until it was killed and
        // waited for; though it shares this memory, it touches no more of it.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(STACK_WORDS).cast();
            let flags = libc::CLONE_NEWUSER | libc::CLONE_VM | libc::SIGCHLD;
            libc::clone(sleep, top, flags, std::ptr::null_mut())
        };
        check(libc::c_long::from(pid))?;
        Ok(Self { pid, _stack: stack })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }
}

impl Drop for SleepingProcess {
    fn drop(&mut self) {
        // SAFETY: no memory is passed; the child was not waited for, so the id is its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        wait(self.pid);
    }
}

extern "C" fn sleep(_: *mut libc::c_void) -> libc::c_int {
    loop {
        // SAFETY: no memory is passed. The call never returns but to be made again.
        unsafe { libc::syscall(libc::SYS_ppoll, 0_usize, 0_usize, 0_usize, 0_usize, 0_usize) };
    }
}

/// Enters a mount namespace; its root becomes root and working directory.
pub(crate) fn enter_mounts(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let mount = Some(rustix::thread::LinkNameSpaceType::Mount);
    Ok(rustix::thread::move_into_link_name_space(namespace, mount)?)
}

/// Replaces this process by the program in a descriptor, with an empty environment.
pub(crate) fn exec_number(program: i32, args: &[&CStr]) -> io::Error {
    let argv: Vec<*const libc::c_char> =
        args.iter().map(|arg| arg.as_ptr()).chain([std::ptr::null()]).collect();
    let envp = [std::ptr::null::<libc::c_char>()];
    let flags = libc::AT_EMPTY_PATH;
    // SAFETY: both lists are null-terminated and live; the path is an empty C string.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program,
            c"".as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
            flags,
        )
    };
    io::Error::last_os_error()
}

/// Puts `fd` at a number, closed by exec.
pub(crate) fn place_closing(fd: BorrowedFd<'_>, number: i32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(libc::c_long::from(unsafe { libc::dup3(fd.as_raw_fd(), number, libc::O_CLOEXEC) }))
        .map(|_| ())
}

/// Puts `fd` at a number, open over exec.
pub(crate) fn place(fd: BorrowedFd<'_>, number: i32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(libc::c_long::from(unsafe { libc::dup2(fd.as_raw_fd(), number) })).map(|_| ())
}

/// Closes every descriptor from a number on.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    close_between(first, u32::MAX)
}

/// Closes every descriptor in a range. Callers own nothing in it any more.
pub(crate) fn close_between(first: u32, last: u32) -> io::Result<()> {
    let (first, last) = (libc::c_ulong::from(first), libc::c_ulong::from(last));
    // SAFETY: no memory is passed.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(|_| ())
}

/// Closes every descriptor but the standard streams and these. Callers never use
/// another one again, not even to close it.
pub(crate) fn keep_only(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    kept.sort_unstable();
    let mut first = 3;
    for number in kept {
        if first < number {
            close_between(first, number - 1)?;
        }
        first = number + 1;
    }
    close_from(first)
}

/// Moves a descriptor out of the numbers below `least`.
pub(crate) fn move_above(fd: BorrowedFd<'_>, least: i32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let moved = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least) };
    check(libc::c_long::from(moved))?;
    // SAFETY: the descriptor is new and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Sets `MOUNT_ATTR_*` bits on a tree of mounts.
pub(crate) fn restrict_mounts(tree: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    set_attributes(tree, set, libc::AT_RECURSIVE, 0)
}

/// Sets `MOUNT_ATTR_*` bits on one mount.
pub(crate) fn restrict_mount(mount: BorrowedFd<'_>, set: u64) -> io::Result<()> {
    set_attributes(mount, set, 0, 0)
}

/// `MOUNT_ATTR_IDMAP` of linux/mount.h.
const IDMAP: u64 = 0x0010_0000;

/// Shows the files of a tree of mounts that is not attached yet as owned by others, as a
/// user namespace maps them.
pub(crate) fn map_mounts(tree: BorrowedFd<'_>, users: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(tree, IDMAP, libc::AT_RECURSIVE, users.as_raw_fd() as u64)
}

fn set_attributes(
    tree: BorrowedFd<'_>,
    set: u64,
    flags: libc::c_int,
    userns_fd: u64,
) -> io::Result<()> {
    let attr = MountAttr { set, clear: 0, propagation: 0, userns_fd };
    let flags = flags | libc::AT_EMPTY_PATH;
    // SAFETY: the path is an empty C string, and `attr` has the layout of mount_attr.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
    .map(|_| ())
}

/// Enters new namespaces of its own.
///
/// # Safety
/// The process must have one thread.
pub(crate) unsafe fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(libc::c_long::from(unsafe { libc::unshare(namespaces) })).map(|_| ())
}

/// Makes files belong to an id from now on. Takes the rights over others' files away.
pub(crate) fn write_files_as(id: u32) {
    // SAFETY: no memory is passed. The calls say nothing of a failure, after which files
    // are this process's own.
    unsafe {
        libc::setfsgid(id);
        libc::setfsuid(id);
    }
}

/// Removes every capability from the bounding set but these, so that the next exec
/// gains no others.
pub(crate) fn bound_capabilities(keep: CapabilitySet) -> io::Result<()> {
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for capability in all.filter(|capability| !keep.contains(*capability)) {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The kernel knows no such capability, nor any above.
            Err(rustix::io::Errno::INVAL) => break,
            result => result?,
        }
    }
    Ok(())
}

/// Is scheduled as any other. A starter with a real-time policy must not pass it on,
/// and such processes can't enter every cgroup; a refusal is no harm.
pub(crate) fn schedule_normally() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` is live; no other memory is passed.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const param) };
}

/// Never gains privileges by exec, dies with its parent.
pub(crate) fn settle() -> io::Result<()> {
    // SAFETY: no memory is passed.
    unsafe {
        check(libc::c_long::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))?;
        check(libc::c_long::from(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0)))?;
    }
    Ok(())
}

/// Asks to be killed when `parent`, which forked this process, ends. Ends at once if it has.
pub(crate) fn die_with(parent: i32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(libc::c_long::from(unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0)
    }))?;
    // SAFETY: no memory is passed.
    if unsafe { libc::getppid() } != parent {
        leave(1);
    }
    Ok(())
}

/// Waits for one child; says whether it ended with status 0.
pub(crate) fn wait(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: the pointer is to a live local.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
    status == 0
}

/// Whether there is something to read at once, or the end of it.
pub(crate) fn is_readable(fd: &impl AsRawFd) -> bool {
    let mut fds = [pollfd(fd)];
    poll(&mut fds, 0).is_ok() && fds[0].revents != 0
}

/// Waits until one of `fds` is ready or the time is over.
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout_ms: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of a live exclusive slice.
    let result = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
    check(libc::c_long::from(result)).map(|_| ())
}

/// A descriptor to wait for input on.
pub(crate) fn pollfd(fd: &impl AsRawFd) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// Ends this process at once, without running anything else of it.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: no memory is passed.
    unsafe { libc::_exit(code) }
}
