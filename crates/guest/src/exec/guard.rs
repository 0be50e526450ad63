//! What a new process in no namespaces confines itself by, on its way to its program.
//!
//! Owns the order: its own Landlock domain first, then its filter, whose listener it hands
//! to the guest before anything of its own can ask. As all of [`super::child`] it may share
//! the guest's memory until then.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::domain::shared::{Confined, Rules};
use crate::exec::mediator;

/// What is laid out before the process is made.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    rules: Rules<'a>,
    workspace: &'a OwnedFd,
    asks: OwnedFd,
    /// Over which the listener of its filter comes.
    pub(super) mediator: OwnedFd,
}

/// The same by descriptors, for the process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    rules: c_int,
    workspace: c_int,
    mediator: c_int,
}

impl<'a> Guard<'a> {
    /// For a command, with its terminal if it has one.
    pub(super) fn new(
        confined: &'a Confined,
        terminal: Option<BorrowedFd<'_>>,
    ) -> io::Result<Self> {
        let (mediator, asks) = mediator::pair()?;
        let rules = confined.rules(terminal)?;
        Ok(Self { rules, workspace: &confined.workspace, asks, mediator })
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            rules: self.rules.as_raw_fd(),
            workspace: self.workspace.as_raw_fd(),
            mediator: self.asks.as_raw_fd(),
        }
    }
}

impl Bounds {
    /// Enters the domain.
    ///
    /// # Safety
    /// In a new process, as [`super::child`] says.
    pub(super) unsafe fn enter(self) -> bool {
        let mark = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: system calls on descriptors that the guest holds, and a live local.
        unsafe {
            // It shows whose it was when it is nobody's any more: nobody raises it again, and
            // the spawner looks for it (`strays.rs`).
            libc::setrlimit(libc::RLIMIT_MSGQUEUE, &raw const mark) == 0
                && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
                && libc::syscall(libc::SYS_landlock_restrict_self, self.rules, 0) == 0
        }
    }

    /// Installs a filter of which the guest hears.
    ///
    /// # Safety
    /// As [`Bounds::enter`].
    pub(super) unsafe fn filter(self, program: &libc::sock_fprog) -> bool {
        let flags =
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: as above; the program is live.
        unsafe {
            let listener = libc::syscall(libc::SYS_seccomp, mode, flags, &raw const *program);
            c_int::try_from(listener)
                .is_ok_and(|listener| listener >= 0 && hand_over(self.mediator, listener))
        }
    }

    /// Goes to the workspace.
    ///
    /// # Safety
    /// As [`Bounds::enter`].
    pub(super) unsafe fn go_to_workspace(self) -> bool {
        // SAFETY: as above.
        unsafe { libc::fchdir(self.workspace) == 0 }
    }
}

/// Sends a descriptor over a socket.
///
/// # Safety
/// As [`Bounds::enter`].
unsafe fn hand_over(socket: c_int, fd: c_int) -> bool {
    // SAFETY: all that the message points to lives until the call returns, and the space
    // has room and alignment for one header with one descriptor.
    unsafe {
        let mut byte = 0_u8;
        let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let mut space = [0_u64; 4];
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = space.as_mut_ptr().cast();
        let bytes = size_of::<c_int>() as u32;
        message.msg_controllen = libc::CMSG_SPACE(bytes) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(fd);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) == 1
    }
}
