//! How much CPU a sandbox may use, and when it comes after others.
//!
//! Owns the arithmetic, for every backend whose kernel measures CPU out in periods: one
//! sandbox must never make another wait because it wants more than it may have, of CPU or
//! of what costs others more: before a process is killed for want of memory the kernel
//! writes the sandbox's dirty files to the disk, and everybody else's writes wait for that.
//! CPU is what all of that takes, and what every kernel can measure out. Reads and writes
//! nothing itself.

mod last_lives;

pub use self::last_lives::LastLives;
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
        Self::of_millis(spec.cpu_millis_max)
    }

    fn of_millis(millis: u32) -> Self {
        let millis = u64::from(millis).max(1);
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
}

/// The cores that a sandbox is told, where it can be told any and does with those that are
/// left when one is kept free, and its share of all. One that comes after others leaves the
/// first core alone, which is kept for those that want no more than they may have, and gets
/// no more than the rest has to give.
#[must_use]
pub fn given<'a>(
    cores: Option<&'a Cores>,
    spec: &Spec,
    priority: Priority,
) -> (Option<&'a str>, Share) {
    let share = Share::of(spec);
    let cores = cores.filter(|cores| cores.fit(spec));
    let others = cores.map(|cores| cores.others.as_str());
    match priority {
        Priority::Usual => (cores.map(|cores| cores.all.as_str()), share),
        Priority::Low => {
            let rest = cores.map(|cores| cores.count * share.period_us);
            let most = rest.map_or(u64::MAX, |rest| rest * limits::LOW_CORES_PERCENT / 100);
            (others, Share { quota_us: share.quota_us.min(most), ..share })
        }
        Priority::Lowest => {
            (others, Share::of_millis(spec.cpu_millis_max.min(limits::LOWEST_CPU_MILLIS)))
        }
    }
}

/// Who comes first where CPU is short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// That of a sandbox which wants no more than it may have.
    #[default]
    Usual,
    /// That of one which is stopped at its share again and again, as work of many
    /// processes is.
    Low,
    /// That of one which has a process killed for want of memory while it writes much, which
    /// it may repeat at once.
    Lowest,
}

impl Priority {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Usual, Self::Low, Self::Lowest];

    /// The weight where CPU is short, in hundredths of the usual one.
    #[must_use]
    pub fn weight_percent(self) -> u64 {
        match self {
            Self::Usual => 100,
            Self::Low => limits::LOW_WEIGHT_PERCENT,
            Self::Lowest => limits::LOWEST_WEIGHT_PERCENT,
        }
    }
}

/// What the kernel counted of a sandbox since it began, and what it holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Periods in which it ran.
    pub ran: u64,
    /// Those of them in which it was stopped at its share.
    pub stopped: u64,
    /// Processes that were killed for want of memory.
    pub killed: u64,
    /// Bytes of files that it wrote and the disk does not have yet.
    pub dirty_bytes: u64,
}

impl Counts {
    /// Those of the files of [`COUNTERS`], which are read by their place there. Without the
    /// first there are no counts; the others are read of those alone that ran since others
    /// were seen, because most sandboxes rest.
    pub fn read(seen: Option<Self>, text: impl Fn(usize) -> Option<String>) -> Option<Self> {
        let cpu = text(0)?;
        let (ran, stopped) = (count(&cpu, "nr_periods")?, count(&cpu, "nr_throttled")?);
        if let Some(seen) = seen.filter(|seen| seen.ran == ran) {
            return Some(Self { stopped, ..seen });
        }
        let [events, memory] = [1, 2].map(|number| text(number).unwrap_or_default());
        let dirty = count(&memory, "file_dirty").or_else(|| count(&memory, "total_dirty"));
        Some(Self {
            ran,
            stopped,
            killed: count(&events, "oom_kill").unwrap_or_default(),
            dirty_bytes: dirty.unwrap_or_default(),
        })
    }
}

/// A file in which the kernel counts what a control group did (the kernel's
/// admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst and cgroup-v1).
#[derive(Debug)]
pub struct Counter {
    /// The controller, by its name in both versions.
    pub controller: &'static str,
    /// The file in version 2.
    pub unified: &'static str,
    /// The file in version 1.
    pub legacy: &'static str,
}

/// All that are looked at.
pub const COUNTERS: [Counter; 3] = [
    Counter { controller: "cpu", unified: "cpu.stat", legacy: "cpu.stat" },
    Counter { controller: "memory", unified: "memory.events", legacy: "memory.oom_control" },
    Counter { controller: "memory", unified: "memory.stat", legacy: "memory.stat" },
];

