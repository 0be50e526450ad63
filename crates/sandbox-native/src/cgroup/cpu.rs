//! How much CPU a sandbox may use, and who comes first where it is short.
//!
//! Owns the numbers that the kernel is told. One sandbox must never make another wait
//! because it wants more than it may have.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Spec;

use super::put;
use crate::limits;

/// How a version has weights: the file, and the number that a group has by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    file: &'static str,
    usual: u64,
}

/// See the kernel's admin-guide/cgroup-v2.rst.
pub(super) const UNIFIED: Weights = Weights { file: "cpu.weight", usual: 100 };
/// See the kernel's scheduler/sched-design-CFS.rst.
pub(super) const LEGACY: Weights = Weights { file: "cpu.shares", usual: 1_024 };

impl Weights {
    /// Gives a group hundredths of the usual weight. What is refused stays as it was: it
    /// was no limit.
    pub(super) fn give(self, dir: &Path, percent: u64) -> bool {
        put(&dir.join(self.file), &(self.usual * percent / 100).to_string()).is_ok()
    }
}

/// Microseconds of CPU, and of the period in which they may be used. It is short: many
/// processes use up a share at once, on all processors, and whoever else wakes up then
/// waits for them.
pub(super) fn share(spec: &Spec) -> (u64, u64) {
    let millis = u64::from(spec.cpu_millis_max).max(1);
    let period = (limits::CPU_QUOTA_US_MIN * 1_000)
        .div_ceil(millis)
        .clamp(limits::CPU_PERIOD_US, limits::CPU_PERIOD_US_MAX);
    (millis * period / 1_000, period)
}

/// What a sandbox was seen to want.
#[derive(Debug)]
pub(super) struct Demand {
    dir: PathBuf,
    weights: Weights,
    /// Periods in which it ran, and those of them in which it was stopped at its limit.
    seen: (u64, u64),
    /// Looks for which it still comes after others.
    yields: u32,
}

impl Demand {
    pub(super) fn new(dir: &Path, weights: Weights) -> Self {
        Self { dir: dir.to_owned(), weights, seen: (0, 0), yields: 0 }
    }

    /// Lets a sandbox that runs into its limit again and again come after those that do
    /// not, for as long as it does and a while longer: who pauses is no better.
    pub(super) fn look(&mut self) {
        let text = fs::read_to_string(self.dir.join("cpu.stat")).unwrap_or_default();
        let Some((periods, stopped)) = stopped(&text) else { return };
        let ran = periods.saturating_sub(self.seen.0);
        let limited = stopped.saturating_sub(self.seen.1);
        self.seen = (periods, stopped);
        let wants_more = limited > 0 && limited * 4 >= ran;
        let left = if wants_more { limits::YIELDING_LOOKS } else { self.yields.saturating_sub(1) };
        let percent = if left > 0 { limits::YIELDING_WEIGHT_PERCENT } else { 100 };
        if (left > 0) == (self.yields > 0) || self.weights.give(&self.dir, percent) {
            self.yields = left;
        }
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
        let share = |cpu_millis_max| share(&Spec { cpu_millis_max, ..Spec::default() });
        assert_eq!(share(1_000), (10_000, 10_000));
        assert_eq!(share(2_500), (25_000, 10_000));
        assert_eq!(share(100), (1_000, 10_000));
        assert_eq!(share(50), (1_000, 20_000));
        assert_eq!(share(1), (1_000, 1_000_000));
        assert!((0..2_000).map(share).all(|(quota, period)| quota >= 1_000 && period <= 1_000_000));
    }

    #[test]
    fn who_is_stopped_again_and_again_yields_until_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut demand = Demand::new(dir.path(), LEGACY);
        let mut look = |stat: &str| {
            fs::write(dir.path().join("cpu.stat"), stat).unwrap();
            fs::write(dir.path().join("cpu.shares"), "").unwrap();
            demand.look();
            fs::read_to_string(dir.path().join("cpu.shares")).unwrap()
        };
        assert_eq!(look("nr_periods 10\nnr_throttled 1\nthrottled_time 5\n"), "");
        assert_eq!(look("usage_usec 7\nnr_periods 20\nnr_throttled 11\n"), "122");
        assert_eq!(look("nr_periods 30\nnr_throttled 21\n"), "");
        for _ in 1..limits::YIELDING_LOOKS {
            assert_eq!(look("nr_periods 30\nnr_throttled 21\n"), "");
        }
        assert_eq!(look("nr_periods 30\nnr_throttled 21\n"), "1024");
        assert_eq!(look("nonsense"), "");
    }
}
