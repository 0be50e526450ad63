//! One seed: a calm run, then the same run with deaths at writes and at moments between
//! them, overtaken by somebody else, stopped, ended, suspended, bereft of its sandbox,
//! and through concurrent runs, in which all of that happens at once.

use std::sync::Arc;
use std::time::Duration;

use outrigger_agent::Park;
use outrigger_sandbox::Suspend;
use outrigger_sandbox_testing::fake::Disk;

use crate::crash::Death;
use crate::family;
use crate::invariants::{check, check_nothing_left, check_undisturbed};
use crate::rules::Books;
use crate::shape::shape;
use crate::spec::is_poor;
use crate::store::Without;
use crate::tally::{Happening, Tally};
use crate::witness::Detail;
use crate::world::{Fate, How, RunEnd, World};
use crate::{Violation, concurrency, limits, stopped};

/// What a seed came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeedReport {
    /// Runs, the calm one included.
    pub runs: u64,
    /// Events of the calm run.
    pub events: u64,
    /// What happened in all of them.
    pub tally: Tally,
}

impl SeedReport {
    fn add(&mut self, ran: &Run) {
        self.runs += 1;
        self.tally.add(&ran.tally);
    }
}

/// What did not hold, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {violation}")]
pub struct SeedFailure {
    /// Which run of the seed.
    pub place: String,
    /// What did not hold.
    #[source]
    pub violation: Violation,
    /// What happened up to then, where it was asked for.
    pub story: Vec<String>,
}

/// Which runs a seed is put through, beside its concurrent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plans {
    /// Some, drawn by the seed: over many seeds each kind of place is hit.
    Drawn,
    /// All, with a death at every write.
    Every,
}

/// The simulation. Cheap to share between threads.
#[derive(Debug, Clone)]
pub struct Sim {
    how: How,
    plans: Plans,
}

impl Sim {
    /// With every safeguard.
    #[must_use]
    pub fn new(plans: Plans) -> Self {
        let books = Arc::new(Books::new());
        Self { how: How { books, without: None, told: Detail::Verdict }, plans }
    }

    /// Takes a safeguard away from what is simulated.
    #[must_use]
    pub fn without(self, without: Without) -> Self {
        Self { how: How { without: Some(without), ..self.how }, ..self }
    }

    /// Tells what happened where something does not hold.
    #[must_use]
    pub fn telling(self) -> Self {
        Self { how: How { told: Detail::Whole, ..self.how }, ..self }
    }

    /// Checks everything of one seed, on its own paused clock.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self, seed: u64) -> Result<SeedReport, SeedFailure> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without input and output needs nothing");
        runtime.block_on(self.check_all(seed))
    }

    async fn check_all(&self, seed: u64) -> Result<SeedReport, SeedFailure> {
        let calm = self.run(seed, &[]).await.map_err(RunFailure::at("calm"))?;
        let mut report = SeedReport { events: calm.shape.len() as u64, ..SeedReport::default() };
        report.add(&calm);
        for Plan { kills, alike } in self.plans(seed, calm.writes) {
            let place = format!("{kills:?}");
            let ran = self.run(seed, &kills).await.map_err(RunFailure::at(&place))?;
            report.add(&ran);
            let poor = is_poor(seed);
            let same_shape = match alike {
                Alike::Always => !poor,
                Alike::Alive => !poor || ran.kills == 0,
                Alike::No => false,
            };
            if same_shape {
                let alike = same(&calm.shape, &ran.shape);
                alike.map_err(|violation| {
                    RunFailure { violation, story: ran.story }.at_place(&place)
                })?;
            }
        }
        for run in 0..limits::CONCURRENT_RUNS {
            let place = format!("concurrent run {run}");
            let tally = self.concurrent(seed, run).await.map_err(RunFailure::at(&place))?;
            report.runs += 1;
            report.tally.add(&tally);
        }
        Ok(report)
    }

    fn plans(&self, seed: u64, writes: u64) -> Vec<Plan> {
        let mut rng = fastrand::Rng::with_seed(!seed);
        let mut plans = deaths(&mut rng, writes);
        plans.extend(suspensions(&mut rng, writes).into_iter().map(Alike::Alive.plan()));
        let overtaken = (0..writes).map(|write| vec![Kill::Write(Death::Overtaken(write))]);
        plans.extend(overtaken.map(Alike::No.plan()));
        plans.extend(stops(&mut rng, writes).into_iter().map(Alike::No.plan()));
        plans.extend(losses(&mut rng, writes).into_iter().map(Alike::No.plan()));
        if self.plans == Plans::Drawn {
            rng.shuffle(&mut plans);
            plans.truncate(match family::has(seed) {
                true => limits::FAMILY_PLANS_DRAWN,
                false => limits::PLANS_DRAWN,
            });
        }
        plans
    }

    async fn concurrent(&self, seed: u64, run: u64) -> Result<Tally, RunFailure> {
        let mut rng = fastrand::Rng::with_seed(seed.rotate_left(25) ^ (run << 1 | 1));
        let world = self.begin(seed, Some(rng.fork())).await?;
        concurrency::run(&world, rng).await.map_err(RunFailure::seen_by(&world))?;
        Ok(world.witness.tally())
    }

    async fn begin(
        &self,
        seed: u64,
        concurrent: Option<fastrand::Rng>,
    ) -> Result<World, RunFailure> {
        let world = World::begin(seed, &self.how, concurrent).await.map_err(stopped_engine);
        world.map_err(|violation| RunFailure { violation, story: Vec::new() })
    }
}

