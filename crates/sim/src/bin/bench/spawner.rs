//! A harness's spawner, looked at from outside: which process it is, what it and
//! its guests take, and how it ends.

use outrigger_sim::limits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorContext, Outcome};

/// The name of its socket in its state directory.
const SOCKET: &str = "spawner.sock";

/// A spawner that runs, and a connection to it, over which nothing is asked.
#[derive(Debug)]
pub(crate) struct Spawner {
    state: PathBuf,
    pid: Pid,
    pidfd: OwnedFd,
    connection: UnixStream,
}

impl Spawner {
    /// The one that serves a state directory.
    pub(crate) fn of(state: &Path) -> Outcome<Self> {
        let doing = "looking for the spawner";
        // By descriptor, because the path of a socket is at most 107 bytes long (unix(7)).
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(state, flags, Mode::empty()).doing(doing)?;
        let path = format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd());
        let connection = UnixStream::connect(path).doing(doing)?;
        let peer = rustix::net::sockopt::socket_peercred(&connection).doing(doing)?;
        let pidfd = pidfd_open(peer.pid, PidfdFlags::empty()).doing(doing)?;
        Ok(Self { state: state.to_owned(), pid: peer.pid, pidfd, connection })
    }

    /// Proportional memory of the spawner and every process below it, in KiB, and
    /// how many processes that are. Nothing where the kernel does not tell.
    pub(crate) fn memory_kib(&self) -> Option<(u64, usize)> {
        let mut waiting = vec![self.pid.as_raw_nonzero().get()];
        let (mut sum, mut count) = (0, 0);
        while let Some(pid) = waiting.pop() {
            sum += field_kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?;
            count += 1;
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            waiting.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        Some((sum, count))
    }

    /// Ends it and every sandbox that is left, and waits until it is gone. Blocks.
    pub(crate) fn end(self) -> Outcome<()> {
        let Self { state, pidfd, connection, .. } = self;
        // It ends by itself when it finds its socket gone, and looks after each request.
        fs::remove_file(state.join(SOCKET)).doing("removing the spawner's socket")?;
        drop(connection);
        let seconds = i64::try_from(limits::BENCH_SPAWNER_END_MS_MAX / 1_000).unwrap_or(i64::MAX);
        let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit));
        match ended.doing("waiting for the spawner's end")? {
            0 => Err(Error::TooLong { ms_max: limits::BENCH_SPAWNER_END_MS_MAX }),
            _ => Ok(()),
        }
    }
}

/// A field of a file of the kernel's, in KiB.
pub(crate) fn field_kib(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
