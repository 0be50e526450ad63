//! One seed: a calm run, then the same run killed at every write and at some
//! moments between writes, and overtaken by somebody else at every write.

use std::time::Duration;

use crate::crash::Death;
use crate::invariants::{check, check_undisturbed};
use crate::shape::shape;
use crate::world::{Ended, World, few_tokens};
use crate::{Violation, limits};

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
    plans.extend((0..limits::MOMENTS).map(|_| Kill::Moment(rng.u64(1..1_500))));
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
    for write in 0..calm.writes {
        let overtaken = Kill::Write(Death::Overtaken(write));
        // What is said changes what follows, so there is no shape to compare with.
        let ran = run(seed, &[overtaken]).await;
        ran.map_err(|violation| (format!("{overtaken:?}"), violation))?;
        report.runs += 1;
    }
    Ok(report)
}

#[derive(Debug, Clone, Copy)]
enum Kill {
    Write(Death),
    Moment(u64),
}

struct Run {
    shape: Vec<String>,
    writes: u64,
    kills: u64,
}

/// Lives as many lives as it takes until the session waits.
async fn run(seed: u64, kills: &[Kill]) -> Result<Run, Violation> {
    let stopped = |error: outrigger_engine::Error| {
        Violation::Engine(outrigger_engine::workspace::explain(&error))
    };
    let world = World::begin(seed).await.map_err(stopped)?;
    let mut plan = kills.iter();
    let (mut writes, mut killed) = (0, 0);
    for _ in 0..limits::STARTS_MAX {
        let (death, moment) = match plan.next() {
            None => (Death::Never, None),
            Some(Kill::Write(death)) => (*death, None),
            Some(Kill::Moment(ms)) => (Death::Never, Some(Duration::from_millis(*ms))),
        };
        let (ended, wrote) = world.live(death, moment).await.map_err(stopped)?;
        writes += wrote;
        match ended {
            Ended::Killed => killed += 1,
            Ended::Parked => {
                check(&world).await?;
                if killed == 0 {
                    check_undisturbed(&world).await?;
                }
                return Ok(Run { shape: shape(&world.records().await), writes, kills: killed });
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
