//! One seed: a calm run, then the same run killed at every write and at some
//! moments between writes, overtaken by somebody else at every write, and, at a few
//! places, stopped, ended, or bereft of its sandbox.

use std::time::Duration;

use outrigger_sandbox::Suspend;
use outrigger_sandbox::fake::Disk;

use crate::crash::Death;
use crate::invariants::{check, check_undisturbed};
use crate::shape::shape;
use crate::world::{Ended, Fate, World, few_tokens};
use crate::{Violation, limits, stopped};

/// What a seed came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs, the calm one included.
    pub runs: u64,
    /// Times that a harness was killed.
    pub kills: u64,
    /// Events of the calm run.
    pub events: u64,
}

/// Checks everything of one seed, on its own paused clock.
///
/// # Errors
/// The first invariant that does not hold, with where the harness was killed.
pub fn check_seed(seed: u64) -> Result<Report, (String, Violation)> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without input and output needs nothing");
    runtime.block_on(check_all(seed))
}

async fn check_all(seed: u64) -> Result<Report, (String, Violation)> {
    let calm = run(seed, &[]).await.map_err(|violation| ("calm".to_owned(), violation))?;
    let mut report = Report { runs: 1, kills: 0, events: calm.shape.len() as u64 };
    let mut plans: Vec<Kill> = Vec::new();
    for write in 0..calm.writes {
        plans.push(Kill::Write(Death::Before(write)));
        plans.push(Kill::Write(Death::After(write)));
    }
    let mut rng = fastrand::Rng::with_seed(!seed);
    plans.extend((0..limits::MOMENTS).map(|_| Kill::Moment(rng.u64(1..limits::MOMENT_MS_MAX))));
    for plan in plans {
        // A second kill right after the first start: recovery is killed as well.
        for kills in [vec![plan], vec![plan, Kill::Write(Death::After(0))]] {
            let place = format!("{kills:?}");
            let crashed =
                run(seed, &kills).await.map_err(|violation| (place.clone(), violation))?;
            report.runs += 1;
            report.kills += crashed.kills;
            if few_tokens(seed).is_none() {
                same(&calm.shape, &crashed.shape).map_err(|violation| (place, violation))?;
            }
        }
    }
    // A life that is suspended goes on: nothing of it shows in the journal, whether
    // the harness is killed as well or not.
    for plan in suspensions(&mut rng, calm.writes) {
        let place = format!("{plan:?}");
        let suspended = run(seed, &plan).await.map_err(|violation| (place.clone(), violation))?;
        report.runs += 1;
        report.kills += suspended.kills;
        if few_tokens(seed).is_none() || suspended.kills == 0 {
            same(&calm.shape, &suspended.shape).map_err(|violation| (place, violation))?;
        }
    }
    // What these change changes what follows, so there is no shape to compare with.
    let overtaken = (0..calm.writes).map(|write| vec![Kill::Write(Death::Overtaken(write))]);
    for plan in overtaken.chain(stops(&mut rng, calm.writes)).chain(losses(&mut rng, calm.writes)) {
        let ran = run(seed, &plan).await;
        report.kills += ran.map_err(|violation| (format!("{plan:?}"), violation))?.kills;
        report.runs += 1;
    }
    Ok(report)
}

/// Somebody stops the turn, or ends the session.
fn stops(rng: &mut fastrand::Rng, writes: u64) -> Vec<Vec<Kill>> {
    let mut plans = Vec::new();
    for _ in 0..limits::STOPS.min(writes) {
        plans.push(vec![Kill::Write(Death::Interrupted(rng.u64(..writes)))]);
        plans.push(vec![Kill::Write(Death::Cancelled(rng.u64(..writes)))]);
    }
    plans
}

/// Somebody else suspends the sandbox: at a write, at any moment, and while nobody is there.
fn suspensions(rng: &mut fastrand::Rng, writes: u64) -> Vec<Vec<Kill>> {
    let mut plans = Vec::new();
    for _ in 0..limits::SUSPENSIONS.min(writes) {
        for how in [Suspend::Frozen, Suspend::Cold] {
            plans.push(vec![Kill::Write(Death::Suspended(rng.u64(..writes), how))]);
            plans.push(vec![Kill::Suspension(rng.u64(1..limits::MOMENT_MS_MAX), how)]);
            let death = Kill::Write(Death::After(rng.u64(..writes)));
            plans.push(vec![death, Kill::SuspendedMeanwhile(how)]);
        }
    }
    plans
}

