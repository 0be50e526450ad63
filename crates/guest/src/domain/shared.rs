//! The domains where there are no namespaces: then Landlock is what draws the line between
//! a sandbox and its host, and not what repeats it.
//!
//! Owns both: that of the guest, and the narrower one that every command enters on its way.
//! Nothing is granted at the root of the host, so what nobody names can't be opened: of the
//! host programs and libraries, read-only, and the harmless devices; of the sandbox its
//! disk. The guest reads `/proc`, to know which processes are whose; commands don't, because
//! there are all others of the user too, with their command lines.
//!
//! Each command has a domain of its own within that of the guest, and signals no process
//! that is not in it: neither the engine, which is of the same user, nor the guest, nor what
//! another command left running.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, CompatLevel, Compatible, RestrictSelfAttr, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{FILL, READ, Rights, USE, WRITE, allow};
use crate::ground::{OUTPUT, WORKSPACE, WRITTEN};

/// The first version that confines signals and abstract sockets (Linux 6.12). An older one
/// would let commands end whatever the user runs, and is refused.
const VERSION: ABI = ABI::V6;

/// Devices that commands use. None of a terminal: that of a command is its own and comes by
/// descriptor, and beside it in `/dev/pts` are those in which the user types.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Where the guest makes terminals.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];
/// What is told of the host as a whole, and every program may know.
const FACTS: [&str; 7] = [
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/proc/filesystems",
];

/// What commands are confined by.
#[derive(Debug)]
pub(crate) struct Confined {
    /// What is granted, which also keeps the kernel from forgetting [`FACTS`]: of one that it
    /// made anew the rules would know nothing.
    granted: Vec<(OwnedFd, Rights)>,
    rules: OwnedFd,
    pub(crate) workspace: OwnedFd,
}

/// The rules of one command.
#[derive(Debug)]
pub(crate) enum Rules<'a> {
    /// Those of all.
    Common(&'a OwnedFd),
    /// With its own terminal.
    Own(OwnedFd),
}

impl AsRawFd for Rules<'_> {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Common(rules) => rules.as_raw_fd(),
            Self::Own(rules) => rules.as_raw_fd(),
        }
    }
}

impl Confined {
    /// The rules of a command, which may open its terminal by its name.
    pub(crate) fn rules(&self, terminal: Option<BorrowedFd<'_>>) -> io::Result<Rules<'_>> {
        let Some(terminal) = terminal else { return Ok(Rules::Common(&self.rules)) };
        let mut rules = granting(&self.granted)?;
        allow(&mut rules, terminal, USE)?;
        descriptor(rules).map(Rules::Own)
    }
}

/// Rules that grant this.
fn granting(granted: &[(OwnedFd, Rights)]) -> io::Result<RulesetCreated> {
    let mut rules = rules()?;
    granted.iter().try_for_each(|(place, rights)| allow(&mut rules, place, *rights))?;
    Ok(rules)
}

fn descriptor(rules: RulesetCreated) -> io::Result<OwnedFd> {
    let rules: Option<OwnedFd> = rules.into();
    rules.ok_or_else(|| io::Error::other("there is no ruleset"))
}

/// Confines this thread and all that it will start, for good, and makes the rules of
/// commands. `disk`: the sandbox's; `own`: directories beyond it in which the guest writes;
/// `shown`: what is seen of the host. To be called with one thread, after no_new_privs.
///
/// # Errors
/// When the kernel has no Landlock of this version, or something that is there can't be
/// granted.
pub(crate) fn enter(
    disk: &OwnedFd,
    own: &[BorrowedFd<'_>],
    shown: &[PathBuf],
) -> io::Result<Confined> {
    let part = |path: &str| beneath(disk, path);
    let mut granted = Vec::new();
    let shown = shown.iter().map(|path| (path.as_path(), READ));
    let devices = DEVICES.iter().map(|path| (Path::new(path), USE));
    let facts = FACTS.iter().map(|path| (Path::new(path), READ));
    for (path, rights) in shown.chain(devices).chain(facts) {
        granted.extend(found(path)?.map(|place| (place, rights)));
    }
    for path in WRITTEN {
        granted.push((part(path)?, WRITE));
    }
    // What the guest has beside that: the disk as a whole, with its outputs, and what it
    // starts commands by.
    let mut guest = granting(&granted)?;
    allow(&mut guest, disk, READ)?;
    own.iter().try_for_each(|dir| allow(&mut guest, dir, WRITE))?;
    for (path, rights) in TERMINALS.map(|path| (path, USE)).into_iter().chain([("/proc", FILL)]) {
        if let Some(place) = found(Path::new(path))? {
            allow(&mut guest, place, rights)?;
        }
    }
    granted.push((part(OUTPUT)?, READ));
    let rules = granting(&granted).and_then(descriptor)?;
    let workspace = part(WORKSPACE)?;
    // What is refused here is not for the log of the host, which commands could fill.
    let entered = guest
        .log_same_exec(false)
        .and_then(|ruleset| ruleset.log_subdomains(false))
        .and_then(RulesetCreated::restrict_self);
    entered.map_err(io::Error::other)?;
    Ok(Confined { granted, rules, workspace })
}

/// Rules that grant nothing.
fn rules() -> io::Result<RulesetCreated> {
    let handled: Rights = super::handled();
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(handled)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(VERSION)))
        .and_then(Ruleset::create)
        // Of rights on directories, those of a file are what a file gets.
        .map(|ruleset| ruleset.set_compatibility(CompatLevel::BestEffort))
        .map_err(io::Error::other)
}

/// What is at a path of the host, if anything is. Of links, which `/bin` mostly is, where
/// they lead: nobody here could have put them there.
fn found(path: &Path) -> io::Result<Option<OwnedFd>> {
    match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A part of the disk.
fn beneath(disk: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(disk.as_fd(), path.trim_start_matches('/'), flags, Mode::empty())?)
}
