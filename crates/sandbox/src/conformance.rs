//! What every backend must do, as named cases that run against any of them.
//!
//! A backend passes by behaviour alone: cases speak through the port and never
//! ask which backend it is. Only one that isolates nothing, the fake, is let off
//! cases that need real programs or a kernel, with the reason in the report.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::CASE_MS_MAX;
use crate::{Backend, Isolation, SandboxId, Spec};

mod context;
mod exec;
mod exec_ids;
mod exec_limits;
mod exec_output;
mod file_errors;
mod file_read;
mod file_write;
mod lifecycle;
mod search;
mod tree_kill;

use context::Context;

/// Nothing, or what was not as it must be.
type Outcome = Result<(), String>;

/// What a case needs of a backend beside the port itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing: the fake's few words of shell will do.
    Nothing,
    /// A POSIX shell with the usual programs, and real processes.
    Programs,
    /// Users, permissions, devices and namespaces.
    Kernel,
}

impl Needs {
    fn missing(self, isolation: Isolation) -> Option<&'static str> {
        match self {
            Self::Programs if isolation == Isolation::Fake => Some("it runs no real programs"),
            Self::Kernel if isolation == Isolation::Fake => Some("no kernel stands behind it"),
            Self::Nothing | Self::Programs | Self::Kernel => None,
        }
    }
}

type Run = fn(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A named case.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    needs: Needs,
    run: Run,
}

/// A table of cases: what each needs and which function it is.
macro_rules! cases {
    ($group:literal: $($needs:ident $case:ident,)*) => {
        pub(super) const CASES: &[super::Case] = &[$(super::Case {
            name: concat!($group, "/", stringify!($case)),
            needs: super::Needs::$needs,
            run: |context| Box::pin($case(context)),
        },)*];
    };
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
    lifecycle::CASES,
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
pub struct Judged {
    /// The case, for example `exec/exit_codes`.
    pub name: &'static str,
    /// How it went.
    pub verdict: Verdict,
}

/// What became of all cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the backend.
    pub backend: String,
    /// In the order in which they ran.
    pub cases: Vec<Judged>,
}

impl Report {
    /// Cases that did not go as they must.
    pub fn failed(&self) -> impl Iterator<Item = &Judged> {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_)))
    }

    /// Cases that this backend was let off.
    pub fn not_applicable(&self) -> impl Iterator<Item = &Judged> {
        self.cases.iter().filter(|case| matches!(case.verdict, Verdict::NotApplicable(_)))
    }

    /// For tests.
    ///
    /// # Panics
    /// With the whole table if a case failed, or if none ran.
    pub fn assert_passed(&self) {
        let ran = self.cases.len() > self.not_applicable().count();
        assert!(ran && self.failed().next().is_none(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
        for Judged { name, verdict } in &self.cases {
            match verdict {
                Verdict::Passed => writeln!(f, "{name:width$}  passed")?,
                Verdict::Failed(why) => writeln!(f, "{name:width$}  FAILED: {why}")?,
                Verdict::NotApplicable(why) => writeln!(f, "{name:width$}  not run: {why}")?,
            }
        }
        let (failed, not_run) = (self.failed().count(), self.not_applicable().count());
        let passed = self.cases.len() - failed - not_run;
        let backend = &self.backend;
        write!(f, "{backend}: {passed} passed, {failed} failed, {not_run} not applicable")
    }
}

/// Runs all cases whose name contains `filter`, one after the other, each in a
/// sandbox of its own that is destroyed afterwards.
pub async fn run(backend: Arc<dyn Backend>, filter: Option<&str>) -> Report {
    let capabilities = backend.capabilities();
    let mut report = Report { backend: capabilities.backend.clone(), cases: Vec::new() };
    let isolation = capabilities.isolation;
    let wanted = |case: &&Case| filter.is_none_or(|filter| case.name.contains(filter));
    for case in TABLES.iter().copied().flatten().filter(wanted) {
        let verdict = match case.needs.missing(isolation) {
            Some(why) => Verdict::NotApplicable(why.to_owned()),
            None => match judge(&backend, case, isolation).await {
                Ok(()) => Verdict::Passed,
                Err(why) => Verdict::Failed(why),
            },
        };
        report.cases.push(Judged { name: case.name, verdict });
    }
    report
}

async fn judge(backend: &Arc<dyn Backend>, case: &Case, isolation: Isolation) -> Outcome {
    let name = format!("conformance-{}", case.name.replace('/', "-"));
    let id = SandboxId::new(name).map_err(|error| error.to_string())?;
    let spec = Spec { isolation_min: isolation, ..Spec::default() };
    let gone = |error| format!("destroy: {error}");
    backend.destroy(&id).await.map_err(gone)?;
    let made = backend.create(&id, &spec).await;
    let sandbox = made.map_err(|error| format!("create: {error}"))?;
    let context = Context { backend: backend.clone(), sandbox, spec };
    let limit = Duration::from_millis(CASE_MS_MAX);
    let outcome = match tokio::time::timeout(limit, (case.run)(context)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("it hung for {CASE_MS_MAX} ms")),
    };
    let destroyed = backend.destroy(&id).await.map_err(gone);
    outcome.and(destroyed)
}
