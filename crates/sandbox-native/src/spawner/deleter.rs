//! Processes that delete, because that may take long.
//!
//! Owns what such a process keeps of the spawner: nothing. It holds no descriptor of
//! it, so that the lock, the socket and the ranges of ids are free when the spawner
//! is gone, and it ends with it; the next spawner deletes what is left.

use std::io;
use std::os::fd::OwnedFd;

use super::sys::{self, Fork};

/// See the module.
#[derive(Debug)]
pub(super) struct Deleter {
    pid: i32,
    pidfd: OwnedFd,
}

impl Deleter {
    /// Starts one. `work` finds everything by path and can use no descriptor from
    /// before. To be called by the spawner alone, which has one thread.
    pub(super) fn start(work: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let spawner = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: the spawner has one thread.
        match unsafe { sys::fork(0) }? {
            Fork::Parent { pid, pidfd } => Ok(Self { pid, pidfd }),
            Fork::Child => {
                let prepared = sys::die_with(spawner).and_then(|()| sys::close_from(3));
                sys::leave(i32::from(prepared.and_then(|()| work()).is_err()))
            }
        }
    }

    /// Readable when it ended.
    pub(super) fn ended(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// Waits for its end; says whether everything was deleted.
    pub(super) fn finish(self) -> bool {
        sys::wait(self.pid)
    }
}
