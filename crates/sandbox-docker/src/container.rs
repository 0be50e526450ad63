//! The container of a sandbox: what the daemon is told to make.
//!
//! Owns the hardening, as data: nothing that a caller asks for can loosen it. Of a
//! container that runs nothing is changed; another life is another container.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits,
};
use outrigger_sandbox::cpu::CpuQuota;
use outrigger_sandbox::{CreateOutcome, CreateSpec, Error, Generation, SandboxId, capture};

use crate::engine::Engine;
use crate::maker::{Access, VolumeMount};
use crate::names::{self, Part, Store};
use crate::store::{self, Disk, SealedStore};
use crate::user::KEPT;
use crate::{guest, limits};

/// The user and group of the programs at the inner end of streams: another one, so
/// that no command can signal them.
pub(crate) const BRIDGE_USER: &str = "1001:1001";
/// Where the guest listens.
pub(crate) const SOCKET: &str = "/run/outrigger/guest";
/// Its directory, a filesystem of its own.
const SOCKET_DIR: &str = "/run/outrigger";

/// The filter of system calls that the daemon puts on all processes of a container,
/// before the guest puts its own on itself and on commands.
///
/// It is the guest's list in the form that daemons take. Two things can't be said in
/// it and are the guest's alone: that a terminal is not pushed input into (a filter
/// by argument can't say "anything but these two"), and which limit of its own a
/// process changes. `clone3` is allowed, because the guest starts commands by it.
pub(crate) const SECCOMP: &str = include_str!("seccomp.json");

/// What is covered by nothing: what daemons cover by default (`DefaultLinuxSpec` of
/// moby's `oci/defaults.go`), and what else tells of the host.
const MASKED: [&str; 14] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];
/// What can't be written whoever asks, as daemons have it by default.
const READ_ONLY: [&str; 4] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"];

/// No core of anything in it, the ends of streams among that. Not 0: by exactly 1 the kernel
/// also knows not to start the program that the host may have cores handed to, as root.
fn cores() -> ResourcesUlimits {
    let most = Some(limits::CORE_BYTES_MAX);
    ResourcesUlimits { name: Some("core".to_owned()), soft: most, hard: most }
}

/// The first port that needs no right, of the container's own network: names lead to ports
/// below 1024. Daemons have it so by default, but for some.
const LOW_PORTS: &str = "net.ipv4.ip_unprivileged_port_start";

/// How an empty folder is mounted.
const EMPTY: &str = "ro,nosuid,nodev,noexec,size=4k,mode=555";

/// What a container is made from.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) id: &'a SandboxId,
    pub(crate) spec: &'a CreateSpec,
    pub(crate) image: &'a str,
    pub(crate) runtime: Option<&'a str>,
    pub(crate) generation: &'a Generation,
    pub(crate) began: CreateOutcome,
    /// Its disk.
    pub(crate) disk: &'a SealedStore<Disk>,
    /// The volume with the guest program.
    pub(crate) guest: guest::Volume,
}

pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Plan<'_> {
    /// The whole of it.
    pub(crate) fn body(&self, engine: &Engine) -> Result<ContainerCreateBody, Error> {
        Ok(ContainerCreateBody {
            image: Some(self.image.to_owned()),
            hostname: Some("sandbox".to_owned()),
            user: Some(format!("{}:{KEPT}", self.user(engine))),
            working_dir: Some("/".to_owned()),
            entrypoint: Some(vec![guest::PATH.to_owned()]),
            cmd: Some(self.arguments()),
            // What an image has to be run again and again is not.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..Default::default()
            }),
            labels: Some(self.labels(&engine.owner)?),
            attach_stdin: Some(false),
            attach_stdout: Some(false),
            attach_stderr: Some(false),
            host_config: Some(self.host(engine)),
            ..Default::default()
        })
    }

    /// The user of the guest and of commands.
    fn user(&self, engine: &Engine) -> u32 {
        engine.user(&Store::Disk(self.id.clone()))
    }

    fn arguments(&self) -> Vec<String> {
        // Not how many processes: the kernel counts those of a user, and the daemon counts
        // those of a container.
        let file_bytes = self.spec.disk_bytes_max.to_string();
        let pairs = [
            ["--listen", SOCKET],
            ["--generation", self.generation.as_str()],
            ["--file-bytes", &file_bytes],
        ];
        pairs.as_flattened().iter().map(|word| (*word).to_owned()).collect()
    }

    fn labels(&self, owner: &str) -> Result<HashMap<String, String>, Error> {
        let written = |error| Error::Backend(format!("a label can't be written: {error}"));
        let store = Store::Disk(self.id.clone());
        let mut labels = store.labels(owner, Part::Container);
        let more = [
            (names::GENERATION, self.generation.as_str().to_owned()),
            (names::BEGAN, serde_json::to_string(&self.began).map_err(written)?),
            (names::SPEC, serde_json::to_string(self.spec).map_err(written)?),
            (names::MAKING, self.disk.making.clone()),
            (names::RECORD, serde_json::to_string(&self.disk.record).map_err(written)?),
        ];
        labels.extend(more.map(|(name, value)| (name.to_owned(), value)));
        Ok(labels)
    }

    fn mounts(&self, owner: &str) -> Vec<VolumeMount> {
        let disk = Store::Disk(self.id.clone());
        let labels = store::labels(owner, &disk, &self.disk.making);
        let parts = names::DISK.iter().map(|(part, target, _)| VolumeMount {
            volume: disk.volume(owner, part, &self.disk.making),
            target: (*target).to_owned(),
            access: Access::Write,
            labels: labels.clone(),
        });
        let guest = VolumeMount {
            volume: self.guest.volume.clone(),
            target: guest::DIR.to_owned(),
            access: Access::Read,
            labels: self.guest.labels.clone(),
        };
        parts.chain([guest]).collect()
    }

    /// The folders of served trees: empty, and not to be written to. Tools alone reach what
    /// is in the trees.
    fn served(&self) -> impl Iterator<Item = (String, String)> {
        self.spec.served.iter().map(|path| (path.clone(), EMPTY.to_owned()))
    }

    fn host(&self, engine: &Engine) -> HostConfig {
        let spec = self.spec;
        let memory = signed(spec.memory_bytes_max);
        let quota = CpuQuota::of(spec);
        let tmpfs = format!(
            "rw,nosuid,nodev,noexec,size={},mode=755,uid={},gid={KEPT}",
            limits::SOCKET_TMPFS_BYTES,
            self.user(engine)
        );
        let options = vec!["no-new-privileges".to_owned(), format!("seccomp={SECCOMP}")];
        HostConfig {
            memory: Some(memory),
            // Memory and swap together: no swap.
            memory_swap: Some(memory),
            pids_limit: Some(i64::from(spec.pids_max) + limits::OWN_PIDS),
            cpu_period: Some(signed(quota.period_us)),
            cpu_quota: Some(signed(quota.quota_us)),
            oom_score_adj: Some(limits::OOM_SCORE),
            ulimits: Some(vec![cores()]),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(options),
            masked_paths: Some(MASKED.map(str::to_owned).into()),
            readonly_paths: Some(READ_ONLY.map(str::to_owned).into()),
            privileged: Some(false),
            readonly_rootfs: Some(true),
            network_mode: Some("none".to_owned()),
            // Answered there as soon as it has a way out, and what is searched beyond is nobody's.
            dns: Some(vec![capture::ADDRESS.to_string()]),
            dns_search: Some(vec![".".to_owned()]),
            sysctls: Some(HashMap::from([(LOW_PORTS.to_owned(), "0".to_owned())])),
            ipc_mode: Some("private".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            shm_size: Some(limits::SHM_BYTES),
            tmpfs: Some(self.served().chain([(SOCKET_DIR.to_owned(), tmpfs)]).collect()),
            mounts: Some(self.mounts(&engine.owner).into_iter().map(VolumeMount::mount).collect()),
            init: Some(false),
            auto_remove: Some(false),
            // The guest says nothing, and what it would say is nobody's to keep.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            runtime: self.runtime.map(str::to_owned),
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The lists of the guest, as they stand in its source.
    fn listed(table: &str) -> BTreeSet<String> {
        let source = include_str!("../../guest/src/confine/seccomp/lists.rs");
        let start = source.find(&format!("{table}: ")).expect("the list is there");
        let list = &source[start..];
        let list = &list[..list.find("];").expect("the list ends")];
        let names = list.lines().filter_map(|line| line.trim().strip_prefix("libc::SYS_"));
        names.map(|name| name.trim_end_matches(',').to_owned()).collect()
    }

    fn profile() -> serde_json::Value {
        serde_json::from_str(SECCOMP).unwrap()
    }

    /// The calls of all rules with an action, and whether each stands without conditions.
    fn rules(action: &str) -> BTreeSet<String> {
        let profile = profile();
        let rules = profile["syscalls"].as_array().unwrap().iter();
        let rules = rules.filter(|rule| rule["action"] == action);
        let names = rules.flat_map(|rule| rule["names"].as_array().unwrap().clone());
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_profile_is_the_guests_list() {
        let mut allowed = listed("ALLOWED");
        allowed.extend(listed("ALLOWED_HERE"));
        assert!(allowed.len() > 200);
        assert_eq!(rules("SCMP_ACT_ALLOW"), allowed);
        let mut denied = listed("DENIED");
        denied.extend(listed("DENIED_HERE"));
        assert_eq!(rules("SCMP_ACT_ERRNO"), denied);
    }

    #[test]
    fn calls_with_uses_that_are_denied_stand_under_conditions_alone() {
        let profile = profile();
        for call in [
            "clone",
            "socket",
            "socketpair",
            "prlimit64",
            "personality",
            "mknod",
            "mknodat",
            "renameat2",
        ] {
            let rules = profile["syscalls"].as_array().unwrap().iter();
            let mut rules =
                rules.filter(|rule| rule["names"].as_array().unwrap().contains(&call.into()));
            assert!(rules.all(|rule| !rule["args"].as_array().unwrap().is_empty()), "{call}");
        }
    }
}
