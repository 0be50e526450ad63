//! A process that makes things ahead while the spawner does others.
//!
//! Owns how many it makes, and when: one for each that was taken, and while some are left
//! not in a moment in which others are taken, because who takes one is in a hurry. What
//! they are is for the callers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::process::{Signal, pidfd_send_signal};

use crate::limits;
use crate::spawner::sys::{self, Fork};

/// From spawner to worker: one is wanted.
const WANTED: &[u8] = b"w";

/// A process that makes things ahead.
#[derive(Debug)]
pub(crate) struct Worker {
    pid: i32,
    pidfd: OwnedFd,
    /// For what it says of those that it made.
    pub(crate) socket: OwnedFd,
    /// Those that were taken and not asked for again yet.
    missing: usize,
}

impl Worker {
    /// Starts one that keeps these descriptors. To be called by the spawner.
    pub(crate) fn start(
        kept: &[BorrowedFd<'_>],
        make: impl FnMut(&OwnedFd) -> io::Result<()>,
    ) -> io::Result<Self> {
        let spawner = rustix::process::getpid().as_raw_nonzero().get();
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let limit = Duration::from_millis(limits::GUEST_START_MS_MAX);
        set_socket_timeout(&socket, Timeout::Recv, Some(limit))?;
        // SAFETY: the spawner has one thread.
        match unsafe { sys::fork(0) }? {
            Fork::Parent { pid, pidfd } => {
                Ok(Self { pid, pidfd, socket, missing: limits::PREFORK_POOL_MAX })
            }
            Fork::Child => {
                let kept = [&[theirs.as_fd()], kept].concat();
                let ready = sys::die_with(spawner).and_then(|()| sys::keep_only(&kept));
                let done = ready.and_then(|()| serve(&theirs, make));
                sys::leave(i32::from(done.is_err()))
            }
        }
    }

    /// One was taken.
    pub(crate) fn took(&mut self) {
        self.missing += 1;
    }

    /// Asks for what is missing. An error says that it is gone.
    pub(crate) fn refill(&mut self) -> io::Result<()> {
        if sys::is_readable(&self.pidfd) {
            return Err(io::Error::other("who makes things ahead has ended"));
        }
        while self.missing > 0 {
            send(&self.socket, WANTED, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
            self.missing -= 1;
        }
        Ok(())
    }

    /// Ends it. To be called by the spawner.
    pub(crate) fn end(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        sys::wait(self.pid);
    }
}

/// Makes one for each word, until the spawner is gone.
fn serve(socket: &OwnedFd, mut make: impl FnMut(&OwnedFd) -> io::Result<()>) -> io::Result<()> {
    let mut wanted = 0;
    loop {
        let patience_ms = match wanted {
            0 => -1,
            few if few <= limits::PREFORK_POOL_MAX / 2 => limits::PREFORK_POOL_REST_MS,
            _ => 0,
        };
        let mut fds = [sys::pollfd(socket)];
        sys::poll(&mut fds, patience_ms)?;
        if fds[0].revents != 0 {
            if recv(socket, &mut [0; 1], RecvFlags::empty())?.1 != 1 {
                return Ok(());
            }
            wanted += 1;
            continue;
        }
        make(socket)?;
        wanted -= 1;
    }
}
