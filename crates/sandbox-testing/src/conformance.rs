//! What every backend must do, as named cases that run against any of them.
//!
//! A backend passes by behaviour alone: cases speak through the port and never
//! ask which backend it is. What a backend does not declare it is let off, with the
//! reason in the report; the cases `declared/` then see to it that it refuses just
//! that. Only the fake, which isolates nothing, is let off real programs and a kernel.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

use crate::FakeTrees;
use crate::limits::{CASE_MS_MAX, CASES_AT_ONCE};
use outrigger_sandbox::{Backend, CreateSpec, Error, Networks, SandboxId};

mod case;
mod context;
mod declared;
mod disk;
mod exec;
mod files;
mod life;
mod need;
mod network;
mod report;
mod resources;
mod served;
mod users;

pub use report::{CaseResult, CaseStatus, SuiteReport};

use case::Case;
use context::{Context, Outcome};
use need::Need;

const TABLES: &[&[Case]] = &[
    exec::CASES,
    exec::output::CASES,
    exec::limits::CASES,
    exec::tree_kill::CASES,
    exec::ids::CASES,
    files::read::CASES,
    files::write::CASES,
    files::errors::CASES,
    files::search::CASES,
    files::transfer::CASES,
    users::CASES,
    life::lifecycle::CASES,
    declared::CASES,
    life::frozen::CASES,
    life::cold::CASES,
    life::snapshot::CASES,
    life::fork::CASES,
    life::lifetime::CASES,
    exec::terminal::CASES,
    resources::CASES,
    disk::CASES,
    served::CASES,
    served::writers::CASES,
    served::faults::CASES,
    network::CASES,
];

/// What the suite runs against.
#[derive(Debug, Clone)]
pub struct SuiteTarget {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// Those that the backend was opened with, for mount points `/memory` and `/skills`;
    /// without them it is let off what it declares to serve.
    pub trees: Option<Arc<FakeTrees>>,
    /// The backend once more; without it, it is let off the way out that it declares.
    pub networks: Option<Arc<dyn Networks>>,
}

impl SuiteTarget {
    /// A backend without trees and networks.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, trees: None, networks: None }
    }

    /// What of it a case lacks.
    fn lacks(&self, case: &Case) -> Option<&'static str> {
        let needs = |need| case.needs.contains(&need);
        let no_trees = needs(Need::Served) && self.trees.is_none();
        let no_networks = needs(Need::Network) && self.networks.is_none();
        no_trees
            .then_some("it was given no trees to serve")
            .or(no_networks.then_some("it was given no networks"))
    }
}

/// Of the names of all that is made for a case.
const PREFIX: &str = "conformance-";

/// Runs all cases whose name contains `filter`, a few at once, each in a sandbox of
/// its own that is destroyed afterwards with all that was made of it. Those that
/// strain the host come last, one after the other.
///
/// # Panics
/// If what an earlier run left cannot be removed.
pub async fn run(target: SuiteTarget, filter: Option<&str>) -> SuiteReport {
    let capabilities = target.backend.capabilities();
    let wanted = |case: &Case| filter.is_none_or(|filter| case.name.contains(filter));
    let chosen: Vec<Case> =
        TABLES.iter().copied().flatten().copied().filter(|case| wanted(case)).collect();
    if let Err(error) = sweep(&target.backend, |name| name.starts_with(PREFIX)).await {
        panic!("what an earlier run left cannot be removed: {error}");
    }
    let mut statuses = BTreeMap::new();
    let (mut apart, mut alone) = (VecDeque::new(), VecDeque::new());
    for (number, case) in chosen.iter().enumerate() {
        let strains = case.needs.iter().any(|need| need.strains());
        let missing = case.needs.iter().find_map(|need| need.missing(capabilities));
        match missing.or_else(|| target.lacks(case)) {
            Some(why) => {
                drop(statuses.insert(number, (CaseStatus::NotApplicable(why.to_owned()), 0)));
            }
            None if strains => alone.push_back((number, *case)),
            None => apart.push_back((number, *case)),
        }
    }
    for (cases, at_once) in [(apart, CASES_AT_ONCE), (alone, 1)] {
        statuses.extend(judge_all(&target, cases, at_once).await);
    }
    let judged = chosen.into_iter().zip(statuses.into_values());
    let cases = judged
        .map(|(case, (status, took_ms))| CaseResult { name: case.name, status, took_ms })
        .collect();
    SuiteReport { backend: capabilities.backend.clone(), cases }
}

/// Statuses by number of the case, with how many milliseconds each took.
async fn judge_all(
    target: &SuiteTarget,
    mut cases: VecDeque<(usize, Case)>,
    at_once: usize,
) -> BTreeMap<usize, (CaseStatus, u64)> {
    let mut statuses = BTreeMap::new();
    let mut running = JoinSet::new();
    let mut numbers = HashMap::new();
    loop {
        while running.len() < at_once
            && let Some((number, case)) = cases.pop_front()
        {
            let target = target.clone();
            let task = running.spawn(async move { judge(target, &case).await });
            numbers.insert(task.id(), (number, Instant::now()));
        }
        let (task, status) = match running.join_next_with_id().await {
            None => return statuses,
            Some(Ok((task, Ok(())))) => (task, CaseStatus::Passed),
            Some(Ok((task, Err(why)))) => (task, CaseStatus::Failed(why)),
            Some(Err(error)) => (error.id(), CaseStatus::Failed(format!("it panicked: {error}"))),
        };
        let (number, begun) =
            numbers.remove(&task).expect("every task was noted when it was started");
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        statuses.insert(number, (status, took_ms));
    }
}

async fn judge(target: SuiteTarget, case: &Case) -> Outcome {
    let SuiteTarget { backend, trees, networks } = target;
    let backend = &backend;
    let name = format!("{PREFIX}{}", case.name.replace('/', "-"));
    let id = SandboxId::new(name).map_err(|error| error.to_string())?;
    let isolation_min = backend.capabilities().isolation;
    let spec = CreateSpec { isolation_min, ..CreateSpec::default() };
    let spec = (case.spec)(spec);
    let made = backend.create(&id, &spec).await;
    let sandbox = made.map_err(|error| format!("create: {error}"))?;
    let context = Context { backend: backend.clone(), sandbox, spec, trees, networks };
    let limit = Duration::from_millis(CASE_MS_MAX);
    let outcome = match tokio::time::timeout(limit, (case.run)(context)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("it hung for {CASE_MS_MAX} ms")),
    };
    let below = format!("{id}-");
    let swept = sweep(backend, |name| name == id.as_str() || name.starts_with(&below)).await;
    outcome.and(swept.map_err(|error| format!("cleaning up: {error}")))
}

/// Destroys sandboxes and snapshots whose names are `ours`.
async fn sweep(backend: &Arc<dyn Backend>, ours: impl Fn(&str) -> bool) -> Result<(), Error> {
    for sandbox in backend.list().await? {
        if ours(sandbox.id.as_str()) {
            backend.destroy(&sandbox.id).await?;
        }
    }
    if let Ok(snapshots) = backend.snapshots() {
        for snapshot in snapshots.list().await? {
            if ours(snapshot.name.as_str()) {
                snapshots.remove(&snapshot.name).await?;
            }
        }
    }
    Ok(())
}
