//! What the kernel counts by user and not by sandbox: timers, queued signals, message
//! queues, inotify.
//!
//! Owns that one sandbox does not take all of it. What is done in a user namespace is
//! counted against the user in it, and once more against who made the namespace, root on
//! the host for one. So the owner is a user that nobody else is, where there are such;
//! elsewhere a sandbox may have a part of what its user may, and leaves the rest.

use std::fs::read_link;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, capabilities, set_capabilities_secure_bits,
    set_thread_res_uid,
};

use crate::{limits, sys};

/// Whoever makes a user namespace next, as the kernel counts.
#[derive(Debug)]
pub(crate) struct NamespaceOwner {
    number: u32,
    /// Settings of a user namespace, with what the host allows each user of it.
    settings: Vec<(OwnedFd, &'static str, u64)>,
}

/// Settings of `/proc/sys`: what the host allows, and what a user namespace does. Of these
/// there are no rlimits.
const SETTINGS: [(&str, &str); 2] = [
    ("sys/fs/inotify/max_user_instances", "max_inotify_instances"),
    ("sys/fs/inotify/max_user_watches", "max_inotify_watches"),
];
/// What a spawner needs of its own to see to a guest.
const NEEDED: CapabilitySet = CapabilitySet::KILL.union(CapabilitySet::SYS_PTRACE);
/// What rlimits there are; see getrlimit(2).
const RESOURCES: [Resource; 2] = [Resource::Sigpending, Resource::Msgqueue];

impl NamespaceOwner {
    /// To be called where the host's `/proc` is seen, with one that is not mounted yet: what
    /// is mounted over it later does not hold for what is opened now.
    pub(crate) fn new(proc: &OwnedFd) -> io::Result<Self> {
        let number = read_link("/proc/self")?;
        let number = number.to_str().and_then(|number| number.parse::<u32>().ok());
        let number = number.ok_or_else(|| io::Error::other("the host's /proc names no process"))?;
        let mut settings = Vec::new();
        for (host, own) in SETTINGS {
            match (open(proc, "sys/user", OFlags::PATH), read(proc, host)) {
                (Ok(dir), Ok(most)) => settings.push((dir, own, most)),
                // Not every kernel has them.
                (Err(Errno::NOENT), _) | (_, Err(Errno::NOENT)) => {}
                (Err(error), _) | (_, Err(error)) => return Err(error.into()),
            }
        }
        Ok(Self { number, settings })
    }

    /// Becomes a user that nobody else is, with all rights as they were. `false`: there is
    /// none for whoever has no more than some ids of the host's, or for a spawner whose rights
    /// over the guest would be those of who made its namespace.
    pub(crate) fn stand_alone(&self) -> io::Result<bool> {
        if !capabilities(None)?.effective.contains(NEEDED) {
            return Ok(false);
        }
        let user = Uid::from_raw(limits::OWNER_ID_FIRST + self.number);
        let alone = set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP)
            .and_then(|()| set_thread_res_uid(user, user, user));
        // Which the change has cleared.
        sys::die_with_parent()?;
        Ok(alone.is_ok())
    }

    /// Leaves others of the same user what they need. To be called in the user namespace.
    pub(crate) fn leave_the_rest(self) -> io::Result<()> {
        for (dir, own, most) in self.settings {
            let setting = open(&dir, own, OFlags::WRONLY)?;
            rustix::io::write(setting, part(most).to_string().as_bytes())?;
        }
        leave_the_rest()
    }
}

/// As [`NamespaceOwner::leave_the_rest`], where there is no user namespace of its own.
pub(crate) fn leave_the_rest() -> io::Result<()> {
    for resource in RESOURCES {
        let most = getrlimit(resource).maximum.map(part);
        setrlimit(resource, Rlimit { current: most, maximum: most })?;
    }
    Ok(())
}

fn part(most: u64) -> u64 {
    most.div_ceil(limits::PARTS_OF_USER)
}

fn open(dir: impl AsFd, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty())
}

fn read(dir: impl AsFd, name: &str) -> rustix::io::Result<u64> {
    let mut text = [0; 32];
    let length = rustix::io::read(open(dir, name, OFlags::RDONLY)?, &mut text[..])?;
    let text = std::str::from_utf8(&text[..length]).map_err(|_| Errno::INVAL)?;
    text.trim().parse().map_err(|_| Errno::INVAL)
}
