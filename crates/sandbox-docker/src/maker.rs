//! Containers that are never started, for their view of volumes.
//!
//! The daemon reads and writes volumes as archives, through a container that mounts
//! them; it need not run for that. Owns these containers, and the question whether
//! the process that made one still lives: if not, it was left behind.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bollard::models::{
    ContainerCreateBody, ContainerSummary, HostConfig, Mount, MountType, MountVolumeOptions,
};
use outrigger_sandbox::Error;

use crate::clock::now_ms;
use crate::engine::{ContainerCreation, Engine, Labels};
use crate::limits;
use crate::names::{self, Part, Store};

/// Where a maker sees the volumes of a store.
pub(crate) const DISK: &str = "/outrigger/disk";
/// The directory above, into which archives of it are unpacked.
pub(crate) const ABOVE: &str = "/outrigger";
/// What the paths in such archives begin with.
pub(crate) const IN_ARCHIVE: &str = "disk";

/// What may be done with a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is seen and not changed.
    Read,
    /// It can be changed.
    Write,
}

/// A volume and where it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VolumeMount {
    pub(crate) volume: String,
    pub(crate) target: String,
    pub(crate) access: Access,
    /// What the volume is labelled with, should it not be there.
    pub(crate) labels: Labels,
}

impl VolumeMount {
    /// As the daemon wants it. Nothing of the image is copied into it.
    pub(crate) fn mount(self) -> Mount {
        Mount {
            typ: Some(MountType::VOLUME),
            source: Some(self.volume),
            target: Some(self.target),
            read_only: Some(self.access == Access::Read),
            volume_options: Some(MountVolumeOptions {
                no_copy: Some(true),
                labels: Some(self.labels),
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}

/// A container that is never started and shows the daemon some volumes.
#[derive(Debug)]
pub(crate) struct Maker {
    /// Its id with the daemon.
    pub(crate) container: String,
    _alive: Alive,
}

/// A name that nothing else has.
pub(crate) fn fresh() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

impl Maker {
    /// Makes one that sees these volumes, which are made if they are not there.
    pub(crate) async fn make(
        engine: &Engine,
        (store, part): (&Store, Part),
        image: &str,
        making: &str,
        volumes: Vec<VolumeMount>,
    ) -> Result<Self, Error> {
        let alive = Alive::new(making);
        let mut labels = store.labels(&engine.owner, part);
        labels.extend(made_here(making));
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            // An image need not have a command, a container must.
            entrypoint: Some(vec!["/never-started".to_owned()]),
            cmd: Some(Vec::new()),
            labels: Some(labels),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(volumes.into_iter().map(VolumeMount::mount).collect()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let name = names::maker(&engine.owner, making);
        match engine.make(&name, body).await? {
            ContainerCreation::Made(container) => Ok(Self { container, _alive: alive }),
            ContainerCreation::Taken => Err(Error::Backend(format!("the name `{name}` is taken"))),
        }
    }

    /// Removes it; the volumes stay.
    pub(crate) async fn remove(self, engine: &Engine) -> Result<(), Error> {
        engine.remove(&self.container).await
    }
}

/// The makings of this process that go on.
fn going_on() -> &'static Mutex<BTreeSet<String>> {
    static GOING_ON: OnceLock<Mutex<BTreeSet<String>>> = OnceLock::new();
    GOING_ON.get_or_init(Mutex::default)
}

/// Says that a making goes on, until it is dropped.
#[derive(Debug)]
struct Alive(Arc<str>);

impl Alive {
    fn new(making: &str) -> Self {
        let mut going_on = going_on().lock().unwrap_or_else(PoisonError::into_inner);
        going_on.insert(making.to_owned());
        Self(making.into())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        let mut going_on = going_on().lock().unwrap_or_else(PoisonError::into_inner);
        going_on.remove(&*self.0);
    }
}

/// This process among all that there ever were on this host: its boot, its PID
/// namespace, its number, when it was started.
fn process() -> &'static str {
    static PROCESS: OnceLock<String> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let pid = std::process::id();
        let started = started(pid).unwrap_or_default();
        format!("{}/{pid}/{started}", host())
    })
}

/// The boot of this host and the PID namespace of this process.
fn host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}/{}", boot.trim(), space.display())
}

/// When a process was started, in the kernel's own unit; see `proc_pid_stat(5)`.
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let fields = &stat[stat.rfind(')')? + 1..];
    fields.split_ascii_whitespace().nth(19).map(str::to_owned)
}

/// Labels of what this process makes for a while, or of what it makes.
pub(crate) fn made_here(making: &str) -> [(String, String); 2] {
    let labels = [(names::MAKING, making), (names::PROCESS, process())];
    labels.map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Whether a container of this kind was left behind.
pub(crate) fn is_left_behind(container: &ContainerSummary) -> bool {
    let label = |name: &str| {
        container.labels.as_ref().and_then(|labels| labels.get(name)).map_or("", String::as_str)
    };
    let made_ms = u64::try_from(container.created.unwrap_or(0)).unwrap_or(0) * 1000;
    let age_ms = now_ms().saturating_sub(made_ms);
    is_left(label(names::PROCESS), label(names::MAKING), age_ms)
}

/// Whether a making was left behind: the process of its label is gone, or is this
/// one and does not make it any more, or can't be looked at and had time enough.
pub(crate) fn is_left(label: &str, making: &str, age_ms: u64) -> bool {
    if label == process() {
        let going_on = going_on().lock().unwrap_or_else(PoisonError::into_inner);
        return !going_on.contains(making);
    }
    let mut parts = label.rsplitn(3, '/');
    let (begun, pid, place) = (parts.next(), parts.next(), parts.next());
    match (begun, pid.and_then(|pid| pid.parse().ok()), place) {
        (Some(begun), Some(pid), Some(place)) if place == host() => {
            started(pid).as_deref() != Some(begun)
        }
        _ => age_ms > limits::MAKER_MS_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_making_is_left_when_its_process_is_gone_or_forgot_it() {
        let making = fresh();
        let alive = Alive::new(&making);
        assert!(!is_left(process(), &making, u64::MAX));
        drop(alive);
        assert!(is_left(process(), &making, 0));
        // Process 1 lives, but was not started then.
        assert!(is_left(&format!("{}/1/never", host()), &making, 0));
        let begun = started(1).unwrap();
        assert!(!is_left(&format!("{}/1/{begun}", host()), &making, u64::MAX));
        // Elsewhere: only time tells.
        assert!(!is_left("another-boot/pid:[1]/1/5", &making, 0));
        assert!(is_left("another-boot/pid:[1]/1/5", &making, u64::MAX));
    }
}
