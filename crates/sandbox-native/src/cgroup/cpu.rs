//! What the kernel is told of the CPU of a sandbox, and of who comes first where it is short.
//!
//! Owns the files in which it is said. What is said is [`outrigger_sandbox::cpu`]'s.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Spec;
use outrigger_sandbox::cpu::{self, COUNTERS, Cores, Counter, Priority, Share};

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

    /// The file in which it counts.
    pub(super) fn file(self, counter: &Counter) -> &'static str {
        match self {
            Self::Unified => counter.unified,
            Self::Legacy => counter.legacy,
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
    /// Where the kernel counts.
    counters: [Option<PathBuf>; COUNTERS.len()],
    seen: cpu::Demand,
}

impl Demand {
    pub(super) fn new(
        dir: &Path,
        version: Version,
        cores: Option<(PathBuf, Cores)>,
        counters: [Option<PathBuf>; COUNTERS.len()],
    ) -> Self {
        Self { dir: dir.to_owned(), version, cores, counters, seen: cpu::Demand::fresh() }
    }

    /// Gives a sandbox that runs into its limits again and again a lower priority than
    /// those that do not. What the kernel refuses is tried again at the next look. Gives
    /// what it wants, if that is counted.
    pub(super) fn look(&mut self, spec: &Spec) -> Option<cpu::Demand> {
        let text = |number: usize| fs::read_to_string(self.counters.get(number)?.as_ref()?).ok();
        let seen = self.seen.look(text)?;
        let priority = seen.priority();
        if priority == self.seen.priority() || self.prioritize(priority, spec) {
            self.seen = seen;
        }
        Some(seen)
    }

    /// Gives it what follows from what was seen of its last life.
    pub(super) fn resume(&mut self, seen: cpu::Demand, spec: &Spec) {
        if self.prioritize(seen.priority(), spec) {
            self.seen = seen;
        }
    }

    /// The group in which it can be told its cores, if it can do with those that are left
    /// when one is kept free.
    pub(super) fn cores(&self, spec: &Spec) -> Option<&(PathBuf, Cores)> {
        self.cores.as_ref().filter(|(_, cores)| cores.fit(spec))
    }

    /// By weight, by its share, and by leaving one core alone: a kernel may let a process
    /// that wakes up wait for the next tick (4 ms) behind one that runs, whatever both
    /// weigh, unless a core is free.
    fn prioritize(&self, priority: Priority, spec: &Spec) -> bool {
        let cores = self.cores.as_ref();
        let (list, share) = cpu::given(cores.map(|(_, cores)| cores), spec, priority);
        if let Some((list, (dir, _))) = list.zip(cores) {
            let _ = put(&dir.join("cpuset.cpus"), list);
        }
        let limited = self.version.limit(&self.dir, share).is_ok();
        self.version.weigh(&self.dir, priority.weight_percent()) && limited
    }
}

#[cfg(test)]
mod tests {
    use outrigger_sandbox::limits;

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
            let version = Version::Legacy;
            let counters = COUNTERS.each_ref().map(|counter| version.file(counter));
            let counters = counters.map(|file| Some(dir.path().join(file)));
            let demand = Demand::new(dir.path(), version, cores, counters);
            Self { dir, demand, spec: Spec { cpu_millis_max, ..Spec::default() } }
        }

        fn write(&self, file: &str, text: &str) {
            fs::write(self.dir.path().join(file), text).unwrap();
        }

        /// Weight, cores and quota that a look writes which finds so many periods, ended
        /// so, so many processes killed, and so many MiB dirty.
        fn look(&mut self, (ran, stopped): (u64, u64), (killed, dirty): (u64, u64)) -> [String; 3] {
            let files = ["cpu.shares", "cpuset.cpus", "cpu.cfs_quota_us"];
            files.iter().chain(&["cpu.cfs_period_us"]).for_each(|file| self.write(file, ""));
            self.write("cpu.stat", &format!("nr_periods {ran}\nnr_throttled {stopped}\n"));
            self.write("memory.oom_control", &format!("under_oom 0\noom_kill {killed}\n"));
            self.write("memory.stat", &format!("cache 0\ntotal_dirty {}\n", dirty << 20));
            self.demand.look(&self.spec);
            files.map(|file| fs::read_to_string(self.dir.path().join(file)).unwrap())
        }
    }

    #[test]
    fn what_is_said_once_is_said_again_when_it_changes() {
        let mut files = Files::new("0-1", 1_000);
        assert_eq!(files.look((10, 1), (0, 0)), [""; 3]);
        assert_eq!(files.look((20, 11), (0, 0)), ["122", "1", "9500"]);
        for _ in 1..limits::LOW_LOOKS {
            assert_eq!(files.look((30, 11), (0, 0)), [""; 3]);
        }
        assert_eq!(files.look((30, 11), (0, 0)), ["1024", "0-1", "10000"]);
    }

    #[test]
    fn whose_process_is_killed_gets_hardly_anything() {
        let mut files = Files::new("0-1", 1_000);
        assert_eq!(files.look((10, 0), (2, 50)), ["61", "1", "1000"]);
        for _ in 1..limits::LOWEST_LOOKS {
            assert_eq!(files.look((10, 0), (2, 50)), [""; 3]);
        }
        assert_eq!(files.look((10, 0), (2, 50)), ["1024", "0-1", "10000"]);
    }

    #[test]
    fn who_may_have_all_cores_keeps_them() {
        for (cores, millis, seen) in [
            ("0-1", 1_500, ["122", "", "15000"]),
            ("0", 1_000, ["122", "", "10000"]),
            ("0-3", 500, ["122", "1-3", "5000"]),
        ] {
            let mut files = Files::new(cores, millis);
            assert_eq!(files.look((20, 11), (0, 0)), seen, "{cores} {millis}");
        }
    }
}
