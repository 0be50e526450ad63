//! What this host can give, found out without making anything that lasts.
//!
//! Owns the words for what is missing and what would fix it. It asks the kernel
//! rather than guess from versions: a short-lived process enters the namespaces and
//! tries one mount, because some hosts allow the first and refuse the second.

mod layers;

use std::fs;
use std::path::Path;

use outrigger_sandbox::{Capabilities, DiskLimit, Error, Isolation, NetworkMode, Suspend};

use crate::cgroup;
use crate::spawner::all_ids_mapped;

/// Stack of the trial process, in words of 16 bytes for its alignment.
const STACK_WORDS: usize = 1 << 12;

/// Which step of the trial the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    Fine,
    Namespaces(i32),
    Mount,
}

/// Probes the host.
///
/// # Errors
/// [`Error::Unavailable`] where no sandbox can be made, with what would fix it.
pub fn probe() -> Result<Capabilities, Error> {
    let root = rustix::process::geteuid().is_root();
    let isolation =
        if root && all_ids_mapped() { Isolation::RootRange } else { Isolation::RootlessSingle };
    let trial = attempt(isolation);
    if trial != Trial::Fine {
        let reason = match trial {
            Trial::Namespaces(errno) => {
                format!(
                    "user namespaces are refused ({})",
                    std::io::Error::from_raw_os_error(errno)
                )
            }
            Trial::Mount | Trial::Fine => {
                "user namespaces are allowed but have no power over mounts".to_owned()
            }
        };
        return Err(Error::Unavailable { reason, advice: advice() });
    }
    if rustix::fs::access("/proc/sys/kernel/seccomp/actions_avail", rustix::fs::Access::READ_OK)
        .is_err()
    {
        return Err(Error::Unavailable {
            reason: "the kernel has no seccomp filters".to_owned(),
            advice: "use a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
        });
    }
    let places = cgroup::find();
    Ok(Capabilities {
        backend: "native".to_owned(),
        isolation,
        network: vec![NetworkMode::None],
        resource_limits: places.limiting(),
        reattach: true,
        suspend: if places.freezing() {
            vec![Suspend::Frozen, Suspend::Cold]
        } else {
            vec![Suspend::Cold]
        },
        snapshots: true,
        disk_limit: DiskLimit::Watched,
        terminal: true,
        layers: layers::layers(isolation, &places),
    })
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
    found.join("; ")
}

/// Makes a process in the namespaces that the spawner would use, which makes one
/// mount private and ends.
fn attempt(isolation: Isolation) -> Trial {
    let namespaces =
        libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWUSER;
    let namespaces = if isolation == Isolation::RootRange {
        namespaces & !libc::CLONE_NEWUSER
    } else {
        namespaces
    };
    let mut stack = vec![0_u128; STACK_WORDS];
    // SAFETY: the stack is live until the call returns, because CLONE_VFORK holds
    // this thread until the child has ended; the child runs `trial`, which makes two
    // system calls and touches no memory but its stack.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK_WORDS).cast();
        let flags = namespaces | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(trial, top, flags, std::ptr::null_mut())
    };
    if pid < 0 {
        return Trial::Namespaces(
            std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM),
        );
    }
    let mut status = 0;
    // SAFETY: the pointer is to a live local, and the child is this call's own.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
        Trial::Fine
    } else {
        Trial::Mount
    }
}

extern "C" fn trial(_: *mut libc::c_void) -> libc::c_int {
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the strings are constants; null is allowed for the other three.
    unsafe {
        libc::mount(std::ptr::null(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null())
    }
}
