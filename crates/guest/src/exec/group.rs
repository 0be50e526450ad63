//! The processes of one command, as something that can be killed whole.
//!
//! Owns the choice of means, best first: a cgroup of version 2 (one write kills
//! all), a freezer cgroup of version 1 (stop, kill, thaw), or a walk over `/proc`.
//! Only the last can miss a process that left its session and lost its parents
//! while another command ran, and then takes the newest such orphans for its own.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::exec::tree;
use crate::sys;

/// The group of the sandbox that this guest was given to make others in.
#[derive(Debug)]
pub(crate) enum Given {
    /// Version 2, delegated.
    Unified(OwnedFd),
    /// Version 1, the freezer's hierarchy.
    Freezer(OwnedFd),
    /// None.
    Absent,
}

/// The one group beneath it in which every command has its own, so that all of them
/// can be stopped at once and the guest, which stands outside, goes on.
const RUN: &str = "run";

/// See [`Given`].
#[derive(Debug)]
pub(crate) struct Cgroups {
    given: Given,
    /// [`RUN`], made when it is first needed.
    run: Option<OwnedFd>,
    frozen: bool,
}

/// The processes of one command.
#[derive(Debug)]
pub(crate) enum Group {
    /// A child cgroup of version 2.
    Unified { dir: OwnedFd, name: String },
    /// A child cgroup of the version 1 freezer.
    Freezer { dir: OwnedFd, name: String },
    /// The tree beneath a process.
    Walk {
        /// The command's own process, once it is known.
        main: i32,
        /// Orphans that were there before it began.
        before: BTreeSet<i32>,
    },
}

fn open_dir(parent: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn write(dir: &OwnedFd, file: &str, text: &str) -> io::Result<()> {
    let fd = rustix::fs::openat(dir, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    File::from(fd).write_all(text.as_bytes())
}

fn read(dir: &OwnedFd, file: &str) -> io::Result<String> {
    let fd = rustix::fs::openat(dir, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    File::from(fd).read_to_string(&mut text)?;
    Ok(text)
}

impl Cgroups {
    pub(crate) fn new(given: Given) -> Self {
        Self { given, run: None, frozen: false }
    }

    /// The group of all commands. `None`: the kernel gives none.
    fn run(&mut self) -> Option<&OwnedFd> {
        if self.run.is_none() {
            let (Given::Unified(parent) | Given::Freezer(parent)) = &self.given else {
                return None;
            };
            match rustix::fs::mkdirat(parent, RUN, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(_) => return None,
            }
            self.run = open_dir(parent.as_fd(), RUN).ok();
        }
        self.run.as_ref()
    }

    /// A new group. Falls back to walking when the kernel gives no cgroup, because a
    /// command that runs without one is better than none.
    pub(crate) fn make(&mut self, number: u64) -> Group {
        let name = format!("x{number}");
        let made = self.run().and_then(|parent| {
            rustix::fs::mkdirat(parent, &name, Mode::from_raw_mode(0o755)).ok()?;
            open_dir(parent.as_fd(), &name).ok()
        });
        match (&self.given, made) {
            (Given::Unified(_), Some(dir)) => Group::Unified { dir, name },
            (Given::Freezer(_), Some(dir)) => Group::Freezer { dir, name },
            _ => Group::Walk { main: 0, before: tree::orphans() },
        }
    }

    /// Removes the group if nothing is left in it; says whether it is gone.
    pub(crate) fn remove(&self, group: &Group) -> bool {
        let (Some(parent), Group::Unified { name, .. } | Group::Freezer { name, .. }) =
            (&self.run, group)
        else {
            return true;
        };
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) != Err(rustix::io::Errno::BUSY)
    }

    /// Begins to stop all that is in a group of a command. `false`: there is no means.
    pub(crate) fn freeze(&mut self) -> io::Result<bool> {
        let (file, text) = match &self.given {
            Given::Unified(_) => ("cgroup.freeze", "1"),
            Given::Freezer(_) => ("freezer.state", "FROZEN"),
            Given::Absent => return Ok(false),
        };
        let Some(run) = self.run() else { return Ok(false) };
        write(run, file, text)?;
        self.frozen = true;
        Ok(true)
    }

    /// Whether what [`Cgroups::freeze`] began is done.
    pub(crate) fn is_frozen(&self) -> io::Result<bool> {
        let Some(run) = &self.run else { return Ok(false) };
        Ok(match &self.given {
            Given::Unified(_) => read(run, "cgroup.events")?.lines().any(|line| line == "frozen 1"),
            Given::Freezer(_) => read(run, "freezer.state")?.trim() == "FROZEN",
            Given::Absent => false,
        })
    }

    /// Lets all go on that was stopped.
    pub(crate) fn thaw(&mut self) -> io::Result<()> {
        let (true, Some(run)) = (self.frozen, &self.run) else { return Ok(()) };
        match &self.given {
            Given::Unified(_) => write(run, "cgroup.freeze", "0")?,
            Given::Freezer(_) => write(run, "freezer.state", "THAWED")?,
            Given::Absent => {}
        }
        self.frozen = false;
        Ok(())
    }
}

impl Group {
    /// The directory into which a process can be born, for clone3(2).
    pub(crate) fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Unified { dir, .. } => Some(dir.as_fd()),
            Self::Freezer { .. } | Self::Walk { .. } => None,
        }
    }

    /// A file to which a process writes `0` to join, open for writing.
    pub(crate) fn door(&self) -> Option<OwnedFd> {
        let Self::Freezer { dir, .. } = self else { return None };
        rustix::fs::openat(dir, "cgroup.procs", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .ok()
    }

    /// Learns the command's own process.
    pub(crate) fn begin(&mut self, pid: i32) {
        if let Self::Walk { main, .. } = self {
            *main = pid;
        }
    }

    /// Kills all that is in it now. To be repeated until [`Group::is_empty`].
    pub(crate) fn kill(&self, others: &BTreeSet<i32>) {
        match self {
            Self::Unified { dir, .. } => {
                if write(dir, "cgroup.kill", "1").is_err() {
                    kill_members(dir);
                }
            }
            Self::Freezer { dir, .. } => {
                // Frozen, the members can't fork while they are being killed.
                let _ = write(dir, "freezer.state", "FROZEN");
                kill_members(dir);
                let _ = write(dir, "freezer.state", "THAWED");
            }
            Self::Walk { main, before } => tree::kill(*main, before, others),
        }
    }

    /// Whether no process is left.
    pub(crate) fn is_empty(&self, others: &BTreeSet<i32>) -> bool {
        match self {
            Self::Unified { dir, .. } => read(dir, "cgroup.events")
                .is_ok_and(|events| events.lines().any(|line| line == "populated 0")),
            Self::Freezer { dir, .. } => {
                read(dir, "cgroup.procs").is_ok_and(|members| members.trim().is_empty())
            }
            Self::Walk { main, before } => tree::members(*main, before, others).is_empty(),
        }
    }
}

fn kill_members(dir: &OwnedFd) {
    let members = read(dir, "cgroup.procs").unwrap_or_default();
    for pid in members.lines().filter_map(|line| line.parse().ok()) {
        if pid > 1 {
            sys::kill(pid, libc::SIGKILL);
        }
    }
}
