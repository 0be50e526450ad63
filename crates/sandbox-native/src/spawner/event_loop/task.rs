//! Processes that do what may take long: delete, walk, copy.
//!
//! Owns what such a process keeps of the spawner: nothing. It holds no descriptor of
//! it but one to tell its result on, so that the lock, the socket and the ranges of
//! ids are free when the spawner is gone, and it ends with it.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::limits;
use crate::spawner::sys::{self, Fork};

/// The first number above the standard streams.
const FIRST: u32 = 3;

/// A process that does one thing. Dropping one leaves its process to itself.
#[derive(Debug)]
pub(crate) struct Task {
    pid: i32,
    pidfd: OwnedFd,
    result: OwnedFd,
}

impl Task {
    /// Starts one. `work` finds everything by path and can use no descriptor from
    /// before. What it gives is at most [`limits::TASK_RESULT_BYTES_MAX`] long. To be
    /// called by the spawner alone, which has one thread.
    pub(crate) fn start(work: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Self> {
        Self::start_from(|| Ok(()), |()| work())
    }

    /// As [`Task::start`]. `prepare` still has every descriptor; what it opens is closed.
    pub(crate) fn start_from<T>(
        prepare: impl FnOnce() -> io::Result<T>,
        work: impl FnOnce(T) -> io::Result<Vec<u8>>,
    ) -> io::Result<Self> {
        let spawner = rustix::process::getpid().as_raw_nonzero().get();
        let (result, told) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: the spawner has one thread.
        match unsafe { sys::fork(0) }? {
            Fork::Parent { pid, pidfd } => Ok(Self { pid, pidfd, result }),
            Fork::Child => {
                let number = told.as_raw_fd().unsigned_abs();
                let prepared = sys::die_with(spawner).and_then(|()| {
                    let prepared = prepare()?;
                    sys::close_from(number + 1)?;
                    match number.checked_sub(1) {
                        Some(last) if last >= FIRST => sys::close_between(FIRST, last)?,
                        Some(_) | None => {}
                    }
                    Ok(prepared)
                });
                let done = prepared.and_then(work);
                sys::leave(i32::from(tell(told, done).is_err()))
            }
        }
    }

    /// Readable when it ended.
    pub(crate) fn ended(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// Waits for its end; gives its result, or why there is none.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        let whole = sys::wait(self.pid);
        let mut told = Vec::new();
        let most = limits::TASK_RESULT_BYTES_MAX as u64 + 1;
        std::fs::File::from(self.result).take(most).read_to_end(&mut told)?;
        match told.split_first() {
            Some((b'd', result)) if whole => Ok(result.to_vec()),
            Some((b'f', reason)) => {
                Err(io::Error::other(String::from_utf8_lossy(reason).into_owned()))
            }
            _ => Err(io::Error::other("a process of the spawner ended before its time")),
        }
    }
}

fn tell(told: OwnedFd, done: io::Result<Vec<u8>>) -> io::Result<()> {
    let (kind, mut bytes) = match done {
        Ok(result) => (b'd', result),
        Err(error) => (b'f', error.to_string().into_bytes()),
    };
    // A pipe holds this much, so telling never waits.
    bytes.truncate(limits::TASK_RESULT_BYTES_MAX);
    bytes.insert(0, kind);
    std::fs::File::from(told).write_all(&bytes)
}
