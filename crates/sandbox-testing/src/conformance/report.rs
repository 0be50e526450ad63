//! What came of a run of the suite, for people and for tests.

use std::fmt;

/// How a case went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseStatus {
    /// As it must.
    Passed,
    /// Not as it must, and how.
    Failed(String),
    /// Not run, and why this backend is let off.
    NotApplicable(String),
}

/// A case with its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseResult {
    /// The case, for example `exec/exit_codes`.
    pub name: &'static str,
    /// How it went.
    pub status: CaseStatus,
    /// How long it took, with the making and the removal of its sandbox. In milliseconds.
    pub took_ms: u64,
}

/// What became of all cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteReport {
    /// Name of the backend.
    pub backend: String,
    /// In the order in which they ran.
    pub cases: Vec<CaseResult>,
}

impl SuiteReport {
    /// Cases that did not go as they must.
    pub fn failed(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| matches!(case.status, CaseStatus::Failed(_)))
    }

    /// Cases that this backend was let off.
    pub fn not_applicable(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| matches!(case.status, CaseStatus::NotApplicable(_)))
    }

    /// What this backend was let off, a line for each reason with the names of the
    /// cases, for a test that pins them: a declaration that says less than it did is
    /// seen, and so is a case that nothing runs any more.
    pub fn let_off(&self) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for case in self.not_applicable() {
            let CaseStatus::NotApplicable(why) = &case.status else { continue };
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

impl fmt::Display for SuiteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
        for CaseResult { name, status, took_ms } in &self.cases {
            match status {
                CaseStatus::Passed => writeln!(f, "{name:width$}  passed in {took_ms} ms")?,
                CaseStatus::Failed(_) => writeln!(f, "{name:width$}  FAILED after {took_ms} ms")?,
                CaseStatus::NotApplicable(why) => writeln!(f, "{name:width$}  not run: {why}")?,
            }
        }
        let (failed, not_run) = (self.failed().count(), self.not_applicable().count());
        let passed = self.cases.len() - failed - not_run;
        let backend = &self.backend;
        write!(f, "{backend}: {passed} passed, {failed} failed, {not_run} not applicable")?;
        for CaseResult { name, status, took_ms } in self.failed() {
            let CaseStatus::Failed(why) = status else { continue };
            write!(f, "\n{name} FAILED after {took_ms} ms: {why}")?;
        }
        Ok(())
    }
}