/// A count of a file in which each line is one.
fn count(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line?.trim().parse().ok()
}

/// What a sandbox was seen to want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Nothing before the first look at one of which more was counted before.
    seen: Option<Counts>,
    /// Looks for which it still is of low priority.
    low: u32,
    /// Looks for which it still is of the lowest.
    lowest: u32,
    /// Looks for which it still counts as one that writes much.
    writes: u32,
}

impl Demand {
    /// That of a sandbox of which nothing was counted yet.
    #[must_use]
    pub fn fresh() -> Self {
        Self { seen: Some(Counts::default()), low: 0, lowest: 0, writes: 0 }
    }

    /// That of a sandbox which was given its priority by somebody who may be gone.
    #[must_use]
    pub fn known(priority: Priority) -> Self {
        let looks = |least, looks| if priority >= least { looks } else { 0 };
        Self {
            seen: None,
            low: looks(Priority::Low, limits::LOW_LOOKS),
            lowest: looks(Priority::Lowest, limits::LOWEST_LOOKS),
            writes: 0,
        }
    }

    /// That of the same sandbox in its next life, which begins so many looks later.
    fn next_life(self, looks: u32) -> Self {
        Self {
            seen: Some(Counts::default()),
            low: self.low.saturating_sub(looks),
            lowest: self.lowest.saturating_sub(looks),
            writes: self.writes.saturating_sub(looks),
        }
    }

    /// Its priority.
    #[must_use]
    pub fn priority(self) -> Priority {
        match self {
            Self { lowest: 1.., .. } => Priority::Lowest,
            Self { low: 1.., .. } => Priority::Low,
            Self { .. } => Priority::Usual,
        }
    }

    /// The same after another look at the files of [`COUNTERS`], which are read by their place
    /// there. Nothing where they count nothing.
    pub fn look(self, text: impl Fn(usize) -> Option<String>) -> Option<Self> {
        Some(self.after(Counts::read(self.seen, text)?))
    }

    /// The same after a look that found this: a sandbox that runs into its limits again and
    /// again comes after those that do not, for as long as it does and a while longer,
    /// because who pauses is no better.
    fn after(self, now: Counts) -> Self {
        let seen = self.seen.unwrap_or(now);
        let ran = now.ran.saturating_sub(seen.ran);
        let stopped = now.stopped.saturating_sub(seen.stopped);
        let looks = |again, looks, left: u32| if again { looks } else { left.saturating_sub(1) };
        // A kill leaves nothing dirty: what counts is what was there shortly before.
        let dirty = now.dirty_bytes >= limits::DIRTY_BYTES_MIN;
        let writes = looks(dirty, limits::DIRTY_LOOKS, self.writes);
        let killed = now.killed > seen.killed && writes > 0;
        Self {
            seen: Some(now),
            low: looks(stopped > 0 && stopped * 4 >= ran, limits::LOW_LOOKS, self.low),
            lowest: looks(killed, limits::LOWEST_LOOKS, self.lowest),
            writes,
        }
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
        let said = |cores: Option<&Cores>, millis, priority| {
            let spec = spec(millis);
            let (list, share) = given(cores, &spec, priority);
            (list.map(str::to_owned), share.quota_us, share.period_us / 1_000)
        };
        let (all, others) = (Some("0-1".to_owned()), Some("1".to_owned()));
        let [usual, low, lowest] = Priority::ALL;
        for (millis, priority, expected) in [
            (1_000, usual, (all, 10_000, 10)),
            (1_000, low, (others.clone(), 9_500, 10)),
            (1_000, lowest, (others.clone(), 1_000, 10)),
            (500, low, (others.clone(), 5_000, 10)),
            (500, lowest, (others.clone(), 1_000, 10)),
            (10, lowest, (others, 1_000, 100)),
            (1_500, usual, (None, 15_000, 10)),
            (1_500, low, (None, 15_000, 10)),
            (1_500, lowest, (None, 1_000, 10)),
        ] {
            assert_eq!(said(Some(&cores), millis, priority), expected, "{millis} {priority:?}");
        }
        assert_eq!(said(None, 1_000, low), (None, 10_000, 10));
        assert_eq!(said(None, 1_000, lowest), (None, 1_000, 10));
    }

    /// What was counted from the beginning, and how many MiB are dirty.
    fn counts((ran, stopped, killed, dirty): (u64, u64, u64, u64)) -> Counts {
        Counts { ran, stopped, killed, dirty_bytes: dirty << 20 }
    }

