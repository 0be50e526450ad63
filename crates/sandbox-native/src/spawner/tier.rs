//! Which tier of the ladder of isolation a spawner stands on.
//!
//! Owns the choice, which whoever probes and the spawner make by the same rule, and
//! the note of it: disks that belong to subordinate ids are nothing without them, and
//! those of one id stay so. Must never take less than what is noted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Isolation;
use rustix::pipe::{PipeFlags, pipe_with};

use super::quota::ids;
use super::quota::subordinate;
use super::sys::{self, Fork, SleepingProcess};

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tier {
    pub(crate) isolation: Isolation,
    /// Why it is no range of ids, where it is none.
    pub(crate) why: Option<String>,
}

/// The note in a state directory that its disks belong to subordinate ids.
fn note(state: &Path) -> PathBuf {
    state.join("subordinate")
}

/// Whether disks or layers are there, which belong to somebody.
fn is_filled(state: &Path) -> bool {
    let has = |name: &str| {
        fs::read_dir(state.join(name)).is_ok_and(|mut entries| entries.next().is_some())
    };
    has("sandboxes") || has("layers")
}

/// Tries whether this process could have subordinate ids.
fn try_subordinate() -> Result<(), String> {
    let sleeping = SleepingProcess::in_user_namespace()
        .map_err(|error| format!("user namespaces are refused ({error})"))?;
    subordinate::map(sleeping.pid().unsigned_abs())
}

/// Chooses for a state directory, or for a new one.
///
/// # Errors
/// What is missing, for a person, where the directory needs more than there is.
pub(crate) fn choose(state: Option<&Path>) -> Result<Tier, String> {
    let root = rustix::process::geteuid().is_root();
    if root && ids::all_mapped() {
        return Ok(Tier { isolation: Isolation::RootRange, why: None });
    }
    let single =
        |why: &str| Tier { isolation: Isolation::RootlessSingle, why: Some(why.to_owned()) };
    if root {
        return Ok(single(
            "this root owns only a part of the host's ids, as in a container: run as root on \
             the host",
        ));
    }
    let filled = state.is_some_and(is_filled);
    let noted = state.is_some_and(|state| note(state).exists());
    if filled && !noted {
        return Ok(single(
            "what is in the state directory was made with one id: destroy all of it for \
             subordinate ids to be used",
        ));
    }
    match try_subordinate() {
        Ok(()) => Ok(Tier { isolation: Isolation::RootlessRange, why: None }),
        Err(why) if filled => {
            Err(format!("the state directory belongs to subordinate ids, which are gone: {why}"))
        }
        Err(why) => Ok(single(&why)),
    }
}

/// Becomes root of a user namespace with subordinate ids, and notes it.
pub(crate) fn take_subordinate(state: &Path) -> io::Result<()> {
    fs::write(note(state), "")?;
    let (poller, goes) = pipe_with(PipeFlags::CLOEXEC)?;
    let pid = std::process::id();
    // SAFETY: this process has one thread.
    match unsafe { sys::fork(0) }? {
        Fork::Child => {
            drop(goes);
            // Until the parent has gone where it is mapped.
            let gone = rustix::io::read(&poller, &mut [0_u8; 1]).is_ok_and(|read| read == 1);
            sys::leave(i32::from(!gone || subordinate::map(pid).is_err()))
        }
        Fork::Parent { pid: helper, .. } => {
            drop(poller);
            // SAFETY: as above.
            let left = unsafe { sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) };
            let told = left.and_then(|()| Ok(rustix::io::write(&goes, b"g").map(drop)?));
            drop(goes);
            let mapped = sys::wait(helper);
            told?;
            if mapped { Ok(()) } else { Err(io::Error::other("no subordinate ids were given")) }
        }
    }
}

/// Notes that disks belong to the caller alone.
pub(crate) fn forget_subordinate(state: &Path) -> io::Result<()> {
    match fs::remove_file(note(state)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
