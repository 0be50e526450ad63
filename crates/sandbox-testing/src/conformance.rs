//! What every backend must do, as named cases that run against any of them.
//!
//! A backend passes by behaviour alone: cases speak through the port and never
//! ask which backend it is. What a backend does not declare it is let off, with the
//! reason in the report; the cases `declared/` then see to it that it refuses just
//! that. Only the fake, which isolates nothing, is let off real programs and a kernel.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

use crate::FakeTrees;
use crate::limits::{CASE_MS_MAX, CASES_AT_ONCE};
use outrigger_sandbox::{Backend, Error, SandboxId, Spec};

mod cold;
mod context;
mod declared;
mod disk;
mod exec;
mod exec_ids;
mod exec_limits;
mod exec_output;
mod file_errors;
mod file_read;
mod file_write;
mod fork;
mod frozen;
mod lifecycle;
mod lifetime;
mod lives;
mod need;
mod resources;
mod search;
mod served;
mod served_faults;
mod served_writers;
mod snapshot;
mod terminal;
mod transfer;
mod tree_kill;
mod users;

use context::Context;
use need::Need;

/// Nothing, or what was not as it must be.
type Outcome = Result<(), String>;

type Run = fn(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A named case.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    needs: &'static [Need],
    /// What its sandbox is made from, given what others are made from.
    spec: fn(Spec) -> Spec,
    run: Run,
}

/// A table of cases: which function each is, what it needs in brackets, and which
/// function adjusts its specification.
macro_rules! cases {
    ($group:literal: $($case:ident $([$($need:ident),+])? $(with $spec:ident)?,)*) => {
        pub(super) const CASES: &[super::Case] = &[$(super::Case {
            name: concat!($group, "/", stringify!($case)),
            needs: &[$($(super::Need::$need),+)?],
            spec: super::cases!(@spec $($spec)?),
            run: |context| Box::pin($case(context)),
        },)*];
    };
    (@spec) => { |spec| spec };
    (@spec $spec:ident) => { $spec };
}
use cases;

const TABLES: &[&[Case]] = &[
    exec::CASES,
    exec_output::CASES,
    exec_limits::CASES,
    tree_kill::CASES,
    exec_ids::CASES,
    file_read::CASES,
    file_write::CASES,
    file_errors::CASES,
    search::CASES,
    transfer::CASES,
    users::CASES,
    lifecycle::CASES,
    declared::CASES,
    frozen::CASES,
    cold::CASES,
    snapshot::CASES,
    fork::CASES,
    lifetime::CASES,
    terminal::CASES,
    resources::CASES,
    disk::CASES,
    served::CASES,
    served_writers::CASES,
    served_faults::CASES,
];

/// How a case went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As it must.
    Passed,
    /// Not as it must, and how.
    Failed(String),
    /// Not run, and why this backend is let off.
    NotApplicable(String),
}

/// A case with its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseResult {
    /// The case, for example `exec/exit_codes`.
    pub name: &'static str,
    /// How it went.
    pub verdict: Verdict,
    /// How long it took, with the making and the removal of its sandbox. In milliseconds.
    pub took_ms: u64,
}

/// What became of all cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the backend.
    pub backend: String,
    /// In the order in which they ran.
    pub cases: Vec<CaseResult>,
}

