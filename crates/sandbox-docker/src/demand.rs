//! Who comes first where CPU is short.
//!
//! Owns the looks at what the kernel counted of containers on this host, and what the
//! daemon is told when one of them wants more than it may have. The kernel is asked
//! itself, because a daemon takes a second for each answer of this kind; where its
//! containers are another kernel's, nobody is asked.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bollard::models::{ContainerInspectResponse, ContainerUpdateBody, SystemInfo};
use outrigger_sandbox::cpu::{
    COUNTERS, Cores, Counter, Counts, Demand, LastLives, Priority, given,
};
use outrigger_sandbox::limits::DEMAND_LOOK_MS;
use outrigger_sandbox::{Began, Error, SandboxId, Spec};

use crate::backend::{Inner, locked};
use crate::container::signed;
use crate::limits;
use crate::live;
use crate::names;
use crate::sandbox::Gate;

/// The weight of a container in shares, as daemons give it where they are told none.
const SHARES: i64 = 1_024;
/// The cores of this host that are in use, see the kernel's admin-guide/cputopology.rst.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Where control groups are, by a convention that systemd and daemons keep.
const GROUPS: &str = "/sys/fs/cgroup";

/// The cores of a daemon's containers, where it can tell a container which.
pub(crate) fn cores(info: &SystemInfo) -> Option<Cores> {
    let told = info.cpu_set == Some(true);
    Cores::new(&fs::read_to_string(ONLINE).ok()?).filter(|_| told)
}

/// A container that is looked at.
#[derive(Debug)]
struct Watched {
    id: SandboxId,
    began: Began,
    files: Files,
    spec: Spec,
    demand: Demand,
}

/// All that were looked at, by the daemon's ids: `None` is one that can't be.
type Known = HashMap<String, Option<Watched>>;

/// Looks for as long as the backend is there.
#[expect(
    clippy::disallowed_methods,
    reason = "a backend stands below the engine and its registry of tasks; this one ends with its backend"
)]
pub(crate) fn start(inner: &Arc<Inner>) {
    tokio::spawn(watch(Arc::downgrade(inner)));
}

async fn watch(inner: Weak<Inner>) {
    let (mut known, mut lives) = (Known::new(), LastLives::default());
    loop {
        tokio::time::sleep(Duration::from_millis(DEMAND_LOOK_MS)).await;
        let Some(inner) = inner.upgrade() else { return };
        let gates: Vec<(SandboxId, Arc<Gate>)> = locked(&inner.used)
            .iter()
            .map(|(id, used)| (id.clone(), used.gate()))
            .filter(|(_, gate)| gate.goes())
            .collect();
        known.retain(|container, watched| {
            let goes = gates.iter().any(|(_, gate)| gate.container() == container);
            if let (false, Some(watched)) = (goes, watched) {
                lives.ended(&watched.id, watched.demand);
            }
            goes
        });
        for (id, gate) in gates {
            let container = gate.container();
            if !known.contains_key(container) {
                // A daemon that does not answer now is asked again.
                let Ok(found) = inner.engine.container(container).await else { continue };
                let mut watched = found.and_then(|found| watched(id, container, found));
                if let Some(watched) = &mut watched {
                    inner.begin(container, watched, &mut lives).await;
                }
                known.insert(container.to_owned(), watched);
            }
            let Some(Some(watched)) = known.get_mut(container) else { continue };
            if let Ok(false) = inner.look(container, watched).await {
                lives.ended(&watched.id, watched.demand);
                known.insert(container.to_owned(), None);
            }
        }
    }
}

impl Inner {
    /// Has one that nobody told anything yet begin as its last life ended.
    async fn begin(&self, container: &str, watched: &mut Watched, lives: &mut LastLives) {
        if watched.began == Began::Made {
            lives.forget(&watched.id);
        } else if watched.demand.priority() == Priority::Usual
            && let Some(wanted) = lives.begins(&watched.id)
        {
            // What the daemon refuses is no reason not to look at it.
            let _ = self.give(container, watched, wanted).await;
        }
    }

    /// Another look at a container. Whether it makes sense to look once more.
    async fn look(&self, container: &str, watched: &mut Watched) -> Result<bool, Error> {
        let looked = watched.demand.look(|number| watched.files.text(number));
        let Some(demand) = looked else { return Ok(false) };
        self.give(container, watched, demand).await
    }

    /// Gives a container what follows from what it wants. Whether the daemon does that.
    async fn give(
        &self,
        container: &str,
        watched: &mut Watched,
        demand: Demand,
    ) -> Result<bool, Error> {
        if demand.priority() != watched.demand.priority() {
            let told = told(&watched.spec, self.cores.as_ref(), demand.priority());
            if !self.engine.update(container, told).await? {
                return Ok(false);
            }
        }
        watched.demand = demand;
        Ok(true)
    }
}

/// The weight of a priority.
fn shares(priority: Priority) -> i64 {
    SHARES * priority.weight_percent().cast_signed() / 100
}

