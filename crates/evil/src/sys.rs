//! Raw system calls, and the names of their errors.
//!
//! Owns all that is unsafe in this program but a few races on memory. It makes any
//! call that it is told to: what must hold it back is the sandbox.

use std::io::Error;

/// The error number of the last failed call.
pub(crate) fn errno() -> i32 {
    Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Makes a system call. The result, or the error number.
pub(crate) fn call(number: libc::c_long, args: &[usize]) -> Result<usize, i32> {
    let arg = |index: usize| args.get(index).copied().unwrap_or(0);
    // SAFETY: callers pass null, small numbers, or pointers to values that outlive the
    // call and are as long as the kernel expects; what may go wrong beyond that ends
    // this process, which exists to try.
    let result = unsafe { libc::syscall(number, arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)) };
    usize::try_from(result).map_err(|_| errno())
}

/// What became of a call, in a word.
pub(crate) fn outcome(result: Result<usize, i32>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) => name(error),
    }
}

/// What a call of the standard library came to: `done`, or the name of its error.
pub(crate) fn outcome_of<T>(result: std::io::Result<T>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) => error.raw_os_error().map_or_else(|| error.to_string(), name),
    }
}

/// Names of the errors that a sandbox answers with; see errno(3).
pub(crate) fn name(error: i32) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENFILE, "ENFILE"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::EDQUOT, "EDQUOT"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ENOPROTOOPT, "ENOPROTOOPT"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::ENETDOWN, "ENETDOWN"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::ENOKEY, "ENOKEY"),
        (libc::ENOPKG, "ENOPKG"),
    ];
    let found = known.iter().find(|(number, _)| *number == error);
    found.map_or_else(|| format!("errno {error}"), |(_, name)| (*name).to_owned())
}

/// Forks. 0 is the child.
pub(crate) fn fork() -> Result<i32, i32> {
    // SAFETY: this program has one thread where it forks, so the child may do anything.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(errno()) } else { Ok(pid) }
}

/// Waits for a child. The signal that ended it, if one did.
pub(crate) fn wait(child: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: the pointer is to a live local.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    (waited == child && libc::WIFSIGNALED(status)).then(|| libc::WTERMSIG(status))
}

/// Ends this process at once.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends this process by SIGALRM after so many seconds.
pub(crate) fn alarm(seconds: u32) {
    // SAFETY: takes a number.
    unsafe { libc::alarm(seconds) };
}

/// Sets what a signal does: `SIG_IGN` or `SIG_DFL`.
pub(crate) fn on_signal(signal: i32, what: libc::sighandler_t) {
    // SAFETY: neither disposition is a function.
    unsafe { libc::signal(signal, what) };
}

/// Waits for anything, for ever.
pub(crate) fn pause() {
    // SAFETY: takes nothing.
    unsafe { libc::pause() };
}

/// Waits for milliseconds.
pub(crate) fn nap(milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
}

/// Makes the terminal of this process pass bytes on as they are.
pub(crate) fn raw_terminal() {
    // SAFETY: zeros are settings, which the first call fills in and the others read.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        libc::tcgetattr(0, &raw mut settings);
        libc::cfmakeraw(&raw mut settings);
        libc::tcsetattr(0, libc::TCSANOW, &raw const settings);
    }
}