impl Report {
    /// Cases that did not go as they must.
    pub fn failed(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_)))
    }

    /// Cases that this backend was let off.
    pub fn not_applicable(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::NotApplicable(_)))
    }

    /// What this backend was let off, a line for each reason with the names of the
    /// cases, for a test that pins them: a declaration that says less than it did is
    /// seen, and so is a case that nothing runs any more.
    pub fn let_off(&self) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for case in self.not_applicable() {
            let Verdict::NotApplicable(why) = &case.verdict else { continue };
            match reasons.iter_mut().find(|(reason, _)| reason == why) {
                Some((_, names)) => names.push(case.name),
                None => reasons.push((why, vec![case.name])),
            }
        }
        let text = |(why, names): &(&str, Vec<&str>)| format!("{why}:\n  {}\n", names.join("\n  "));
        reasons.iter().map(text).collect()
    }

    /// For tests.
    ///
    /// # Panics
    /// With the whole table if a case failed, or if none ran. Those that failed stand
    /// at its end, each with how long it took.
    pub fn assert_passed(&self) {
        let ran = self.cases.len() > self.not_applicable().count();
        assert!(ran && self.failed().next().is_none(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
        for CaseResult { name, verdict, took_ms } in &self.cases {
            match verdict {
                Verdict::Passed => writeln!(f, "{name:width$}  passed in {took_ms} ms")?,
                Verdict::Failed(_) => writeln!(f, "{name:width$}  FAILED after {took_ms} ms")?,
                Verdict::NotApplicable(why) => writeln!(f, "{name:width$}  not run: {why}")?,
            }
        }
        let (failed, not_run) = (self.failed().count(), self.not_applicable().count());
        let passed = self.cases.len() - failed - not_run;
        let backend = &self.backend;
        write!(f, "{backend}: {passed} passed, {failed} failed, {not_run} not applicable")?;
        for CaseResult { name, verdict, took_ms } in self.failed() {
            let Verdict::Failed(why) = verdict else { continue };
            write!(f, "\n{name} FAILED after {took_ms} ms: {why}")?;
        }
        Ok(())
    }
}

/// Runs all cases whose name contains `filter`, a few at once, each in a sandbox of
/// its own that is destroyed afterwards with all that was made of it. Those that
/// strain the host come last, one after the other.
///
/// `trees` are those that the backend was opened with, for mount points `/memory` and
/// `/skills`; without them it is let off what it declares to serve.
pub async fn run(
    backend: Arc<dyn Backend>,
    trees: Option<Arc<FakeTrees>>,
    filter: Option<&str>,
) -> Report {
    let capabilities = backend.capabilities();
    let wanted = |case: &Case| filter.is_none_or(|filter| case.name.contains(filter));
    let chosen: Vec<Case> =
        TABLES.iter().copied().flatten().copied().filter(|case| wanted(case)).collect();
    let mut verdicts = BTreeMap::new();
    let serves = trees.is_some();
    let (mut apart, mut alone) = (VecDeque::new(), VecDeque::new());
    for (number, case) in chosen.iter().enumerate() {
        let strains = case.needs.iter().any(|need| need.strains());
        let unserved = case.needs.contains(&Need::Served) && !serves;
        let missing = case.needs.iter().find_map(|need| need.missing(capabilities));
        match missing.or(unserved.then_some("it was given no trees to serve")) {
            Some(why) => {
                drop(verdicts.insert(number, (Verdict::NotApplicable(why.to_owned()), 0)));
            }
            None if strains => alone.push_back((number, *case)),
            None => apart.push_back((number, *case)),
        }
    }
    for (cases, at_once) in [(apart, CASES_AT_ONCE), (alone, 1)] {
        verdicts.extend(judge_all((&backend, &trees), cases, at_once).await);
    }
    let judged = chosen.into_iter().zip(verdicts.into_values());
    let cases = judged
        .map(|(case, (verdict, took_ms))| CaseResult { name: case.name, verdict, took_ms })
        .collect();
    Report { backend: capabilities.backend.clone(), cases }
}

/// Verdicts by number of the case, with how many milliseconds each took.
async fn judge_all(
    (backend, trees): (&Arc<dyn Backend>, &Option<Arc<FakeTrees>>),
    mut cases: VecDeque<(usize, Case)>,
    at_once: usize,
) -> BTreeMap<usize, (Verdict, u64)> {
    let mut verdicts = BTreeMap::new();
    let mut running = JoinSet::new();
    let mut numbers = HashMap::new();
    loop {
        while running.len() < at_once
            && let Some((number, case)) = cases.pop_front()
        {
            let (backend, trees) = (Arc::clone(backend), trees.clone());
            let task = running.spawn(async move { judge(&backend, trees, &case).await });
            numbers.insert(task.id(), (number, Instant::now()));
        }
        let (task, verdict) = match running.join_next_with_id().await {
            None => return verdicts,
            Some(Ok((task, Ok(())))) => (task, Verdict::Passed),
            Some(Ok((task, Err(why)))) => (task, Verdict::Failed(why)),
            Some(Err(error)) => (error.id(), Verdict::Failed(format!("it panicked: {error}"))),
        };
        let (number, begun) =
            numbers.remove(&task).expect("every task was noted when it was started");
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        verdicts.insert(number, (verdict, took_ms));
    }
}

async fn judge(backend: &Arc<dyn Backend>, trees: Option<Arc<FakeTrees>>, case: &Case) -> Outcome {
    let name = format!("conformance-{}", case.name.replace('/', "-"));
    let id = SandboxId::new(name).map_err(|error| error.to_string())?;
    let isolation_min = backend.capabilities().isolation;
    let spec = Spec { isolation_min, ..Spec::default() };
    let spec = (case.spec)(spec);
    let left = |error| format!("cleaning up: {error}");
    sweep(backend, &id).await.map_err(left)?;
    let made = backend.create(&id, &spec).await;
    let sandbox = made.map_err(|error| format!("create: {error}"))?;
    let context = Context { backend: backend.clone(), sandbox, spec, trees };
    let limit = Duration::from_millis(CASE_MS_MAX);
    let outcome = match tokio::time::timeout(limit, (case.run)(context)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("it hung for {CASE_MS_MAX} ms")),
    };
    let swept = sweep(backend, &id).await.map_err(left);
    outcome.and(swept)
}

/// Destroys the sandbox of a case and whatever was named after it, by this run or
/// one before.
async fn sweep(backend: &Arc<dyn Backend>, id: &SandboxId) -> Result<(), Error> {
    backend.destroy(id).await?;
    let prefix = format!("{id}-");
    for other in backend.list().await? {
        if other.id.as_str().starts_with(&prefix) {
            backend.destroy(&other.id).await?;
        }
    }
    if let Ok(snapshots) = backend.snapshots() {
        for snapshot in snapshots.list().await? {
            if snapshot.name.as_str().starts_with(&prefix) {
                snapshots.remove(&snapshot.name).await?;
            }
        }
    }
    Ok(())
}
