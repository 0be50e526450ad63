//! Every layer between a command and the host, as this host has it.
//!
//! Owns the words for each: what it does where it is active, and where it is not,
//! what would make it so. A layer that is missing is never left out.

use std::fs;
use std::path::Path;

use outrigger_sandbox::{Isolation, Layer};

use crate::cgroup::Places;

/// What tells of this host beside its cgroups.
#[derive(Debug)]
struct Host {
    root: bool,
    /// Ids that `/etc/subuid` gives this user.
    subordinate_ids: u64,
    overlay: bool,
    landlock: bool,
}

impl Host {
    fn look() -> Self {
        let uid = rustix::process::geteuid();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let passwd = text("/etc/passwd");
        let name = passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == uid.as_raw().to_string()).then_some(name)
        });
        Self {
            root: uid.is_root(),
            subordinate_ids: subordinate(
                &text("/etc/subuid"),
                name.unwrap_or_default(),
                uid.as_raw(),
            ),
            overlay: text("/proc/filesystems").lines().any(|line| line.ends_with("\toverlay"))
                || Path::new("/sys/module/overlay").exists(),
            landlock: text("/sys/kernel/security/lsm").contains("landlock"),
        }
    }
}

/// The ids of a user in the form of subuid(5).
fn subordinate(text: &str, name: &str, uid: u32) -> u64 {
    let uid = uid.to_string();
    let counts = text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        let count = fields.nth(1)?.trim().parse::<u64>().ok()?;
        (owner == uid || owner == name).then_some(count)
    });
    counts.fold(0, u64::saturating_add)
}

/// All layers.
pub(super) fn layers(isolation: Isolation, places: &Places) -> Vec<Layer> {
    described(isolation, places, &Host::look())
}

fn described(isolation: Isolation, places: &Places, host: &Host) -> Vec<Layer> {
    let range = isolation == Isolation::RootRange;
    let freezer = places.legacy.contains_key("freezer");
    let always = |name, detail: &str| layer(name, true, detail.to_owned());
    vec![
        always("namespaces", "user, pid, mount, network, ipc, uts, cgroup"),
        layer("user_ids", range, user_ids(range, host)),
        always("root", "a private root; host programs read-only through an allow-list"),
        layer("overlay", host.overlay, overlay(host)),
        layer("idmapped_mounts", range, idmapped(range)),
        always("proc", "its own, without the parts that tell of or act on the host"),
        always("capabilities", "commands have none, and no way to gain any"),
        always("seccomp", "an allow-list of system calls"),
        layer("cgroup_limits", places.limiting(), cgroup_limits(places, host)),
        layer("cgroup_kill", places.unified.is_some() || freezer, cgroup_kill(places, freezer)),
        layer("cgroup_freeze", places.freezing(), cgroup_freeze(places)),
        always("network", "none but a loopback of its own"),
        layer("landlock", false, landlock(host)),
    ]
}

fn layer(name: &str, active: bool, detail: String) -> Layer {
    Layer { name: name.to_owned(), active, detail }
}

fn user_ids(range: bool, host: &Host) -> String {
    if range {
        return "a range of 65536 user ids for each sandbox".to_owned();
    }
    let single = "one user id, the caller's, whose other groups stay";
    if host.root {
        return format!(
            "{single}; this root owns only a part of the host's ids, as in a container: \
             run as root on the host for a range of ids for each sandbox"
        );
    }
    let subordinate = match host.subordinate_ids {
        0 => "this user has no subordinate ids (/etc/subuid)".to_owned(),
        count => format!("the {count} subordinate ids of this user (/etc/subuid) are not used"),
    };
    format!("{single}; {subordinate}: run as root for a range of ids for each sandbox")
}

fn overlay(host: &Host) -> String {
    if host.overlay {
        return "snapshots, forks and images share their layers".to_owned();
    }
    "the kernel shows no overlay file system, which snapshots, forks and images need: \
     `modprobe overlay`"
        .to_owned()
}

fn idmapped(range: bool) -> String {
    let text = if range {
        "shared layers are seen as the sandbox's own; host files show `nobody` as owner"
    } else {
        "layers have one owner, the caller: run as root to share them between ranges of ids"
    };
    text.to_owned()
}

fn cgroup_limits(places: &Places, host: &Host) -> String {
    let has = places.describe();
    if places.limiting() {
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

fn cgroup_kill(places: &Places, freezer: bool) -> String {
    let text = match (&places.unified, freezer) {
        (Some(_), _) => "a cgroup for each command",
        (None, true) => "a freezer cgroup for each command",
        (None, false) => {
            "a walk over the process tree, which can miss a process that hides: \
             give a writable cgroup"
        }
    };
    text.to_owned()
}

fn cgroup_freeze(places: &Places) -> String {
    let text = if places.freezing() {
        "what commands left behind can be stopped and go on"
    } else {
        "sandboxes can be suspended only without their processes: give a writable cgroup"
    };
    text.to_owned()
}

fn landlock(host: &Host) -> String {
    let text = if host.landlock {
        "the kernel has it, sandboxes don't use it; the private root does its work"
    } else {
        "not used; the private root does its work"
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_ids_are_those_of_the_user_by_name_or_number() {
        let text = "me:100000:65536\nother:165536:65536\n1000:231072:10\nbad\nme:x:y\n";
        assert_eq!(subordinate(text, "me", 1000), 65_546);
        assert_eq!(subordinate(text, "nobody", 65_534), 0);
    }

    #[test]
    fn what_is_missing_says_what_would_fix_it() {
        let host = Host { root: false, subordinate_ids: 0, overlay: false, landlock: false };
        let missing = described(Isolation::RootlessSingle, &Places::default(), &host);
        let missing: Vec<_> = missing.into_iter().filter(|layer| !layer.active).collect();
        let names: Vec<&str> = missing.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "user_ids",
                "overlay",
                "idmapped_mounts",
                "cgroup_limits",
                "cgroup_kill",
                "cgroup_freeze",
                "landlock"
            ]
        );
        for layer in missing.iter().filter(|layer| layer.name != "landlock") {
            assert!(layer.detail.contains(": "), "{} gives no advice", layer.detail);
        }
    }
}
