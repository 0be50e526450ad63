//! The Landlock domain of a sandbox (landlock(7)): what may be opened, made and moved,
//! said once more, by the kernel's own notion of a hierarchy.
//!
//! Owns the rules, and that there is one domain for all: the guest enters it before it
//! has threads, and whatever it starts is born into it, which costs a command nothing.
//! A domain for each command would change what commands are to each other: none could
//! look into `/proc/PID/fd` of another (who holds this port?), and with scopes none
//! could signal what an earlier one left running. The scopes (signals, abstract sockets)
//! are left out because the pid and network namespaces draw the same line already.
//!
//! It must never refuse what the root allows to a command that means well. So a kernel
//! whose Landlock would is taken as one without: version 1 refuses every move from one
//! directory to another. Rules are for hierarchies and only ever add, so what is beneath
//! `/proc` is one: processes come and go there, and a program that names its threads
//! writes where nothing tells `/proc/PID` from `/proc/sys`. That stays with the mounts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictSelfAttr,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, make_bitflags,
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::sys::AgentRights;
use crate::{limits, sys};

type Rights = BitFlags<AccessFs>;

/// All that is spoken of. Rights that later kernels add are not, until somebody has
/// thought of what they would refuse.
fn handled() -> Rights {
    AccessFs::from_all(ABI::V5)
}

/// Everywhere beneath the root. A descriptor that leads elsewhere leads nowhere.
const READ: Rights = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
/// Where commands may write: everything but device nodes, which nobody makes, and
/// requests to devices.
const WRITE: Rights = make_bitflags!(AccessFs::{
    Execute | ReadFile | ReadDir | WriteFile | Truncate | Refer | RemoveDir | RemoveFile
        | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym
});
/// What is there already, and stays.
const FILL: Rights =
    make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir | WriteFile | Truncate});
/// The devices of the sandbox. Requests go to the harmless ones too, so that they say
/// that they are no terminals (isatty(3)) as they always do.
const USE: Rights =
    make_bitflags!(AccessFs::{ReadFile | ReadDir | WriteFile | Truncate | IoctlDev});

/// What is not a place for files, where nothing is granted as a whole.
const KERNEL: [&str; 3] = ["proc", "sys", "dev"];
/// What of it is granted, if it is there.
const PARTS: [(&str, Rights); 10] = [
    ("/proc", FILL),
    ("/dev/null", USE),
    ("/dev/zero", USE),
    ("/dev/full", USE),
    ("/dev/random", USE),
    ("/dev/urandom", USE),
    ("/dev/tty", USE),
    ("/dev/pts", USE),
    ("/dev/shm", WRITE),
    ("/dev/mqueue", WRITE),
];

/// Confines this thread and all that it will start, for good, as far as the kernel can.
/// `own`: directories beyond the root in which the guest writes; `served`: mounts that the
/// guest itself answers for, about which nothing may be asked before it does. To be called
/// with one thread, in the sandbox's root, after no_new_privs.
///
/// # Errors
/// When the kernel has a Landlock that serves, and then refuses.
pub(crate) fn enter(own: &[BorrowedFd<'_>], served: &[&Path]) -> io::Result<()> {
    let required = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer);
    // This asks for the version and does nothing: there is none, or none that serves.
    let Ok(ruleset) = required else { return Ok(()) };
    let mut ruleset = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled())
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    allow(&mut ruleset, open("/")?, READ)?;
    for (path, rights) in PARTS {
        if let Some(part) = found(Path::new(path))? {
            allow(&mut ruleset, part, rights)?;
        }
    }
    let others = places()?.into_iter().filter(|place| !served.contains(&place.as_path()));
    for place in others {
        if let Some(place) = found(&place)? {
            allow(&mut ruleset, place, WRITE)?;
        }
    }
    if !served.is_empty() {
        let copy: Option<OwnedFd> = ruleset.try_clone()?.into();
        let copy = copy.ok_or_else(|| io::Error::other("there is no ruleset"))?;
        served.iter().try_for_each(|place| allow_unasked(&copy, place))?;
    }
    for dir in own {
        allow(&mut ruleset, dir, WRITE)?;
    }
    // What is refused here is not for the log of the host, which commands could fill.
    let status = ruleset
        .log_same_exec(false)
        .and_then(|ruleset| ruleset.log_subdomains(false))
        .and_then(RulesetCreated::restrict_self);
    status.map(drop).map_err(io::Error::other)
}

fn allow(ruleset: &mut RulesetCreated, place: impl AsFd, rights: Rights) -> io::Result<()> {
    // Of rights on directories, those of a file are what a file gets.
    let rule = PathBeneath::new(place, rights).set_compatibility(CompatLevel::BestEffort);
    ruleset.add_rule(rule).map(drop).map_err(io::Error::other)
}

