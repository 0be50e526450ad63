//! How much CPU a sandbox may use, and when it comes after others.
//!
//! Owns the arithmetic, for every backend whose kernel measures CPU out in periods: one
//! sandbox must never make another wait because it wants more than it may have. Reads
//! and writes nothing itself.

use crate::{Spec, limits};

/// CPU that a sandbox may use: so many microseconds of each period of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// In microseconds.
    pub quota_us: u64,
    /// In microseconds. Short: many processes use up a share at once, on all processors,
    /// and whoever else wakes up then waits for them.
    pub period_us: u64,
}

impl Share {
    /// What a sandbox may use of all cores.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        let millis = u64::from(spec.cpu_millis_max).max(1);
        let period_us = (limits::CPU_QUOTA_US_MIN * 1_000)
            .div_ceil(millis)
            .clamp(limits::CPU_PERIOD_US, limits::CPU_PERIOD_US_MAX);
        Self { quota_us: millis * period_us / 1_000, period_us }
    }
}

/// The cores on which sandboxes run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// As the kernel lists them.
    all: String,
    /// Without the first.
    others: String,
    /// How many of the latter there are.
    count: u64,
}

impl Cores {
    /// Those of a list as the kernel writes it (`0-3,5`), if there is one to keep free and
    /// one to leave.
    #[must_use]
    pub fn new(all: &str) -> Option<Self> {
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

    /// Whether a sandbox can do with those that are left when one is kept free.
    #[must_use]
    pub fn fit(&self, spec: &Spec) -> bool {
        u64::from(spec.cpu_millis_max) <= self.count * 1_000
    }

    /// The list and the share of a sandbox for which they fit. One that comes after others
    /// leaves the first alone, which is kept for those that want no more than they may have,
    /// and gets no more than the rest has to give.
    #[must_use]
    pub fn given(&self, spec: &Spec, yields: bool) -> (&str, Share) {
        let share = Share::of(spec);
        if !yields {
            return (&self.all, share);
        }
        let most = self.count * share.period_us * limits::KEPT_CORES_PERCENT / 100;
        (&self.others, Share { quota_us: share.quota_us.min(most), ..share })
    }
}

/// What the kernel counted of a sandbox since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Periods {
    /// Periods in which it ran.
    pub ran: u64,
    /// Those of them in which it was stopped at its limit.
    pub stopped: u64,
}

impl Periods {
    /// Those of a `cpu.stat`, which are named so in both versions of control groups (the
    /// kernel's admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst).
    #[must_use]
    pub fn parse(stat: &str) -> Option<Self> {
        let number = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.trim().parse().ok()
        };
        Some(Self { ran: number("nr_periods")?, stopped: number("nr_throttled")? })
    }
}

/// What a sandbox was seen to want.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    seen: Periods,
    /// Looks for which it still comes after others.
    left: u32,
}

impl Demand {
    /// That of a sandbox which was told to come after others by somebody who is gone.
    #[must_use]
    pub fn yielding() -> Self {
        Self { left: limits::YIELDING_LOOKS, ..Self::default() }
    }

    /// Whether it comes after others.
    #[must_use]
    pub fn yields(self) -> bool {
        self.left > 0
    }

    /// The same after another look: a sandbox that runs into its limit again and again
    /// comes after those that do not, for as long as it does and a while longer, because
    /// who pauses is no better.
    #[must_use]
    pub fn after(self, seen: Periods) -> Self {
        let ran = seen.ran.saturating_sub(self.seen.ran);
        let stopped = seen.stopped.saturating_sub(self.seen.stopped);
        let wants_more = stopped > 0 && stopped * 4 >= ran;
        let left = if wants_more { limits::YIELDING_LOOKS } else { self.left.saturating_sub(1) };
        Self { seen, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_and_what_the_kernel_takes() {
        let share = |cpu_millis_max| {
            let share = Share::of(&Spec { cpu_millis_max, ..Spec::default() });
            (share.quota_us, share.period_us)
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

    #[test]
    fn who_comes_after_others_gets_what_the_rest_can_give() {
        let cores = Cores::new("0-1").unwrap();
        let spec = |cpu_millis_max| Spec { cpu_millis_max, ..Spec::default() };
        assert!(cores.fit(&spec(1_000)) && !cores.fit(&spec(1_001)));
        let given = |millis, yields| {
            let spec = spec(millis);
            let (list, share) = cores.given(&spec, yields);
            (list.to_owned(), share.quota_us)
        };
        assert_eq!(given(1_000, true), ("1".to_owned(), 9_500));
        assert_eq!(given(500, true), ("1".to_owned(), 5_000));
        assert_eq!(given(1_000, false), ("0-1".to_owned(), 10_000));
    }

    #[test]
    fn who_is_stopped_again_and_again_yields_until_it_is_not() {
        let once = Demand::default().after(Periods { ran: 10, stopped: 1 });
        assert!(!once.yields());
        let mut demand = once.after(Periods { ran: 20, stopped: 11 });
        for _ in 0..limits::YIELDING_LOOKS {
            assert!(demand.yields());
            demand = demand.after(Periods { ran: 20, stopped: 11 });
        }
        assert!(!demand.yields());
        assert!(Demand::yielding().yields());
    }

    #[test]
    fn periods_are_those_of_either_version() {
        let periods = |ran, stopped| Some(Periods { ran, stopped });
        let unified = "usage_usec 7\nnr_periods 20\nnr_throttled 11\nthrottled_usec 5\n";
        assert_eq!(Periods::parse(unified), periods(20, 11));
        assert_eq!(
            Periods::parse("nr_periods 3\nnr_throttled 1\nthrottled_time 5\n"),
            periods(3, 1)
        );
        assert_eq!(Periods::parse("usage_usec 7\n"), None);
        assert_eq!(Periods::parse("nonsense"), None);
    }
}
