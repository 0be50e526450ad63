//! What the gate's process can still do once it serves.
//!
//! Owns its Landlock domain (landlock(7)) and its filter of system calls (seccomp(2)). It
//! reaches the outside and reads what hostile sides send, so it may open hardly any file and
//! start nothing. Both stand on the one thread that there is, and on all that it starts.

mod calls;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope, make_bitflags,
};
use rustix::fs::{Mode, OFlags};
use rustix::mm::MlockAllFlags;
use rustix::process::{DumpableBehavior, Resource, Rlimit};

use crate::limits;

/// Of the gate's directory.
const KEEP: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | RemoveFile | MakeReg | MakeSock
});

/// Confines this thread for good. `dir`: the gate's directory.
pub(super) fn enter(dir: &OwnedFd) -> io::Result<()> {
    // What glibc loads to resolve names it loads with the first of them. What is not loaded by
    // then (daemons' own modules) is not used, and DNS is what is left.
    let _ = std::net::ToSocketAddrs::to_socket_addrs(&("localhost", 0));
    rustix::thread::set_no_new_privs(true)?;
    // Keys are in no core file and in no other process of the same user.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let none = Some(limits::CORE_BYTES_MAX);
    rustix::process::setrlimit(Resource::Core, Rlimit { current: none, maximum: none })?;
    // Descriptors of one sandbox are not to be what others lack.
    let files = rustix::process::getrlimit(Resource::Nofile);
    let _ =
        rustix::process::setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    // Nor are they swapped out, where that may be forbidden: to root, and within RLIMIT_MEMLOCK.
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    let _ = rustix::mm::mlockall(all);
    domain(dir)?;
    calls::filter()
}

/// The files that names are resolved by lie in these.
fn resolver_places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/etc")];
    // Often a link to where a daemon writes it anew.
    if let Ok(file) = std::fs::canonicalize("/etc/resolv.conf")
        && let Some(parent) = file.parent()
        && parent != Path::new("/")
    {
        places.push(parent.to_owned());
    }
    places
}

fn domain(dir: &OwnedFd) -> io::Result<()> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::BindTcp))
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?
        .add_rule(PathBeneath::new(dir.as_fd(), KEEP))
        .map_err(io::Error::other)?;
    for place in resolver_places() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        if let Ok(place) = rustix::fs::open(&place, flags, Mode::empty()) {
            let rule = PathBeneath::new(place, make_bitflags!(AccessFs::{ReadFile}));
            ruleset = ruleset.add_rule(rule).map_err(io::Error::other)?;
        }
    }
    ruleset.restrict_self().map(drop).map_err(io::Error::other)
}