/// As [`allow`], but without a question what is there. A right that this kernel's Landlock
/// does not know is left out.
fn allow_unasked(ruleset: &OwnedFd, place: &Path) -> io::Result<()> {
    let place = open(place)?;
    let allow = |rights: Rights| sys::allow_beneath(ruleset, rights.bits(), place.as_fd());
    match allow(WRITE) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            allow(WRITE & !AccessFs::Truncate)
        }
        allowed => allowed,
    }
}

fn open(path: impl AsRef<Path>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path.as_ref(), flags, Mode::empty())
}

/// What is at a path, if anything is.
fn found(path: &Path) -> io::Result<Option<OwnedFd>> {
    match open(path) {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Where commands may write as far as the mounts are concerned. What is mounted
/// read-only, the host's programs above all, is so once more.
fn places() -> io::Result<Vec<PathBuf>> {
    let mut places = writable(&fs::read("/proc/self/mountinfo")?);
    if let Some(root) = places.iter().position(|place| place == Path::new("/"))
        && !may_write_root()?
    {
        places.swap_remove(root);
        places.extend(beneath_root()?);
    }
    Ok(places)
}

/// Whether commands may make something at the top of the root, which they may in an image
/// where they have the one id that there is. What they make there can't be told apart from
/// what the kernel has there.
fn may_write_root() -> io::Result<bool> {
    let rights = AgentRights::take().ok_or_else(|| io::Error::other("no rights of commands"))?;
    let may = rustix::fs::accessat(CWD, "/", rustix::fs::Access::WRITE_OK, AtFlags::EACCESS);
    drop(rights);
    match may {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS | Errno::ROFS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Files and directories at the top of the root.
fn beneath_root() -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/")?.take(limits::ROOT_ENTRIES_MAX) {
        let entry = entry?;
        let kind = entry.file_type()?;
        let kernel = KERNEL.iter().any(|name| entry.file_name() == *name);
        if (kind.is_dir() || kind.is_file()) && !kernel {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The mounts that are written to, from proc_pid_mountinfo(5), but for the kernel's.
fn writable(table: &[u8]) -> Vec<PathBuf> {
    let mounts = table.split(|&byte| byte == b'\n').filter_map(|line| {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-")?;
        let read_only = |options: &[u8]| options.split(|&byte| byte == b',').any(|o| o == b"ro");
        if read_only(fields.get(5)?) || read_only(fields.get(dash + 3)?) {
            return None;
        }
        Some(PathBuf::from(OsString::from_vec(unescaped(fields.get(4)?))))
    });
    let kernel =
        |place: &PathBuf| KERNEL.iter().any(|name| place.starts_with(Path::new("/").join(name)));
    mounts.filter(|place| !kernel(place)).collect()
}

/// A name with its blanks, which stand there as three octal digits.
fn unescaped(mut name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    while let [first, rest @ ..] = name {
        let octal = rest.first_chunk::<3>().filter(|_| *first == b'\\');
        let byte = octal.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        plain.push(byte.unwrap_or(*first));
        name = if byte.is_some() { &rest[3..] } else { rest };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_are_written_to_are_places() {
        let table = b"1 0 0:30 / / ro,nosuid - tmpfs tmpfs rw,size=4096k\n\
            2 1 254:0 /d/workspace /workspace rw,nosuid,nodev - ext4 /dev/vda rw\n\
            3 1 254:0 /d/home /home/agent rw,nosuid,nodev shared:1 master:2 - ext4 /dev/vda rw\n\
            4 1 254:0 /usr /usr rw - squashfs /dev/vdb ro\n\
            5 1 0:5 / /dev rw - tmpfs tmpfs rw\n\
            6 5 0:6 / /dev/shm rw - tmpfs tmpfs rw\n\
            7 1 0:7 / /proc rw - proc proc rw\n\
            8 1 254:0 /x /with\\040blank\\134 rw - ext4 /dev/vda rw\n\
            9 1 254:0 /x /devices rw - ext4 /dev/vda rw\n\
            short line\n";
        let expected = ["/workspace", "/home/agent", "/with blank\\", "/devices"];
        assert_eq!(writable(table), expected.map(PathBuf::from));
    }

    #[test]
    fn nobody_makes_devices_or_commands_those_that_are_not_there() {
        let granted = PARTS.iter().fold(READ | WRITE, |all, (_, rights)| all | *rights);
        assert_eq!(handled() & !granted, AccessFs::MakeChar | AccessFs::MakeBlock);
        assert!(!(WRITE | READ | FILL).contains(AccessFs::IoctlDev));
    }
}