/// What did not hold in one run, and what happened before.
struct RunFailure {
    violation: Violation,
    story: Vec<String>,
}

impl RunFailure {
    fn seen_by(world: &World) -> impl Fn(Violation) -> Self + '_ {
        |violation| Self { violation, story: world.witness.story() }
    }

    fn at(place: &str) -> impl Fn(Self) -> SeedFailure + '_ {
        move |broken| broken.at_place(place)
    }

    fn at_place(self, place: &str) -> SeedFailure {
        let Self { violation, story } = self;
        SeedFailure { place: place.to_owned(), violation, story }
    }
}

fn stopped_engine(error: outrigger_engine::Error) -> Violation {
    Violation::Engine(outrigger_engine::workspace::explain(&error))
}

/// A run and what it is compared with.
struct Plan {
    kills: Vec<Kill>,
    alike: Alike,
}

/// Whether a run has the shape of the calm one.
#[derive(Debug, Clone, Copy)]
enum Alike {
    Always,
    /// Also where tokens are few, as long as nobody was killed: a life that is
    /// suspended goes on, and nothing of it shows in the journal.
    Alive,
    /// What happens changes what follows.
    No,
}

impl Alike {
    fn plan(self) -> impl Fn(Vec<Kill>) -> Plan {
        move |kills| Plan { kills, alike: self }
    }
}

/// The harness is killed at every write and at some moments between, and killed again
/// right after its next start: recovery is killed as well.
fn deaths(rng: &mut fastrand::Rng, writes: u64) -> Vec<Plan> {
    let at = |write| [Death::Before(write), Death::After(write)].map(Kill::Write);
    let mut deaths: Vec<Kill> = (0..writes).flat_map(at).collect();
    deaths.extend((0..limits::MOMENTS).map(|_| Kill::Moment(rng.u64(1..limits::MOMENT_MS_MAX))));
    let twice = |death| [vec![death], vec![death, Kill::Write(Death::After(0))]];
    deaths.into_iter().flat_map(twice).map(Alike::Always.plan()).collect()
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
    tally: Tally,
    story: Vec<String>,
}

impl Sim {
    async fn run(&self, seed: u64, kills: &[Kill]) -> Result<Run, RunFailure> {
        let world = self.begin(seed, None).await?;
        live_through(&world, kills).await.map_err(RunFailure::seen_by(&world))
    }
}

/// Lives as many lives as it takes until the session waits.
async fn live_through(world: &World, kills: &[Kill]) -> Result<Run, Violation> {
    let mut plan = kills.iter().copied();
    let mut ahead = None;
    let (mut writes, mut killed) = (0, 0);
    for _ in 0..limits::STARTS_MAX {
        let kill = ahead.take().or_else(|| plan.next());
        let fate = kill.map_or_else(Fate::default, Kill::fate);
        let (ended, wrote) = world.live(fate).await.map_err(stopped_engine)?;
        world.witness.verdict()?;
        writes += wrote;
        match ended {
            RunEnd::Killed => killed += 1,
            RunEnd::Parked(Park::Answers(_)) => {
                // What was to happen at a later write happens to who goes on.
                ahead = match kill {
                    Some(Kill::Write(death)) => death.after_writes(wrote).map(Kill::Write),
                    _ => None,
                };
                let Some((session, effect, state)) = world.first_asked().await else {
                    return Err(Violation::StopUnheard("nothing that is asked".to_owned()));
                };
                if session != world.session {
                    world.witness.count(Happening::ChildWaited);
                }
                world.answer(&session, effect, &state).await?;
            }
            RunEnd::Parked(park) => {
                check_all(world, &park).await?;
                check_nothing_left(world).await?;
                if killed == 0 && !kills.iter().any(|kill| kill.loses()) {
                    for session in world.witness.sessions() {
                        check_undisturbed(&world.records(&session).await)?;
                    }
                }
                let shape = shape(world, &world.session).await;
                let (tally, story) = (world.witness.tally(), world.witness.story());
                return Ok(Run { shape, writes, kills: killed, tally, story });
            }
        }
    }
    Err(Violation::Livelock(limits::STARTS_MAX))
}

/// Checks a world whose session waits as it says.
async fn check_all(world: &World, park: &Park) -> Result<(), Violation> {
    for session in world.witness.sessions() {
        let records = world.records(&session).await;
        let park = if session == world.session { park } else { &Park::Cancelled };
        stopped::check(&records, park)?;
        world.answer_late(&session, &records).await?;
    }
    check(world).await
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