    /// That of a fresh sandbox after looks that found so much each.
    fn after(looks: &[(u64, u64, u64, u64)]) -> Demand {
        looks.iter().copied().map(counts).fold(Demand::fresh(), Demand::after)
    }

    #[test]
    fn who_is_stopped_again_and_again_comes_after_others_until_it_is_not() {
        assert_eq!(after(&[(10, 1, 0, 0)]).priority(), Priority::Usual);
        let mut demand = after(&[(10, 1, 0, 0), (20, 11, 0, 0)]);
        for _ in 0..limits::LOW_LOOKS {
            assert_eq!(demand.priority(), Priority::Low);
            demand = demand.after(counts((20, 11, 0, 0)));
        }
        assert_eq!(demand.priority(), Priority::Usual);
    }

    #[test]
    fn whose_process_is_killed_while_it_writes_gets_hardly_anything_for_a_while() {
        let mut demand = after(&[(10, 10, 0, 50), (20, 20, 9, 0)]);
        for _ in 0..limits::LOWEST_LOOKS {
            assert_eq!(demand.priority(), Priority::Lowest);
            demand = demand.after(counts((30, 20, 9, 0)));
        }
        assert_eq!(demand.priority(), Priority::Usual);
    }

    #[test]
    fn who_does_one_without_the_other_gets_what_it_may_have() {
        assert_eq!(after(&[(10, 0, 0, 50), (20, 0, 0, 50)]).priority(), Priority::Usual);
        assert_eq!(after(&[(10, 0, 0, 1), (20, 0, 9, 1)]).priority(), Priority::Usual);
        // What was written long ago is on the disk.
        let mut looks = vec![(10, 0, 0, 50)];
        looks.extend(vec![(10, 0, 0, 0); limits::DIRTY_LOOKS as usize]);
        looks.push((20, 0, 9, 0));
        assert_eq!(after(&looks).priority(), Priority::Usual);
    }

    #[test]
    fn a_priority_that_was_given_stays_for_a_while() {
        for priority in Priority::ALL {
            let demand = Demand::known(priority);
            assert_eq!(demand.priority(), priority);
            // What was counted before is not new.
            let demand = demand.after(counts((9, 9, 5, 50)));
            assert_eq!(demand.priority(), priority);
        }
    }

    #[test]
    fn the_next_life_goes_on_where_the_last_one_ended() {
        let ended = after(&[(10, 0, 0, 50), (20, 0, 9, 0)]);
        let begun = ended.next_life(limits::LOWEST_LOOKS - 1);
        assert_eq!(begun.priority(), Priority::Lowest);
        assert_eq!(begun.after(counts((1, 0, 0, 0))).priority(), Priority::Usual);
        assert_eq!(ended.next_life(limits::LOWEST_LOOKS).priority(), Priority::Usual);
        // What is counted begins at nothing again.
        let writes = after(&[(10, 0, 3, 50)]).next_life(1);
        assert_eq!(writes.after(counts((1, 0, 1, 0))).priority(), Priority::Lowest);
    }

    #[test]
    fn counts_are_those_of_either_version() {
        let counted = |all| Some(counts(all));
        let cpu = "usage_usec 7\nnr_periods 20\nnr_throttled 11\nthrottled_usec 5\n";
        let events = "low 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 1\n";
        let memory = "anon 8\nfile_mapped 0\nfile_dirty 2097152\nfile_writeback 4096\n";
        let read = |texts: [&str; COUNTERS.len()]| {
            Counts::read(None, |number| Some(texts[number].to_owned()))
        };
        assert_eq!(read([cpu, events, memory]), counted((20, 11, 3, 2)));
        let legacy = "nr_periods 3\nnr_throttled 1\nthrottled_time 5\n";
        let events = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
        let memory = "cache 8\ndirty 0\nwriteback 0\ntotal_dirty 3145728\n";
        assert_eq!(read([legacy, events, memory]), counted((3, 1, 1, 3)));
        assert_eq!(read([legacy, "", ""]), counted((3, 1, 0, 0)));
        assert_eq!(read(["usage_usec 7\n", events, memory]), None);
        assert_eq!(read(["nonsense", events, memory]), None);
    }

    #[test]
    fn of_those_that_rest_one_file_is_read() {
        let seen = counts((20, 11, 3, 50));
        let cpu = |ran| {
            move |number| (number == 0).then(|| format!("nr_periods {ran}\nnr_throttled 11\n"))
        };
        assert_eq!(Counts::read(Some(seen), cpu(20)), Some(seen));
        assert_eq!(Counts::read(Some(seen), cpu(21)), Some(counts((21, 11, 0, 0))));
    }
}
