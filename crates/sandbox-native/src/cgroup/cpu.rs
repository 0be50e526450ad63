//! How much CPU a sandbox may use, and who comes first where it is short.
//!
//! Owns the numbers that the kernel is told. One sandbox must never make another wait
//! because it wants more than it may have.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Spec;

use super::put;
use crate::limits;

/// CPU that a sandbox may use, in microseconds of the period in which it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) quota: u64,
    pub(super) period: u64,
}

impl Share {
    /// The period is short: many processes use up a share at once, on all processors, and
    /// whoever else wakes up then waits for them.
    pub(super) fn of(spec: &Spec) -> Self {
        let millis = u64::from(spec.cpu_millis_max).max(1);
        let period = (limits::CPU_QUOTA_US_MIN * 1_000)
            .div_ceil(millis)
            .clamp(limits::CPU_PERIOD_US, limits::CPU_PERIOD_US_MAX);
        Self { quota: millis * period / 1_000, period }
    }

    /// No more of it than so many cores have to give.
    fn on(self, cores: u64) -> Self {
        let most = cores * self.period * limits::KEPT_CORES_PERCENT / 100;
        Self { quota: self.quota.min(most), ..self }
    }
}

/// How a version says how much CPU a group gets: all that a version differs in here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Version {
    /// `cpu.max`, see the kernel's admin-guide/cgroup-v2.rst.
    Unified,
    /// `cpu.cfs_quota_us`, see the kernel's scheduler/sched-bwc.rst.
    Legacy,
}

impl Version {
    /// Sets the share of a group.
    pub(super) fn limit(self, dir: &Path, Share { quota, period }: Share) -> io::Result<()> {
        match self {
            Self::Unified => put(&dir.join("cpu.max"), &format!("{quota} {period}")),
            Self::Legacy => {
                put(&dir.join("cpu.cfs_period_us"), &period.to_string())?;
                put(&dir.join("cpu.cfs_quota_us"), &quota.to_string())
            }
        }
    }

    /// Gives a group hundredths of the usual weight. What is refused stays as it was: it
    /// was no limit.
    pub(super) fn weigh(self, dir: &Path, percent: u64) -> bool {
        let (file, usual) = match self {
            Self::Unified => ("cpu.weight", 100),
            Self::Legacy => ("cpu.shares", 1_024),
        };
        put(&dir.join(file), &(usual * percent / 100).to_string()).is_ok()
    }
}

/// The cores of the sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cores {
    /// As the kernel lists them: `0-3,5`.
    all: String,
    /// Without the first, which is kept for those that want no more than they may have.
    others: String,
    /// How many of the latter there are.
    count: u64,
}

impl Cores {
    /// Those of a list, if there is one to keep and one to leave.
    pub(super) fn new(all: &str) -> Option<Self> {
        let all = all.trim();
        let (first, rest) = all.split_once(',').unwrap_or((all, ""));
        let mut others = Vec::new();
        if let Some((from, to)) = first.split_once('-') {
            let next = from.parse::<u32>().ok()? + 1;
            others.push(if next.to_string() == to {
                to.to_owned()
            } else {
                format!("{next}-{to}")
            });
        }
        others.extend(rest.split(',').filter(|range| !range.is_empty()).map(str::to_owned));
        let count = others.iter().try_fold(0, |sum, range| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let (from, to) = (from.parse::<u64>().ok()?, to.parse::<u64>().ok()?);
            Some(sum + (to + 1).checked_sub(from)?)
        })?;
        (count > 0).then(|| Self { all: all.to_owned(), others: others.join(","), count })
    }
}

/// What a sandbox was seen to want.
#[derive(Debug)]
pub(super) struct Demand {
    dir: PathBuf,
    version: Version,
    /// Where its cores are said, and which there are.
    cores: Option<(PathBuf, Cores)>,
    /// Periods in which it ran, and those of them in which it was stopped at its limit.
    seen: (u64, u64),
    /// Looks for which it still comes after others.
    yields: u32,
}

impl Demand {
    pub(super) fn new(dir: &Path, version: Version, cores: Option<(PathBuf, Cores)>) -> Self {
        Self { dir: dir.to_owned(), version, cores, seen: (0, 0), yields: 0 }
    }

    /// Lets a sandbox that runs into its limit again and again come after those that do
    /// not, for as long as it does and a while longer: who pauses is no better.
    pub(super) fn look(&mut self, spec: &Spec) {
        let text = fs::read_to_string(self.dir.join("cpu.stat")).unwrap_or_default();
        let Some((periods, stopped)) = stopped(&text) else { return };
        let ran = periods.saturating_sub(self.seen.0);
        let limited = stopped.saturating_sub(self.seen.1);
        self.seen = (periods, stopped);
        let wants_more = limited > 0 && limited * 4 >= ran;
        let left = if wants_more { limits::YIELDING_LOOKS } else { self.yields.saturating_sub(1) };
        if (left > 0) == (self.yields > 0) || self.yield_to_others(left > 0, spec) {
            self.yields = left;
        }
    }

