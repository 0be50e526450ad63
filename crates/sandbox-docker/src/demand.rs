//! Who comes first where CPU is short.
//!
//! Owns the looks at what the kernel counted of containers on this host, and what the
//! daemon is told when one of them wants more than it may have: what it may have stays,
//! but it gives way. The kernel is asked itself, because a daemon takes a second for each
//! answer of this kind; where its containers are another kernel's, nobody is asked.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bollard::models::{ContainerInspectResponse, ContainerUpdateBody, SystemInfo};
use outrigger_sandbox::cpu::{Cores, Demand, Periods, Share};
use outrigger_sandbox::{Error, Spec};

use crate::backend::{Inner, locked};
use crate::container::signed;
use crate::limits;
use crate::live;
use crate::names;
use crate::sandbox::Gate;

/// The weight of a container in shares, as daemons give it where they are told none.
const SHARES: i64 = 1_024;
/// The weight of one that comes after others.
const YIELDING_SHARES: i64 =
    SHARES * outrigger_sandbox::limits::YIELDING_WEIGHT_PERCENT.cast_signed() / 100;
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
    stat: File,
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
    let mut known = Known::new();
    loop {
        tokio::time::sleep(Duration::from_millis(limits::DEMAND_LOOK_MS)).await;
        let Some(inner) = inner.upgrade() else { return };
        let gates: Vec<Arc<Gate>> = locked(&inner.used)
            .values()
            .map(|used| used.gate())
            .filter(|gate| gate.goes())
            .collect();
        known.retain(|container, _| gates.iter().any(|gate| gate.container() == container));
        for gate in gates {
            let container = gate.container();
            if !known.contains_key(container) {
                // A daemon that does not answer now is asked again.
                let Ok(found) = inner.engine.container(container).await else { continue };
                let watched = found.and_then(|found| watched(container, found));
                known.insert(container.to_owned(), watched);
            }
            let Some(Some(watched)) = known.get_mut(container) else { continue };
            if let Ok(false) = inner.look(container, watched).await {
                known.insert(container.to_owned(), None);
            }
        }
    }
}

impl Inner {
    /// Another look at a container. Whether it makes sense to look once more.
    async fn look(&self, container: &str, watched: &mut Watched) -> Result<bool, Error> {
        let Some(periods) = periods(&watched.stat) else { return Ok(false) };
        let demand = watched.demand.after(periods);
        if demand.yields() != watched.demand.yields() {
            let told = told(&watched.spec, self.cores.as_ref(), demand.yields());
            if !self.engine.update(container, told).await? {
                return Ok(false);
            }
        }
        watched.demand = demand;
        Ok(true)
    }
}

/// What a daemon is told of a container that comes after others, or does not any more: by
/// weight, and by leaving one core alone where what it may have fits on the others.
fn told(spec: &Spec, cores: Option<&Cores>, yields: bool) -> ContainerUpdateBody {
    let fitting = cores.filter(|cores| cores.fit(spec));
    let (list, share) = fitting.map(|cores| cores.given(spec, yields)).unzip();
    let share = share.unwrap_or_else(|| Share::of(spec));
    ContainerUpdateBody {
        cpu_shares: Some(if yields { YIELDING_SHARES } else { SHARES }),
        cpuset_cpus: list.map(str::to_owned),
        cpu_period: Some(signed(share.period_us)),
        cpu_quota: Some(signed(share.quota_us)),
        ..Default::default()
    }
}

/// A container to look at, if this host's kernel runs it.
fn watched(container: &str, found: ContainerInspectResponse) -> Option<Watched> {
    let pid = found.state?.pid?;
    let labels = found.config?.labels?;
    // Whoever told it to give way may be gone.
    let yields = found.host_config?.cpu_shares == Some(YIELDING_SHARES);
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    Some(Watched {
        stat: places(container, &groups).find_map(counted)?,
        spec: live::said(&labels, names::SPEC)?,
        demand: if yields { Demand::yielding() } else { Demand::default() },
    })
}

/// Where the kernel may count the CPU of a process with these groups (cgroups(7)), which are
/// those of this container: a daemon that counts processes otherwise than this host means
/// another one.
fn places(container: &str, groups: &str) -> impl Iterator<Item = String> {
    groups.lines().filter_map(move |line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let counts = controllers.is_empty() || controllers.split(',').any(|name| name == "cpu");
        let ours = path.starts_with('/') && path.contains(container) && !path.contains("/..");
        let tree = if controllers.is_empty() { "" } else { "/" };
        (counts && ours).then(|| format!("{GROUPS}{tree}{controllers}{path}/cpu.stat"))
    })
}

/// Such a file, if it is one.
fn counted(path: String) -> Option<File> {
    let stat = File::open(path).ok()?;
    periods(&stat).map(|_| stat)
}

fn periods(stat: &File) -> Option<Periods> {
    let mut text = [0; limits::STAT_BYTES_MAX];
    let read = stat.read_at(&mut text, 0).ok()?;
    Periods::parse(str::from_utf8(text.get(..read)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_in_either_version() {
        let found = |groups: &str| places("c0ffee", groups).collect::<Vec<_>>();
        let hybrid = "4:memory:/docker/c0ffee\n2:cpu,cpuacct:/docker/c0ffee\n\
                      1:name=systemd:/docker/c0ffee\n0::/docker/c0ffee\n";
        assert_eq!(
            found(hybrid),
            [
                "/sys/fs/cgroup/cpu,cpuacct/docker/c0ffee/cpu.stat",
                "/sys/fs/cgroup/docker/c0ffee/cpu.stat"
            ]
        );
        let unified = "0::/system.slice/docker-c0ffee.scope\n";
        let path = "/sys/fs/cgroup/system.slice/docker-c0ffee.scope/cpu.stat";
        assert_eq!(found(unified), [path]);
        for other in ["0::/", "0::/user.slice", "0::/../c0ffee", "2:cpuset:/c0ffee", "nonsense"] {
            assert_eq!(found(other), [""; 0], "{other}");
        }
    }

    #[test]
    fn who_comes_after_others_keeps_what_it_may_have() {
        let cores = Cores::new("0-1");
        let said = |cpu_millis_max, yields| {
            let spec = Spec { cpu_millis_max, ..Spec::default() };
            let told = told(&spec, cores.as_ref(), yields);
            (told.cpu_shares.unwrap(), told.cpuset_cpus, told.cpu_quota.unwrap())
        };
        assert_eq!(said(1_000, true), (122, Some("1".to_owned()), 9_500));
        assert_eq!(said(1_000, false), (1_024, Some("0-1".to_owned()), 10_000));
        assert_eq!(said(2_000, true), (122, None, 20_000));
    }
}
