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
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::exec::tree;
use crate::{limits, sys};

/// The group of the sandbox that this guest was given to make others in.
#[derive(Debug)]
pub(crate) enum CgroupHierarchy {
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

/// Where the groups of commands are made.
#[derive(Debug)]
pub(crate) struct Cgroups {
    hierarchy: CgroupHierarchy,
    /// [`RUN`], made when it is first needed.
    run: Option<OwnedFd>,
    frozen: bool,
    /// Processes that were stopped by signal, where there is no cgroup.
    stopped: BTreeSet<i32>,
    /// Whether the last look found nothing that goes on.
    still: bool,
    /// When those that do not stop are let go on for a moment, and how long they then have.
    nudge: (Instant, Duration),
    /// Empty groups for the next commands, since making one costs as much as a command.
    stock: Vec<Group>,
    made: u64,
}

/// The processes of one command.
#[derive(Debug)]
pub(crate) enum Group {
    /// A child cgroup of version 2.
    Unified {
        dir: OwnedFd,
        events: Option<File>,
        name: String,
        /// Some kernels kill whatever is born into a group that was ever killed.
        killed: bool,
    },
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

fn open_file(dir: &OwnedFd, file: &str) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, file, flags, Mode::empty()).ok().map(File::from)
}

fn read(dir: &OwnedFd, file: &str) -> io::Result<String> {
    let fd = rustix::fs::openat(dir, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    File::from(fd).read_to_string(&mut text)?;
    Ok(text)
}

impl Cgroups {
    pub(crate) fn new(hierarchy: CgroupHierarchy) -> Self {
        let (run, stopped, stock) = (None, BTreeSet::new(), Vec::new());
        let nudge = (Instant::now(), Duration::ZERO);
        Self { hierarchy, run, frozen: false, stopped, still: false, nudge, stock, made: 0 }
    }

    /// The group of all commands. `None`: the kernel gives none.
    fn run(&mut self) -> Option<&OwnedFd> {
        if self.run.is_none() {
            let (CgroupHierarchy::Unified(parent) | CgroupHierarchy::Freezer(parent)) =
                &self.hierarchy
            else {
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

    /// An empty group. Falls back to walking when the kernel gives no cgroup, because a
    /// command that runs without one is better than none.
    pub(crate) fn make(&mut self) -> Group {
        if let Some(group) = self.stock.pop() {
            return group;
        }
        self.made += 1;
        let name = format!("x{}", self.made);
        let made = self.run().and_then(|parent| {
            rustix::fs::mkdirat(parent, &name, Mode::from_raw_mode(0o755)).ok()?;
            open_dir(parent.as_fd(), &name).ok()
        });
        match (&self.hierarchy, made) {
            (CgroupHierarchy::Unified(_), Some(dir)) => {
                // Read after every command, so it stays open.
                let events = open_file(&dir, "cgroup.events");
                Group::Unified { dir, events, name, killed: false }
            }
            (CgroupHierarchy::Freezer(_), Some(dir)) => Group::Freezer { dir, name },
            _ => Group::Walk { main: 0, before: tree::orphans() },
        }
    }

    /// Takes a group back if nothing is left in it; else gives it again.
    pub(crate) fn take_back(&mut self, group: Group) -> Option<Group> {
        let (Some(parent), Group::Unified { name, .. } | Group::Freezer { name, .. }) =
            (&self.run, &group)
        else {
            return None;
        };
        let used_up = matches!(&group, Group::Unified { killed: true, .. });
        if !used_up && self.stock.len() < limits::STOCK_MAX && group.is_empty(&BTreeSet::new()) {
            self.stock.push(group);
            return None;
        }
        let removed = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        (removed == Err(rustix::io::Errno::BUSY)).then_some(group)
    }

    /// Begins to stop all that is in a group of a command. `false`: there is no means.
    pub(crate) fn freeze(&mut self) -> io::Result<bool> {
        let (file, text) = match &self.hierarchy {
            CgroupHierarchy::Unified(_) => ("cgroup.freeze", "1"),
            CgroupHierarchy::Freezer(_) => ("freezer.state", "FROZEN"),
            // By signal, if this is process 1: then all that is seen is the sandbox's.
            CgroupHierarchy::Absent if std::process::id() == 1 => {
                (self.frozen, self.still) = (true, false);
                return Ok(true);
            }
            CgroupHierarchy::Absent => return Ok(false),
        };
        let Some(run) = self.run() else { return Ok(false) };
        write(run, file, text)?;
        self.frozen = true;
        let pause = Duration::from_millis(limits::NUDGE_MS_MIN);
        self.nudge = (Instant::now() + pause, pause);
        Ok(true)
    }

    /// Whether what [`Cgroups::freeze`] began is done.
    pub(crate) fn is_frozen(&mut self) -> io::Result<bool> {
        if let CgroupHierarchy::Absent = &self.hierarchy {
            if !self.frozen {
                return Ok(false);
            }
            // Again and again, until two looks in a row find nothing: one that was about
            // to fork left another one, which the first of them may have been too early for.
            let going_on = tree::going_on();
            let all = going_on.iter().all(|(pid, waits)| *waits && self.stopped.contains(pid));
            going_on.keys().for_each(|pid| sys::kill(*pid, libc::SIGSTOP));
            self.stopped.extend(going_on.into_keys());
            return Ok(std::mem::replace(&mut self.still, all) && all);
        }
        let Some(run) = &self.run else { return Ok(false) };
        Ok(match &self.hierarchy {
            CgroupHierarchy::Unified(_) => {
                read(run, "cgroup.events")?.lines().any(|line| line == "frozen 1")
            }
            CgroupHierarchy::Freezer(_) => {
                let frozen = read(run, "freezer.state")?.trim() == "FROZEN";
                let (at, pause) = self.nudge;
                if !frozen && Instant::now() >= at {
                    // Who waits in vfork(2) for a child that stopped never stops itself:
                    // the child goes on for a moment. Each has longer to stop than the
                    // last time, because on a busy host all of them take long.
                    write(run, "freezer.state", "THAWED")?;
                    write(run, "freezer.state", "FROZEN")?;
                    self.nudge = (Instant::now() + 2 * pause, 2 * pause);
                }
                frozen
            }
            CgroupHierarchy::Absent => false,
        })
    }

    /// Lets all go on that was stopped.
    pub(crate) fn thaw(&mut self) -> io::Result<()> {
        // Nothing that is stopped ends by itself, so the numbers are still theirs.
        std::mem::take(&mut self.stopped).iter().for_each(|pid| sys::kill(*pid, libc::SIGCONT));
        let (true, Some(run)) = (self.frozen, &self.run) else {
            self.frozen = false;
            return Ok(());
        };
        match &self.hierarchy {
            CgroupHierarchy::Unified(_) => write(run, "cgroup.freeze", "0")?,
            CgroupHierarchy::Freezer(_) => write(run, "freezer.state", "THAWED")?,
            CgroupHierarchy::Absent => {}
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

    /// Whether what an earlier command left behind would be known.
    pub(crate) fn sees_all(&self) -> bool {
        match self {
            Self::Unified { .. } | Self::Freezer { .. } => true,
            Self::Walk { before, .. } => before.is_empty(),
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
    pub(crate) fn kill(&mut self, others: &BTreeSet<i32>) {
        match self {
            Self::Unified { dir, killed, .. } => {
                *killed = true;
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
            Self::Unified { events, .. } => {
                let mut text = [0; 64];
                let read = events.as_ref().and_then(|events| events.read_at(&mut text, 0).ok());
                let lines = text[..read.unwrap_or(0)].split(|byte| *byte == b'\n');
                lines.into_iter().any(|line| line == b"populated 0")
            }
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
