//! What the spawner waits for, all at once.
//!
//! Owns the kernel's list (epoll(7)), whose cost does not grow with the number of
//! sandboxes, and what each entry of it means.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use outrigger_sandbox::SandboxId;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::limits;

/// Who has something to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// An engine connects.
    Listener,
    /// A guest ended.
    Ended(SandboxId),
    /// A guest said something.
    Message(SandboxId),
    /// The process of a change ended.
    Change(SandboxId),
    /// The process that deletes in the background ended.
    Cleaner,
    /// A process that works on an image ended.
    Image(u64),
    /// The process that looks at all disks ended.
    DiskUsage,
    /// The process that looks at one of them ended.
    Look(SandboxId),
}

/// An entry of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

/// All that the spawner waits for.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    sources: BTreeMap<Key, Source>,
    next: u64,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, sources: BTreeMap::new(), next: 0 })
    }

    /// Waits for a descriptor to be readable, again and again, until it is removed.
    pub(crate) fn add(&mut self, fd: impl AsFd, source: Source) -> io::Result<Key> {
        let key = Key(self.next);
        epoll::add(&self.epoll, fd, EventData::new_u64(key.0), EventFlags::IN)?;
        self.next += 1;
        self.sources.insert(key, source);
        Ok(key)
    }

    /// Stops waiting. To be called before the descriptor is closed, because a new
    /// process may hold a copy of it for a moment.
    pub(crate) fn remove(&mut self, key: Key, fd: impl AsFd) {
        if self.sources.remove(&key).is_some() {
            let _ = epoll::delete(&self.epoll, fd);
        }
    }

    /// Who has something to say, after this long at most.
    pub(crate) fn wait(&self, most: Duration) -> io::Result<Vec<Source>> {
        let mut events = Vec::with_capacity(limits::EVENTS_MAX);
        // Rounded up, so that the loop does not spin through the last millisecond.
        let most_ms = u64::try_from(most.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
        let most = Duration::from_millis(most_ms);
        let most = Timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let keys = events.iter().map(|event| Key(event.data.u64()));
        Ok(keys.filter_map(|key| self.sources.get(&key).cloned()).collect())
    }
}
