//! Every layer between a command and the host, as this host has it.
//!
//! Owns the words for each: what it does where it is active, and where it is not,
//! what would make it so. A layer that is missing is never left out.

use outrigger_sandbox::{Isolation, Layer};

use super::landlock::Landlock;
use crate::spawner::quota::cgroup::CgroupRoots;

/// What tells of this host beside its cgroups.
#[derive(Debug)]
struct Host {
    root: bool,
    /// Why sandboxes have no range of ids.
    why: Option<String>,
    /// Whether a tree could be laid over another.
    overlay: bool,
    /// Whether a file system with a server could be mounted.
    fuse: bool,
    landlock: Landlock,
}

impl Host {
    fn look(why: Option<String>, (overlay, fuse): (bool, bool)) -> Self {
        Self {
            root: rustix::process::geteuid().is_root(),
            why,
            overlay,
            fuse,
            landlock: Landlock::look(),
        }
    }
}

/// All layers. `trial`: whether it found overlays, and file systems with a server.
pub(super) fn layers(
    isolation: Isolation,
    why: Option<String>,
    trial: (bool, bool),
    roots: &CgroupRoots,
) -> Vec<Layer> {
    described(isolation, roots, &Host::look(why, trial))
}

fn described(isolation: Isolation, roots: &CgroupRoots, host: &Host) -> Vec<Layer> {
    let idmapped = isolation == Isolation::RootRange;
    let range = idmapped || isolation == Isolation::RootlessRange;
    let freezer = roots.legacy.contains_key("freezer");
    let always = |name, detail: &str| layer(name, true, detail.to_owned());
    vec![
        always("namespaces", "user, pid, mount, network, ipc, uts, cgroup"),
        layer("user_ids", range, user_ids(isolation, host)),
        always("root", "a private root; host programs read-only through an allow-list"),
        layer("overlay", host.overlay, overlay(host)),
        layer("fuse", host.fuse, fuse(host)),
        layer("idmapped_mounts", idmapped, idmapped_mounts(isolation)),
        always("proc", "its own, without the parts that tell of or act on the host"),
        always("capabilities", "commands have none, and no way to gain any"),
        always("seccomp", "an allow-list of system calls"),
        layer("cgroup_limits", roots.limiting(), cgroup_limits(roots, host)),
        layer("cgroup_kill", roots.unified.is_some() || freezer, cgroup_kill(roots, freezer)),
        layer("cgroup_freeze", roots.freezing(), cgroup_freeze(roots)),
        always("network", "none but a loopback of its own"),
        layer("landlock", host.landlock.serves(), host.landlock.detail()),
    ]
}

fn layer(name: &str, active: bool, detail: String) -> Layer {
    Layer { name: name.to_owned(), active, detail }
}

fn user_ids(isolation: Isolation, host: &Host) -> String {
    match isolation {
        Isolation::RootRange => "a range of 65536 user ids for each sandbox".to_owned(),
        Isolation::RootlessRange => {
            "this user's subordinate ids, which all its sandboxes share".to_owned()
        }
        _ => {
            let why = host.why.as_deref().unwrap_or("run as root for a range of ids for each");
            format!("one user id, the caller's, whose other groups stay; {why}")
        }
    }
}

fn overlay(host: &Host) -> String {
    if host.overlay {
        return "snapshots, forks and images share their layers".to_owned();
    }
    "no tree can be laid over another, which snapshots, forks and images need: \
     `modprobe overlay`, or Linux 5.11 where this is not root"
        .to_owned()
}

fn fuse(host: &Host) -> String {
    if host.fuse {
        return "trees are served to programs as files".to_owned();
    }
    "served folders are empty, and tools alone reach what is in them: `modprobe fuse`, and give \
     this user /dev/fuse (in a container: `--device /dev/fuse`)"
        .to_owned()
}

fn idmapped_mounts(isolation: Isolation) -> String {
    let text = match isolation {
        Isolation::RootRange => {
            "shared layers are seen as the sandbox's own; host files show `nobody` as owner"
        }
        Isolation::RootlessRange => {
            "layers belong to the subordinate ids that all sandboxes share: run as root for \
             ranges apart"
        }
        _ => "layers have one owner, the caller: run as root to share them between ranges of ids",
    };
    text.to_owned()
}

fn cgroup_limits(roots: &CgroupRoots, host: &Host) -> String {
    let has = roots.describe();
    if roots.limiting() {
        return format!("memory, processes and CPU, by {has}");
    }
    let fix = if host.root {
        "mount the cgroup controllers memory, pids and cpu writable (in a container: \
         `--cgroupns=private` with a writable /sys/fs/cgroup)"
    } else {
        "have systemd delegate them (`systemd-run --user --scope -p Delegate=yes`), or run as root"
    };
    format!("{has}; processes are limited by rlimit, memory and CPU are not: {fix}")
}

fn cgroup_kill(roots: &CgroupRoots, freezer: bool) -> String {
    let text = match (&roots.unified, freezer) {
        (Some(_), _) => "a cgroup for each command",
        (None, true) => "a freezer cgroup for each command",
        (None, false) => {
            "a walk over the process tree, which can miss a process that hides: \
             give a writable cgroup"
        }
    };
    text.to_owned()
}

fn cgroup_freeze(roots: &CgroupRoots) -> String {
    let text = if roots.freezing() {
        "what commands left behind can be stopped and go on"
    } else {
        "sandboxes can be suspended only without their processes: give a writable cgroup"
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_what_would_fix_it() {
        let why = Some("no ids: get some".to_owned());
        let (overlay, fuse, landlock) = (false, false, Landlock::Absent);
        let host = Host { root: false, why, overlay, fuse, landlock };
        let missing = described(Isolation::RootlessSingle, &CgroupRoots::default(), &host);
        let missing: Vec<_> = missing.into_iter().filter(|layer| !layer.active).collect();
        let names: Vec<&str> = missing.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "user_ids",
                "overlay",
                "fuse",
                "idmapped_mounts",
                "cgroup_limits",
                "cgroup_kill",
                "cgroup_freeze",
                "landlock"
            ]
        );
        for layer in missing {
            assert!(layer.detail.contains(": "), "{} gives no advice", layer.detail);
        }
    }
}
