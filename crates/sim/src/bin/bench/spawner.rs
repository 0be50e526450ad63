//! A harness's spawner, looked at from outside: which process it is, what it and
//! its guests take, and when it is gone.

use outrigger_sim::limits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::error::{Doing, Error, Outcome};

/// A spawner that runs. While this is held it waits for a request that does not
/// come, and when it is dropped it looks whether its directory is still there.
#[derive(Debug)]
pub(crate) struct Spawner {
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
        let path = format!("/proc/self/fd/{}/spawner.sock", dir.as_raw_fd());
        let connection = UnixStream::connect(path).doing(doing)?;
        let peer = rustix::net::sockopt::socket_peercred(&connection).doing(doing)?;
        let pidfd = pidfd_open(peer.pid, PidfdFlags::empty()).doing(doing)?;
        Ok(Self { pid: peer.pid, pidfd, connection })
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

    /// Waits until it is gone, as it is soon after its directory is.
    pub(crate) async fn ended(self) -> Outcome<()> {
        drop(self.connection);
        let pidfd = self.pidfd;
        let waiting = tokio::task::spawn_blocking(move || {
            let seconds =
                i64::try_from(limits::BENCH_SPAWNER_END_MS_MAX / 1_000).unwrap_or(i64::MAX);
            let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
            poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit))
        });
        let doing = "waiting for the spawner's end";
        match waiting.await.doing(doing)?.doing(doing)? {
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
