//! What the kernel is told of the CPU of a sandbox, and of who comes first where it is short.
//!
//! Owns the files in which it is said. What is said is [`outrigger_sandbox::cpu`]'s.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Spec;
use outrigger_sandbox::cpu::{Cores, Periods, Share};
use outrigger_sandbox::{cpu, limits};

use super::put;

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
    pub(super) fn limit(self, dir: &Path, share: Share) -> io::Result<()> {
        let Share { quota_us, period_us } = share;
        match self {
            Self::Unified => put(&dir.join("cpu.max"), &format!("{quota_us} {period_us}")),
            Self::Legacy => {
                put(&dir.join("cpu.cfs_period_us"), &period_us.to_string())?;
                put(&dir.join("cpu.cfs_quota_us"), &quota_us.to_string())
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

/// What a sandbox was seen to want.
#[derive(Debug)]
pub(super) struct Demand {
    dir: PathBuf,
    version: Version,
    /// Where its cores are said, and which there are.
    cores: Option<(PathBuf, Cores)>,
    seen: cpu::Demand,
}

impl Demand {
    pub(super) fn new(dir: &Path, version: Version, cores: Option<(PathBuf, Cores)>) -> Self {
        Self { dir: dir.to_owned(), version, cores, seen: cpu::Demand::default() }
    }

    /// Lets a sandbox that runs into its limit again and again come after those that do
    /// not. What the kernel refuses is tried again at the next look.
    pub(super) fn look(&mut self, spec: &Spec) {
        let stat = fs::read_to_string(self.dir.join("cpu.stat")).unwrap_or_default();
        let Some(periods) = Periods::parse(&stat) else { return };
        let seen = self.seen.after(periods);
        if seen.yields() == self.seen.yields() || self.yield_to_others(seen.yields(), spec) {
            self.seen = seen;
        }
    }

    /// The group in which it can be told its cores, if it can do with those that are left
    /// when one is kept free.
    pub(super) fn cores(&self, spec: &Spec) -> Option<&(PathBuf, Cores)> {
        self.cores.as_ref().filter(|(_, cores)| cores.fit(spec))
    }

    /// By weight, and by leaving one core alone: a kernel may let a process that wakes up
    /// wait for the next tick (4 ms) behind one that runs, whatever both weigh, unless a
    /// core is free.
    fn yield_to_others(&self, yields: bool, spec: &Spec) -> bool {
        if let Some((dir, cores)) = self.cores(spec) {
            let (list, share) = cores.given(spec, yields);
            let _ = put(&dir.join("cpuset.cpus"), list);
            let _ = self.version.limit(&self.dir, share);
        }
        let percent = if yields { limits::YIELDING_WEIGHT_PERCENT } else { 100 };
        self.version.weigh(&self.dir, percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_said_once_is_said_again_when_it_changes() {
        let mut files = Files::new("0-1", 1_000);
        assert_eq!(files.look("nr_periods 10\nnr_throttled 1\nthrottled_time 5\n"), [""; 3]);
        let yields = ["122", "1", "9500"];
        assert_eq!(files.look("usage_usec 7\nnr_periods 20\nnr_throttled 11\n"), yields);
        for _ in 1..limits::YIELDING_LOOKS {
            assert_eq!(files.look("nr_periods 30\nnr_throttled 11\n"), [""; 3]);
        }
        let calm = ["1024", "0-1", "10000"];
        assert_eq!(files.look("nr_periods 30\nnr_throttled 11\n"), calm);
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