/// What a daemon is told of a container's priority: by weight, by its share, and by leaving
/// one core alone where what it may have fits on the others.
fn told(spec: &Spec, cores: Option<&Cores>, priority: Priority) -> ContainerUpdateBody {
    let (list, share) = given(cores, spec, priority);
    ContainerUpdateBody {
        cpu_shares: Some(shares(priority)),
        cpuset_cpus: list.map(str::to_owned),
        cpu_period: Some(signed(share.period_us)),
        cpu_quota: Some(signed(share.quota_us)),
        ..Default::default()
    }
}

/// A container to look at, if this host's kernel runs it.
fn watched(id: SandboxId, container: &str, found: ContainerInspectResponse) -> Option<Watched> {
    let pid = found.state?.pid?;
    let labels = found.config?.labels?;
    // Whoever gave it another may be gone.
    let weight = found.host_config?.cpu_shares;
    let given = Priority::ALL.into_iter().find(|priority| weight == Some(shares(*priority)));
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    Some(Watched {
        id,
        began: live::said(&labels, names::BEGAN)?,
        files: Files::open(container, &groups)?,
        spec: live::said(&labels, names::SPEC)?,
        demand: Demand::known(given.unwrap_or_default()),
    })
}

/// Where the kernel counts what a container wants.
#[derive(Debug)]
struct Files([Option<File>; COUNTERS.len()]);

impl Files {
    /// Those of a container with a process in these groups (cgroups(7)), if the kernel
    /// measures CPU out to it.
    fn open(container: &str, groups: &str) -> Option<Self> {
        let opened =
            |counter| places(container, groups, counter).find_map(|path| File::open(path).ok());
        let files = Self(COUNTERS.each_ref().map(opened));
        Counts::read(None, |number| files.text(number)).map(|_| files)
    }

    /// All of one.
    fn text(&self, number: usize) -> Option<String> {
        let mut text = [0; limits::STAT_BYTES_MAX];
        let read = self.0.get(number)?.as_ref()?.read_at(&mut text, 0).ok()?;
        Some(str::from_utf8(text.get(..read)?).ok()?.to_owned())
    }
}

/// Where a counter may be of a process with these groups, which are those of this container:
/// a daemon that counts processes otherwise than this host means another one.
fn places(container: &str, groups: &str, counter: &Counter) -> impl Iterator<Item = String> {
    groups.lines().filter_map(move |line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (tree, file) = match controllers {
            "" => ("", counter.unified),
            _ => ("/", counter.legacy),
        };
        let counts =
            controllers.is_empty() || controllers.split(',').any(|name| name == counter.controller);
        let ours = path.starts_with('/') && path.contains(container) && !path.contains("/..");
        (counts && ours).then(|| format!("{GROUPS}{tree}{controllers}{path}/{file}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_found_in_either_version() {
        let found = |groups: &str| {
            let places = |counter| places("c0ffee", groups, counter);
            COUNTERS.iter().flat_map(places).collect::<Vec<_>>()
        };
        let legacy = "4:memory:/docker/c0ffee\n2:cpu,cpuacct:/docker/c0ffee\n\
                      1:name=systemd:/docker/c0ffee\n";
        assert_eq!(
            found(legacy),
            [
                "/sys/fs/cgroup/cpu,cpuacct/docker/c0ffee/cpu.stat",
                "/sys/fs/cgroup/memory/docker/c0ffee/memory.oom_control",
                "/sys/fs/cgroup/memory/docker/c0ffee/memory.stat",
            ]
        );
        let unified = ["cpu.stat", "memory.events", "memory.stat"]
            .map(|file| format!("/sys/fs/cgroup/system.slice/docker-c0ffee.scope/{file}"));
        assert_eq!(found("0::/system.slice/docker-c0ffee.scope\n"), unified);
        for other in ["0::/", "0::/user.slice", "0::/../c0ffee", "2:cpuset:/c0ffee", "nonsense"] {
            assert_eq!(found(other), [""; 0], "{other}");
        }
    }

    #[test]
    fn who_comes_after_others_is_told_by_weight_cores_and_share() {
        let cores = Cores::new("0-1");
        let said = |cpu_millis_max, priority| {
            let spec = Spec { cpu_millis_max, ..Spec::default() };
            let told = told(&spec, cores.as_ref(), priority);
            (told.cpu_shares.unwrap(), told.cpuset_cpus, told.cpu_quota.unwrap())
        };
        let [usual, low, lowest] = Priority::ALL;
        assert_eq!(said(1_000, usual), (1_024, Some("0-1".to_owned()), 10_000));
        assert_eq!(said(1_000, low), (122, Some("1".to_owned()), 9_500));
        assert_eq!(said(1_000, lowest), (61, Some("1".to_owned()), 1_000));
        assert_eq!(said(2_000, low), (122, None, 20_000));
    }
}
