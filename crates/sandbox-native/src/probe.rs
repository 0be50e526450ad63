//! What this host can give, found out without making anything that lasts.
//!
//! Owns the words for what is missing and what would fix it. It asks the kernel
//! rather than guess from versions: a short-lived process enters the namespaces and
//! tries one mount, because some hosts allow the first and refuse the second.

mod landlock;
mod layers;

use std::ffi::{CStr, CString};
use std::fs;
use std::path::Path;

use outrigger_sandbox::{Capabilities, DiskLimit, Error, Isolation, NetworkMode, Suspend};

use crate::spawner;
use crate::spawner::quota::cgroup;

/// Stack of the trial process, in words of 16 bytes for its alignment.
const STACK_WORDS: usize = 1 << 12;

/// Which step of the trial the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    Fine,
    Namespaces(i32),
    Mount,
    /// These alone, without which there are sandboxes that can do less.
    Parts(MissingFeatures),
}

/// What the trial lacks of what not every sandbox needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct MissingFeatures {
    /// Trees that stand on others, which snapshots and images need.
    overlay: bool,
    /// File systems with a server, by which trees are served into sandboxes.
    fuse: bool,
}

/// Probes the host, for a state directory that may be there already: what is in it
/// keeps the tier that it was made on.
///
/// # Errors
/// [`Error::Unavailable`] where no sandbox can be made, with what would fix it.
pub fn probe(state_dir: &Path) -> Result<Capabilities, Error> {
    let (isolation, why) = spawner::tier(Some(state_dir)).map_err(|reason| Error::Unavailable {
        reason,
        advice: "give them back, or use another state directory".to_owned(),
    })?;
    let missing = refusal(attempt(isolation))
        .map_err(|reason| Error::Unavailable { reason, advice: advice() })?;
    if rustix::fs::access("/proc/sys/kernel/seccomp/actions_avail", rustix::fs::Access::READ_OK)
        .is_err()
    {
        return Err(Error::Unavailable {
            reason: "the kernel has no seccomp filters".to_owned(),
            advice: "use a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
        });
    }
    let roots = cgroup::find();
    Ok(Capabilities {
        backend: "native".to_owned(),
        isolation,
        network: vec![NetworkMode::None, NetworkMode::Gate],
        resource_limits: roots.limiting(),
        reattach: true,
        suspend: if roots.freezing() {
            vec![Suspend::Frozen, Suspend::Cold]
        } else {
            vec![Suspend::Cold]
        },
        snapshots: !missing.overlay,
        disk_limit: DiskLimit::Watched,
        live_mounts: !missing.fuse,
        terminal: true,
        layers: layers::layers(isolation, why, (!missing.overlay, !missing.fuse), &roots),
    })
}

/// What a trial of namespaces lacks, or why there are none.
fn refusal(trial: Trial) -> Result<MissingFeatures, String> {
    match trial {
        Trial::Fine => Ok(MissingFeatures::default()),
        Trial::Parts(missing) => Ok(missing),
        Trial::Namespaces(errno) => {
            let error = std::io::Error::from_raw_os_error(errno);
            Err(format!("user namespaces are refused ({error})"))
        }
        Trial::Mount => Err("user namespaces are allowed but have no power over mounts".to_owned()),
    }
}

/// What would fix a refusal, from what this host shows of its settings.
pub(crate) fn advice() -> String {
    let setting = |path: &str| {
        fs::read_to_string(Path::new("/proc/sys").join(path))
            .map(|text| text.trim().to_owned())
            .ok()
    };
    let is = |path: &str, value: &str| setting(path).is_some_and(|found| found == value);
    let mut found = Vec::new();
    if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        found.push("AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1): load an AppArmor profile with `userns,` for this program, or run it as root");
    }
    if is("kernel/unprivileged_userns_clone", "0") {
        found.push("set kernel.unprivileged_userns_clone = 1, or run as root");
    }
    if is("user/max_user_namespaces", "0") {
        found.push("set user.max_user_namespaces to more than 0");
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filtered = status.lines().any(|line| line.starts_with("Seccomp:") && line.ends_with('2'));
    if filtered || Path::new("/.dockerenv").exists() {
        found.push("in a container, start it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined` (Docker's default profile refuses namespaces)");
    }
    if found.is_empty() {
        found.push("allow user namespaces for this user, or run as root on the host");
    }
    found.push("or use the Docker backend: `backend = \"docker\"` under `[sandbox]`");
    found.join("; ")
}

/// What the trial writes of itself, where it makes a user namespace: with no owner that
/// is mapped, it could make no file.
struct Maps {
    users: CString,
    groups: CString,
}