/// The sandbox is lost: at a write, at any moment, and while nobody is there.
fn losses(rng: &mut fastrand::Rng, writes: u64) -> Vec<Vec<Kill>> {
    let mut plans = Vec::new();
    for _ in 0..limits::LOSSES.min(writes) {
        for disk in [Disk::Kept, Disk::Dropped] {
            plans.push(vec![Kill::Write(Death::Lost(rng.u64(..writes), disk))]);
            plans.push(vec![Kill::Loss(rng.u64(1..limits::MOMENT_MS_MAX), disk)]);
            let death = Kill::Write(Death::After(rng.u64(..writes)));
            plans.push(vec![death, Kill::LostMeanwhile(disk)]);
        }
    }
    plans
}

/// What befalls one life; the lives after the last live on.
#[derive(Debug, Clone, Copy)]
enum Kill {
    Write(Death),
    /// It is killed after so many milliseconds.
    Moment(u64),
    /// Its sandbox is lost after so many milliseconds.
    Loss(u64, Disk),
    /// Its sandbox was lost before it began.
    LostMeanwhile(Disk),
    /// Its sandbox is suspended by somebody else after so many milliseconds.
    Suspension(u64, Suspend),
    /// Its sandbox was suspended before it began.
    SuspendedMeanwhile(Suspend),
}

impl Kill {
    fn fate(self) -> Fate {
        let fate = Fate::default();
        match self {
            Self::Write(death) => Fate { death, ..fate },
            Self::Moment(ms) => Fate { killed_after: Some(Duration::from_millis(ms)), ..fate },
            Self::Loss(ms, disk) => {
                Fate { lost_after: Some((Duration::from_millis(ms), disk)), ..fate }
            }
            Self::LostMeanwhile(disk) => Fate { lost_before: Some(disk), ..fate },
            Self::Suspension(ms, how) => {
                Fate { suspended_after: Some((Duration::from_millis(ms), how)), ..fate }
            }
            Self::SuspendedMeanwhile(how) => {
                Fate { suspended_after: Some((Duration::ZERO, how)), ..fate }
            }
        }
    }

    fn loses(self) -> bool {
        matches!(self, Self::Write(Death::Lost(..)) | Self::Loss(..) | Self::LostMeanwhile(_))
    }
}

struct Run {
    shape: Vec<String>,
    writes: u64,
    kills: u64,
}

/// Lives as many lives as it takes until the session waits.
async fn run(seed: u64, kills: &[Kill]) -> Result<Run, Violation> {
    let failed = |error: outrigger_engine::Error| {
        Violation::Engine(outrigger_engine::workspace::explain(&error))
    };
    let world = World::begin(seed).await.map_err(failed)?;
    let mut plan = kills.iter();
    let (mut writes, mut killed) = (0, 0);
    for _ in 0..limits::STARTS_MAX {
        let fate = plan.next().map_or_else(Fate::default, |kill| kill.fate());
        let (ended, wrote) = world.live(fate).await.map_err(failed)?;
        writes += wrote;
        match ended {
            Ended::Killed => killed += 1,
            Ended::Parked(park) => {
                let records = world.records().await;
                check(&world, &records).await?;
                stopped::check(&records, &park)?;
                if killed == 0 && !kills.iter().any(|kill| kill.loses()) {
                    check_undisturbed(&records)?;
                }
                return Ok(Run { shape: shape(&records), writes, kills: killed });
            }
        }
    }
    Err(Violation::Livelock(limits::STARTS_MAX))
}

fn same(calm: &[String], crashed: &[String]) -> Result<(), Violation> {
    let longest = calm.len().max(crashed.len());
    let at = |lines: &[String], line: usize| lines.get(line).cloned().unwrap_or_default();
    match (0..longest).find(|line| calm.get(*line) != crashed.get(*line)) {
        None => Ok(()),
        Some(line) => {
            Err(Violation::Shape { line, calm: at(calm, line), crashed: at(crashed, line) })
        }
    }
}
