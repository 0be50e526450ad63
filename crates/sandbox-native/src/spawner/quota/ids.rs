//! User ids of sandboxes.
//!
//! Owns the rule that no two living sandboxes on a host share an id, whichever
//! spawner made them: a range is held by a lock on a file of the host's, for as
//! long as its sandbox lives. A disk keeps the range that owns its files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Pid, getpid};

use crate::limits;

/// Where the locks are. Emptied by a reboot, which ends every sandbox too.
const LOCKS: &str = "/run/outrigger/ids";

/// How ids inside a sandbox are ids outside of it.
#[derive(Debug)]
pub(crate) enum IdRange {
    /// A range of its own: 0 and up inside.
    Range { first: u32, _lock: Lock },
    /// The subordinate ids of an ordinary user, which its sandboxes share: 0 and up inside.
    Shared,
    /// One id: the sandbox's user inside, the spawner's own outside.
    Single,
}

/// The lock of a range, let go of at once when it is dropped: a process that was forked
/// a moment ago may still have a copy of the descriptor, and would hold it on.
#[derive(Debug)]
pub(crate) struct Lock {
    file: OwnedFd,
    holder: Pid,
}

impl Lock {
    fn held(file: OwnedFd) -> Self {
        Self { file, holder: getpid() }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // What was forked has copies of everything, and is not who holds it.
        if getpid() == self.holder {
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl IdRange {
    /// The id outside of the guest's user.
    pub(crate) fn guest(&self) -> u32 {
        match self {
            Self::Range { first, .. } => *first,
            Self::Shared => limits::SHARED_ID_FIRST,
            Self::Single => 0,
        }
    }

    /// The id outside of the user of commands.
    pub(crate) fn agent(&self) -> u32 {
        match self {
            Self::Range { first, .. } => first + 1000,
            Self::Shared => limits::SHARED_ID_FIRST + 1000,
            Self::Single => 0,
        }
    }

    /// The ids outside of all that it can own.
    pub(crate) fn owners(&self) -> Range<u32> {
        match self {
            Self::Range { first, .. } => *first..first + limits::IDS_PER_SANDBOX,
            Self::Shared => limits::SHARED_ID_FIRST..limits::SHARED_ID_FIRST + limits::SHARED_IDS,
            Self::Single => 0..1,
        }
    }

    /// The id inside of the guest's user.
    pub(crate) fn inside(&self) -> u32 {
        match self {
            Self::Range { .. } | Self::Shared => 0,
            Self::Single => 1000,
        }
    }

    /// The id outside of the group of terminals (`tty` of `/etc/group`), where it is mapped.
    pub(crate) fn tty_group(&self) -> Option<u32> {
        match self {
            Self::Range { first, .. } => Some(first + 5),
            Self::Shared => Some(limits::SHARED_ID_FIRST + 5),
            Self::Single => None,
        }
    }

    /// The line for `uid_map` and `gid_map`; see user_namespaces(7).
    pub(crate) fn map(&self) -> String {
        match self {
            Self::Range { first, .. } => format!("0 {first} {}", limits::IDS_PER_SANDBOX),
            Self::Shared => format!("0 {} {}", limits::SHARED_ID_FIRST, limits::SHARED_IDS),
            Self::Single => "1000 0 1".to_owned(),
        }
    }

    /// Which range it is.
    pub(crate) fn number(&self) -> Option<u32> {
        match self {
            Self::Range { first, .. } => Some((first - limits::ID_FIRST) / limits::IDS_PER_SANDBOX),
            Self::Shared | Self::Single => None,
        }
    }

    /// Takes the range that a disk has, or a free one for a new disk, and notes it
    /// there. `others` are those of disks on which nothing may live now.
    pub(crate) fn take(note: &Path, others: &BTreeSet<u32>) -> io::Result<Self> {
        fs::create_dir_all(LOCKS)?;
        if fs::symlink_metadata(note).is_ok() {
            let number = noted(note)
                .ok_or_else(|| io::Error::other("the note of the id range is damaged"))?;
            let busy = || {
                io::Error::other(
                    "another living sandbox of this host uses the id range of this disk; destroy one of them",
                )
            };
            return Self::lock(number)?.ok_or_else(busy);
        }
        let mut seed = [0; 4];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
        let start = u32::from_ne_bytes(seed) % limits::ID_RANGES;
        for step in 0..limits::ID_RANGES {
            let number = (start + step) % limits::ID_RANGES;
            if others.contains(&number) {
                continue;
            }
            if let Some(ids) = Self::lock(number)? {
                // A link is there whole or not at all, without a wait for the disk: half
                // a note would keep this one from ever being used again.
                std::os::unix::fs::symlink(number.to_string(), note)?;
                return Ok(ids);
            }
        }
        Err(io::Error::other("every id range of this host is in use"))
    }

    fn lock(number: u32) -> io::Result<Option<Self>> {
        let path = Path::new(LOCKS).join(number.to_string());
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let first = limits::ID_FIRST + number * limits::IDS_PER_SANDBOX;
                Ok(Some(Self::Range { first, _lock: Lock::held(file) }))
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether an id is one that the host's own root gave, so that the right over all of
/// the host's file systems comes with it.
pub(crate) fn is_of_root(id: u32) -> bool {
    id >= limits::ID_FIRST
}

/// The range that a disk has, if it has one.
pub(crate) fn noted(note: &Path) -> Option<u32> {
    let number = fs::read_link(note).ok()?.to_str()?.parse().ok()?;
    (number < limits::ID_RANGES).then_some(number)
}

/// Whether every range is mapped where this process lives: inside a container with
/// ids of its own it may be root and still not own them.
pub(crate) fn all_mapped() -> bool {
    let Ok(map) = fs::read_to_string("/proc/self/uid_map") else { return false };
    let last = u64::from(limits::ID_FIRST)
        + u64::from(limits::ID_RANGES) * u64::from(limits::IDS_PER_SANDBOX);
    map.lines().any(|line| {
        let fields: Vec<u64> =
            line.split_ascii_whitespace().filter_map(|field| field.parse().ok()).collect();
        matches!(fields[..], [0, _, count] if count >= last)
    })
}