/// Makes a process in the namespaces that the spawner would use, which makes its mounts
/// private, lays a tree over another, and ends.
fn attempt(isolation: Isolation) -> Trial {
    let namespaces = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET;
    let own = |id: u32| CString::new(format!("0 {id} 1")).expect("digits hold no NUL");
    let (namespaces, maps) = match isolation {
        // Its mounts are made by root itself, and only then is a user namespace entered.
        Isolation::RootRange => match run(libc::CLONE_NEWUSER, nothing, std::ptr::null_mut()) {
            Ok(_) => (namespaces, None),
            Err(errno) => return Trial::Namespaces(errno),
        },
        _ => (
            namespaces | libc::CLONE_NEWUSER,
            Some(Maps {
                users: own(rustix::process::geteuid().as_raw()),
                groups: own(rustix::process::getegid().as_raw()),
            }),
        ),
    };
    // `maps` lives until the process has ended.
    match run(namespaces, trial, (&raw const maps).cast_mut().cast()) {
        Err(errno) => Trial::Namespaces(errno),
        Ok(Some(0)) => Trial::Fine,
        Ok(Some(lacks)) if lacks & !(NO_OVERLAY | NO_FUSE) == 0 => Trial::Parts(MissingFeatures {
            overlay: lacks & NO_OVERLAY != 0,
            fuse: lacks & NO_FUSE != 0,
        }),
        Ok(_) => Trial::Mount,
    }
}

/// What a process does that only shows that it can be.
extern "C" fn nothing(_: *mut libc::c_void) -> libc::c_int {
    0
}

/// The exit code of a process in these namespaces that does this, if it ended by itself; or
/// why there is none.
fn run(
    namespaces: libc::c_int,
    act: extern "C" fn(*mut libc::c_void) -> libc::c_int,
    with: *mut libc::c_void,
) -> Result<Option<libc::c_int>, i32> {
    let mut stack = vec![0_u128; STACK_WORDS];
    // SAFETY: the stack is live until the call returns, because CLONE_VFORK holds this
    // thread until the child has ended; the child runs `nothing` or `trial`, which make a few
    // system calls and write to no memory but their stack.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK_WORDS).cast();
        let flags = namespaces | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(act, top, flags, with)
    };
    if pid < 0 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM));
    }
    let mut status = 0;
    // SAFETY: the pointer is to a live local, and the child is this call's own.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    Ok(libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)))
}

/// Bits of what the trial ends with if that is all that it lacks.
const NO_OVERLAY: libc::c_int = 2;
const NO_FUSE: libc::c_int = 4;

/// Where the trial has a file system of its own, in its own mount namespace: a
/// directory that every host has.
const PLACE: &CStr = c"/proc";

extern "C" fn trial(maps: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the caller passes this, and waits for the end of this process.
    let maps = unsafe { &*maps.cast::<Option<Maps>>() };
    let options = match maps {
        None => c"lowerdir=/proc/l,upperdir=/proc/u,workdir=/proc/w",
        Some(maps) => {
            // Of a process that may not be looked into its maps belong to root. This one
            // shares its memory with its maker, which may be such a one.
            // SAFETY: both take numbers.
            let looked = unsafe {
                let looked = libc::prctl(libc::PR_GET_DUMPABLE);
                libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
                looked
            };
            let written = say(c"/proc/self/setgroups", c"deny")
                && say(c"/proc/self/uid_map", &maps.users)
                && say(c"/proc/self/gid_map", &maps.groups);
            // SAFETY: as above.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, looked, 0, 0, 0) };
            if !written {
                return 1;
            }
            c"lowerdir=/proc/l,upperdir=/proc/u,workdir=/proc/w,userxattr"
        }
    };
    // SAFETY: the strings are constants; null is allowed for the others.
    unsafe {
        let none = std::ptr::null();
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if libc::mount(none, c"/".as_ptr(), none, private, none.cast()) != 0 {
            return 1;
        }
        if libc::mount(c"tmpfs".as_ptr(), PLACE.as_ptr(), c"tmpfs".as_ptr(), 0, none.cast()) != 0 {
            return 1;
        }
        for dir in [c"/proc/l", c"/proc/u", c"/proc/w", c"/proc/m"] {
            libc::mkdir(dir.as_ptr(), 0o755);
        }
        let (kind, target) = (c"overlay".as_ptr(), c"/proc/m".as_ptr());
        let overlay = match libc::mount(kind, target, kind, 0, options.as_ptr().cast()) {
            0 => 0,
            _ => NO_OVERLAY,
        };
        overlay | if serves(c"/proc/w") { 0 } else { NO_FUSE }
    }
}

/// The number that the trial gives its device.
const DEVICE: libc::c_int = 100;

/// Tries to mount a file system with a server, which ends before it is asked for anything.
fn serves(place: &CStr) -> bool {
    let options = c"fd=100,rootmode=40000,user_id=0,group_id=0,allow_other";
    let kind = c"fuse".as_ptr();
    // SAFETY: the strings are constants; the descriptors are this process's own, which ends
    // soon.
    unsafe {
        let fd = libc::open(c"/dev/fuse".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        fd >= 0
            && libc::dup2(fd, DEVICE) == DEVICE
            && libc::mount(kind, place.as_ptr(), kind, 0, options.as_ptr().cast()) == 0
    }
}

/// Writes a file that is there.
fn say(path: &CStr, text: &CStr) -> bool {
    let bytes = text.to_bytes();
    // SAFETY: the path is a C string and the bytes are live; the descriptor is this call's own.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        fd >= 0 && libc::write(fd, bytes.as_ptr().cast(), bytes.len()) == bytes.len().cast_signed()
    }
}
