//! What this daemon can do, as data.
//!
//! Owns the honest answer: a container shares the host's kernel and, unless the
//! daemon says otherwise, its user ids; a runtime is named only if the daemon has it.

use crate::runc;
use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};
use outrigger_sandbox::{Capabilities, DiskLimit, Error, Isolation, Layer, NetworkMode, Suspend};

/// The name of gVisor's runtime.
const GVISOR: &str = "runsc";
/// The name of the usual runtime.
const RUNC: &str = "runc";
/// The usual runtime by the name that containerd has for it.
const RUNC_SHIM: &str = "io.containerd.runc.v2";

fn layer(name: &str, active: bool, detail: &str) -> Layer {
    Layer { name: name.to_owned(), active, detail: detail.to_owned() }
}

/// What a daemon says of itself.
#[derive(Debug)]
pub(crate) struct DaemonInfo {
    pub(crate) info: SystemInfo,
    /// The version of the API that is spoken with it.
    pub(crate) api: String,
    /// The version of runc, if it has that.
    pub(crate) runc: Option<String>,
}

/// Refuses a runtime that the daemon does not have.
fn check_runtime(info: &SystemInfo, runtime: &str) -> Result<(), Error> {
    let runtimes = info.runtimes.iter().flatten().map(|(name, _)| name.as_str());
    let mut known: Vec<&str> = runtimes.collect();
    if known.contains(&runtime) {
        return Ok(());
    }
    known.sort_unstable();
    Err(Error::Unavailable {
        reason: format!(
            "this Docker daemon has no runtime `{runtime}`; it has {}",
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ),
        advice: format!(
            "install it and name it under `runtimes` in the daemon's settings \
             (/etc/docker/daemon.json), or do without `{runtime}`"
        ),
    })
}

/// Whether a daemon names this among what it does for security.
pub(crate) fn has(info: &SystemInfo, option: &str) -> bool {
    let options = info.security_options.iter().flatten();
    options.into_iter().any(|found| found.split(',').any(|part| part == option))
}

/// What sandboxes of this daemon with this runtime are.
pub(crate) fn capabilities(
    said: &DaemonInfo,
    runtime: Option<&str>,
) -> Result<Capabilities, Error> {
    let DaemonInfo { info, api, runc } = said;
    if let Some(runtime) = runtime {
        check_runtime(info, runtime)?;
    }
    let has = |option: &str| has(info, option);
    let (rootless, remapped) = (has("name=rootless"), has("name=userns"));
    let gvisor = runtime == Some(GVISOR);
    let limits = [info.memory_limit, info.pids_limit, info.cpu_cfs_quota];
    let limited = limits.iter().all(|limit| *limit == Some(true));
    let v1 = info.cgroup_version == Some(SystemInfoCgroupVersionEnum::_1);
    // Without a cgroup of its own there is nothing that could stop it.
    let freezes = !(rootless && v1);
    let daemon = info.server_version.as_deref().unwrap_or("of unknown version");
    let kernel = if gvisor {
        layer("kernel", true, "a kernel of its own in user space (gVisor)")
    } else {
        layer("kernel", false, "the host's; the runtime `runsc` gives it one of its own")
    };
    let users = match (rootless, remapped) {
        (true, _) => layer("users", true, "the daemon runs without root"),
        (_, true) => layer("users", true, "user ids are remapped, for all containers alike"),
        _ => layer(
            "users",
            false,
            "each container has one of the host's to itself; `userns-remap` in the daemon's \
             settings, or rootless Docker, sets them apart from the host's",
        ),
    };
    let seccomp = match has("name=seccomp") || rootless {
        true => layer("seccomp", true, "the daemon's filter below the guest's own"),
        false => layer("seccomp", false, "the daemon has none; the guest's own remains"),
    };
    let used = runtime.or(info.default_runtime.as_deref()).unwrap_or(RUNC);
    let runc_version = runc.as_deref().filter(|_| used == RUNC || used == RUNC_SHIM);
    let layers = [
        layer("daemon", true, &format!("Docker {daemon}, API {api}")),
        kernel,
        users,
        seccomp,
        layer("capabilities", true, "none, and none to be gained"),
        layer("root", true, "the image, read-only"),
        layer("network", true, "an unconnected loopback"),
        match limited {
            true => layer("limits", true, "memory, processes and processors, by cgroup"),
            false => layer("limits", false, "the daemon can't set all of them"),
        },
        layer(
            "outputs",
            false,
            "files with whole outputs can be changed by commands, whose user the guest has",
        ),
        layer("served trees", false, "their folders are empty, and tools alone reach them"),
    ];
    Ok(Capabilities {
        backend: "docker".to_owned(),
        isolation: if gvisor { Isolation::Gvisor } else { Isolation::Container },
        network: vec![NetworkMode::None, NetworkMode::Gate],
        resource_limits: limited,
        reattach: true,
        suspend: if freezes { vec![Suspend::Frozen] } else { Vec::new() },
        snapshots: true,
        disk_limit: DiskLimit::None,
        live_mounts: false,
        terminal: true,
        layers: layers.into_iter().chain(runc_version.map(runc::layer)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::Runtime;

    fn info() -> SystemInfo {
        SystemInfo {
            runtimes: Some([("runc".to_owned(), Runtime::default())].into()),
            security_options: Some(vec!["name=seccomp,profile=default".to_owned()]),
            memory_limit: Some(true),
            pids_limit: Some(true),
            cpu_cfs_quota: Some(true),
            cgroup_version: Some(SystemInfoCgroupVersionEnum::_1),
            ..SystemInfo::default()
        }
    }

    fn said(info: &SystemInfo) -> DaemonInfo {
        let runc = Some("1.1.5+ds1".to_owned());
        DaemonInfo { info: info.clone(), api: "1.41".to_owned(), runc }
    }

    fn active(capabilities: &Capabilities, name: &str) -> bool {
        capabilities.layers.iter().find(|layer| layer.name == name).unwrap().active
    }

    #[test]
    fn an_ordinary_daemon_gives_containers_and_says_what_they_lack() {
        let found = capabilities(&said(&info()), None).unwrap();
        assert_eq!(found.isolation, Isolation::Container);
        assert!(found.resource_limits && active(&found, "seccomp"));
        assert!(!active(&found, "kernel") && !active(&found, "users"));
        assert_eq!(found.suspend, [Suspend::Frozen]);
        assert!(!active(&found, "runc"));
    }

    #[test]
    fn gvisor_is_only_claimed_where_the_daemon_has_it() {
        let refused = capabilities(&said(&info()), Some("runsc")).unwrap_err();
        assert!(refused.to_string().contains("no runtime `runsc`; it has runc"), "{refused}");
        let mut info = info();
        info.runtimes = Some([("runsc".to_owned(), Runtime::default())].into());
        let found = capabilities(&said(&info), Some("runsc")).unwrap();
        assert_eq!(found.isolation, Isolation::Gvisor);
        assert!(active(&found, "kernel"));
        // Then it does not matter how old the other one is.
        assert!(found.layers.iter().all(|layer| layer.name != "runc"));
        // It being there does not make it used.
        assert_eq!(capabilities(&said(&info), None).unwrap().isolation, Isolation::Container);
    }

    #[test]
    fn without_limits_and_without_a_freezer_none_are_claimed() {
        let mut info = info();
        info.security_options = Some(vec!["name=rootless".to_owned()]);
        info.pids_limit = Some(false);
        let found = capabilities(&said(&info), None).unwrap();
        assert!(!found.resource_limits && found.suspend.is_empty() && active(&found, "users"));
    }
}