    /// The group in which it can be told its cores, if it can do with those that are left
    /// when one is kept free.
    pub(super) fn cores(&self, spec: &Spec) -> Option<&(PathBuf, Cores)> {
        let fits = |cores: &Cores| u64::from(spec.cpu_millis_max) <= cores.count * 1_000;
        self.cores.as_ref().filter(|(_, cores)| fits(cores))
    }

    /// By weight, and by leaving one core alone: a kernel may let a process that wakes up wait for the next tick (4 ms)
    /// behind one that runs, whatever both weigh, unless a core is free.
    fn yield_to_others(&self, yields: bool, spec: &Spec) -> bool {
        if let Some((dir, cores)) = self.cores(spec) {
            let share = Share::of(spec);
            let (list, share) =
                if yields { (&cores.others, share.on(cores.count)) } else { (&cores.all, share) };
            let _ = put(&dir.join("cpuset.cpus"), list);
            let _ = self.version.limit(&self.dir, share);
        }
        let percent = if yields { limits::YIELDING_WEIGHT_PERCENT } else { 100 };
        self.version.weigh(&self.dir, percent)
    }
}

/// Both numbers of a `cpu.stat`, which are named so in both versions.
fn stopped(text: &str) -> Option<(u64, u64)> {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.trim().parse().ok()
    };
    Some((number("nr_periods")?, number("nr_throttled")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_and_what_the_kernel_takes() {
        let share = |cpu_millis_max| {
            let Share { quota, period } = Share::of(&Spec { cpu_millis_max, ..Spec::default() });
            (quota, period)
        };
        assert_eq!(share(1_000), (10_000, 10_000));
        assert_eq!(share(2_500), (25_000, 10_000));
        assert_eq!(share(100), (1_000, 10_000));
        assert_eq!(share(50), (1_000, 20_000));
        assert_eq!(share(1), (1_000, 1_000_000));
        assert!((0..2_000).map(share).all(|(quota, period)| quota >= 1_000 && period <= 1_000_000));
    }

    #[test]
    fn one_core_is_kept_where_there_are_more() {
        let cores = |all| Cores::new(all).map(|cores| (cores.others, cores.count));
        for (all, others, count) in [
            ("0-1\n", "1", 1),
            ("0-3", "1-3", 3),
            ("2,4-5", "4-5", 2),
            ("0-7,16-17", "1-7,16-17", 9),
        ] {
            assert_eq!(cores(all), Some((others.to_owned(), count)), "{all}");
        }
        for one in ["0", "", "x", "0-x", "3-1,7-2"] {
            assert_eq!(cores(one), None, "{one}");
        }
    }

    /// A group's files, to see what is written to them.
    struct Files {
        dir: tempfile::TempDir,
        demand: Demand,
        spec: Spec,
    }

    impl Files {
        fn new(cores: &str, cpu_millis_max: u32) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let cores = Cores::new(cores).map(|cores| (dir.path().to_owned(), cores));
            let demand = Demand::new(dir.path(), Version::Legacy, cores);
            Self { dir, demand, spec: Spec { cpu_millis_max, ..Spec::default() } }
        }

        /// Weight, cores and quota that a look writes.
        fn look(&mut self, stat: &str) -> [String; 3] {
            let files = ["cpu.shares", "cpuset.cpus", "cpu.cfs_quota_us"];
            for file in files.iter().chain(&["cpu.cfs_period_us"]) {
                fs::write(self.dir.path().join(file), "").unwrap();
            }
            fs::write(self.dir.path().join("cpu.stat"), stat).unwrap();
            self.demand.look(&self.spec);
            files.map(|file| fs::read_to_string(self.dir.path().join(file)).unwrap())
        }
    }

    #[test]
    fn who_is_stopped_again_and_again_yields_until_it_is_not() {
        let mut files = Files::new("0-1", 1_000);
        assert_eq!(files.look("nr_periods 10\nnr_throttled 1\nthrottled_time 5\n"), [""; 3]);
        let yields = ["122", "1", "9500"];
        assert_eq!(files.look("usage_usec 7\nnr_periods 20\nnr_throttled 11\n"), yields);
        assert_eq!(files.look("nr_periods 30\nnr_throttled 21\n"), [""; 3]);
        for _ in 1..limits::YIELDING_LOOKS {
            assert_eq!(files.look("nr_periods 30\nnr_throttled 21\n"), [""; 3]);
        }
        let calm = ["1024", "0-1", "10000"];
        assert_eq!(files.look("nr_periods 30\nnr_throttled 21\n"), calm);
        assert_eq!(files.look("nonsense"), [""; 3]);
    }

    #[test]
    fn who_may_have_all_cores_keeps_them() {
        for (cores, millis, seen) in [
            ("0-1", 1_500, ["122", "", ""]),
            ("0", 1_000, ["122", "", ""]),
            ("0-3", 500, ["122", "1-3", "5000"]),
        ] {
            let mut files = Files::new(cores, millis);
            assert_eq!(files.look("nr_periods 20\nnr_throttled 11\n"), seen, "{cores} {millis}");
        }
    }
}
