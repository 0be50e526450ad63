//! Podman's engine, which is a service that starts others' processes.
//!
//! Owns how it is started away from the host's own Podman, and what it leaves behind
//! when it ends: containers, which are nobody's children, and mounts. Must never touch
//! what is not beneath its two directories.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::docker::{Error, found};

/// The control group of all containers of Podman's, whoever started them.
const GROUP: &str = "libpod_parent";

/// Podman with directories of its own.
fn podman(home: &Path, data: &Path) -> Command {
    let mut command = Command::new("podman");
    command
        .env("CONTAINERS_CONF", home.join("containers.conf"))
        .arg("--root")
        .arg(data)
        .arg("--runroot")
        .arg(home.join("run"))
        .arg("--tmpdir")
        .arg(home.join("tmp"))
        .args(["--storage-driver", "overlay", "--cgroup-manager", "cgroupfs"]);
    command
}

/// The service, with its settings written.
pub(crate) fn service(home: &Path, data: &Path) -> Result<Command, Error> {
    found("podman")?;
    found("conmon")?;
    let limits = std::fs::read_to_string("/proc/self/limits").map_err(Error::Start)?;
    let pids = std::fs::read_to_string("/proc/sys/kernel/pid_max").map_err(Error::Start)?;
    // Where there are control groups of both versions crun does nothing.
    let both = !Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let runtime = if both { "runc" } else { "crun" };
    found(runtime)?;
    let settings = settings(&limits, pids.trim(), runtime);
    std::fs::write(home.join("containers.conf"), settings).map_err(Error::Start)?;
    let mut command = podman(home, data);
    let socket = format!("unix://{}", home.join("docker.sock").display());
    command.args(["system", "service", "--time=0", &socket]);
    Ok(command)
}

/// What of the settings is not Podman's own: limits that it need not raise, which is a
/// right that not everybody has, locks that no other Podman of this host has, and that
/// nobody waits for five minutes at the end of a command.
fn settings(limits: &str, pids_max: &str, runtime: &str) -> String {
    let hard = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
    };
    let pids = pids_max.parse().unwrap_or(u64::MAX);
    let processes = hard("Max processes").map(|most| ("nproc", most.min(pids)));
    let files = hard("Max open files").map(|most| ("nofile", most));
    let lowered = [processes, files].into_iter().flatten();
    let lowered: Vec<String> =
        lowered.map(|(name, most)| format!("\"{name}={most}:{most}\"")).collect();
    format!(
        "[containers]\ndefault_ulimits = [{}]\n\n[engine]\nlock_type = \"file\"\n\
         events_logger = \"none\"\nexit_command_delay = 0\nruntime = \"{runtime}\"\n",
        lowered.join(", ")
    )
}

/// Ends and removes its containers.
pub(crate) fn empty(home: &Path, data: &Path) {
    let mut command = podman(home, data);
    command.args(["rm", "--all", "--force", "--time", "0"]);
    // What stays shows when the directories can't be removed.
    drop(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status());
}

/// Takes away the mounts beneath its directories, and its control group if nobody
/// else's containers are in it.
pub(crate) fn unmount(home: &Path, data: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for place in beneath(&mounts, &[home, data]) {
        drop(Command::new("umount").args(["-l", place]).stderr(Stdio::null()).status());
    }
    for place in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        drop(std::fs::remove_dir(place.path().join(GROUP)));
    }
}

/// The mounts beneath directories, the last one first; see `proc_pid_mountinfo(5)`.
fn beneath<'a>(mounts: &'a str, dirs: &[&Path]) -> Vec<&'a str> {
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let ours = places.filter(|place| dirs.iter().any(|dir| Path::new(place).starts_with(dir)));
    let mut ours: Vec<&str> = ours.collect();
    ours.reverse();
    ours
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn limits_are_named_that_need_not_be_raised() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             96365                96365                processes\n\
                      Max open files            1024                 20000                files\n";
        expect![[r#"
            [containers]
            default_ulimits = ["nproc=32768:32768", "nofile=20000:20000"]

            [engine]
            lock_type = "file"
            events_logger = "none"
            exit_command_delay = 0
            runtime = "runc"
        "#]]
        .assert_eq(&settings(limits, "32768", "runc"));
        let limits =
            "Max processes             unlimited            unlimited            processes\n";
        assert!(settings(limits, "32768", "crun").contains("default_ulimits = []"));
    }

    #[test]
    fn only_mounts_beneath_are_taken_away() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n\
                      2 1 8:1 /a /run/x/tmp rw - tmpfs tmpfs rw\n\
                      3 1 8:1 /a /run/xy/tmp rw - tmpfs tmpfs rw\n\
                      4 2 8:1 /a /run/x/tmp/below rw - tmpfs tmpfs rw\n";
        let found = beneath(mounts, &[Path::new("/run/x"), Path::new("/var/tmp/x")]);
        assert_eq!(found, ["/run/x/tmp/below", "/run/x/tmp"]);
    }
}
