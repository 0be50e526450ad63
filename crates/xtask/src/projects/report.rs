//! What the rounds come to: a line for each project, and the verdict over all.
//!
//! Owns the arithmetic and the table. Must never run anything.

use std::fmt;

use serde::Serialize;

use super::measured::Measurement;
use crate::limits::PROJECTS_RATIO_PERCENT_MAX;

/// One run on the host and one in a sandbox after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// On the host.
    pub(crate) host: Measurement,
    /// In a sandbox, if the command was run there at all.
    pub(crate) sandbox: Option<Measurement>,
    /// The whole `outrigger run`, in milliseconds.
    pub(crate) run_ms: u64,
}

/// A project in the table.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    language: String,
    /// Tests that passed in the first run on the host.
    tests: u64,
    /// Medians over the rounds.
    host_ms: u64,
    sandbox_ms: u64,
    run_ms: u64,
    ratio: f64,
    /// Processor time in sandboxes over that on the host, of medians.
    cpu_ratio: f64,
    /// Why it counts as failed.
    failure: Option<String>,
}

/// The table.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    projects: Vec<Row>,
    /// All time in sandboxes over all time on the host, of the projects that pass.
    ratio: f64,
}

impl Row {
    /// What the rounds of a project come to. There has to be one.
    pub(crate) fn of(name: &str, language: &str, rounds: &[Round]) -> Self {
        let tests = rounds.first().map_or(0, |round| round.host.passed);
        let median_of = |ms: &dyn Fn(&Round) -> u64| median(rounds.iter().map(ms).collect());
        let host_ms = median_of(&|round| round.host.ms);
        let sandbox_ms = median_of(&|round| round.sandbox.map_or(0, |it| it.ms));
        Self {
            name: name.to_owned(),
            language: language.to_owned(),
            tests,
            host_ms,
            sandbox_ms,
            run_ms: median_of(&|round| round.run_ms),
            ratio: ratio(sandbox_ms, host_ms),
            cpu_ratio: ratio(
                median_of(&|round| round.sandbox.map_or(0, |it| it.cpu_ms)),
                median_of(&|round| round.host.cpu_ms),
            ),
            failure: rounds.iter().find_map(|round| failure(round, tests)),
        }
    }

    /// One that could not be tried.
    pub(crate) fn untried(name: &str, language: &str, why: String) -> Self {
        Self { failure: Some(why), ..Self::of(name, language, &[]) }
    }

    /// Whether it is to be told of: it fails, or takes longer than it may.
    fn is_slow(&self) -> bool {
        self.failure.is_none() && exceeds(self.ratio)
    }
}

fn failure(round: &Round, tests: u64) -> Option<String> {
    let Round { host, sandbox, .. } = round;
    let Some(sandbox) = sandbox else {
        return Some("nothing was run in a sandbox".to_owned());
    };
    match (host, sandbox) {
        (host, _) if host.code != 0 => Some(format!("exit code {} on the host", host.code)),
        (host, _) if host.passed == 0 => Some("no test passes on the host".to_owned()),
        (host, _) if host.passed != tests => {
            Some(format!("{} and {tests} tests pass on the host", host.passed))
        }
        (_, sandbox) if sandbox.code != 0 => Some(format!("exit code {}", sandbox.code)),
        (_, sandbox) if sandbox.passed != tests => {
            Some(format!("{} tests pass instead of {tests}", sandbox.passed))
        }
        _ => None,
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of some minutes")]
fn ratio(sandbox_ms: u64, host_ms: u64) -> f64 {
    if host_ms == 0 { 0.0 } else { sandbox_ms as f64 / host_ms as f64 }
}

fn exceeds(ratio: f64) -> bool {
    ratio * 100.0 > f64::from(PROJECTS_RATIO_PERCENT_MAX)
}

impl Report {
    /// The table of these.
    pub(crate) fn of(projects: Vec<Row>) -> Self {
        let passing = || projects.iter().filter(|row| row.failure.is_none());
        let sum = |ms: fn(&Row) -> u64| passing().map(ms).sum();
        let ratio = ratio(sum(|row| row.sandbox_ms), sum(|row| row.host_ms));
        Self { projects, ratio }
    }

    /// Whether all pass, and in the time that they may take together.
    pub(crate) fn is_good(&self) -> bool {
        self.projects.iter().all(|row| row.failure.is_none()) && !exceeds(self.ratio)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| project | language | tests | host s | sandbox s | ratio | of CPU time | whole run s |"
        )?;
        writeln!(f, "|---|---|---:|---:|---:|---:|---:|---:|")?;
        for row in &self.projects {
            let Row { name, language, tests, host_ms, sandbox_ms, run_ms, failure, .. } = row;
            let (host, sandbox, run) = (Seconds(*host_ms), Seconds(*sandbox_ms), Seconds(*run_ms));
            let ratio = match failure {
                Some(_) => "FAILED".to_owned(),
                None => format!("{:.2}", row.ratio),
            };
            writeln!(
                f,
                "| {name} | {language} | {tests} | {host} | {sandbox} | {ratio} | {:.2} | {run} |",
                row.cpu_ratio
            )?;
        }
        for row in &self.projects {
            if let Some(failure) = &row.failure {
                writeln!(f, "{}: {failure}", row.name)?;
            } else if row.is_slow() {
                writeln!(f, "{}: {:.2} times the host's time", row.name, row.ratio)?;
            }
        }
        let passed = self.projects.iter().filter(|row| row.failure.is_none()).count();
        let all = self.projects.len();
        let verdict = if self.is_good() { "ok" } else { "FAILED" };
        let most = f64::from(PROJECTS_RATIO_PERCENT_MAX) / 100.0;
        writeln!(
            f,
            "projects: {verdict}, {passed} of {all} pass, {:.2} times the host's time (at most {most})",
            self.ratio
        )
    }
}

/// Milliseconds, shown as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0 + 5) / 10;
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn round(host: (u8, u64, u64), sandbox: Option<(u8, u64, u64)>) -> Round {
        let measured = |(code, ms, passed)| Measurement { code, ms, cpu_ms: ms, passed };
        Round { host: measured(host), sandbox: sandbox.map(measured), run_ms: 9_000 }
    }

    #[test]
    fn medians_are_compared_and_what_fails_says_why() {
        let good = [
            round((0, 1_000, 7), Some((0, 9_000, 7))),
            round((0, 1_004, 7), Some((0, 1_100, 7))),
            round((0, 5_000, 7), Some((0, 1_000, 7))),
        ];
        let report = Report::of(vec![
            Row::of("good", "C", &good),
            Row::of("slow", "C", &[round((0, 1_000, 1), Some((0, 1_300, 1)))]),
            Row::of("fewer", "C", &[round((0, 1_000, 7), Some((0, 900, 6)))]),
            Row::of("red", "C", &[round((0, 1_000, 7), Some((1, 900, 7)))]),
            Row::of("red here", "C", &[round((2, 1_000, 7), Some((2, 900, 7)))]),
            Row::of("empty", "C", &[round((0, 1_000, 0), Some((0, 900, 0)))]),
            Row::of("not run", "C", &[round((0, 1_000, 7), None)]),
            Row::untried("absent", "C", "`npm ci` ends with 1".to_owned()),
        ]);
        assert!(!report.is_good());
        expect![[r#"
            | project | language | tests | host s | sandbox s | ratio | of CPU time | whole run s |
            |---|---|---:|---:|---:|---:|---:|---:|
            | good | C | 7 | 1.00 | 1.10 | 1.10 | 1.10 | 9.00 |
            | slow | C | 1 | 1.00 | 1.30 | 1.30 | 1.30 | 9.00 |
            | fewer | C | 7 | 1.00 | 0.90 | FAILED | 0.90 | 9.00 |
            | red | C | 7 | 1.00 | 0.90 | FAILED | 0.90 | 9.00 |
            | red here | C | 7 | 1.00 | 0.90 | FAILED | 0.90 | 9.00 |
            | empty | C | 0 | 1.00 | 0.90 | FAILED | 0.90 | 9.00 |
            | not run | C | 7 | 1.00 | 0.00 | FAILED | 0.00 | 9.00 |
            | absent | C | 0 | 0.00 | 0.00 | FAILED | 0.00 | 0.00 |
            slow: 1.30 times the host's time
            fewer: 6 tests pass instead of 7
            red: exit code 1
            red here: exit code 2 on the host
            empty: no test passes on the host
            not run: nothing was run in a sandbox
            absent: `npm ci` ends with 1
            projects: FAILED, 2 of 8 pass, 1.20 times the host's time (at most 1.15)
        "#]]
        .assert_eq(&report.to_string());
    }

    #[test]
    fn the_time_of_all_counts_and_not_of_each() {
        let rows = || vec![Row::of("slow", "C", &[round((0, 100, 1), Some((0, 200, 1)))])];
        assert!(!Report::of(rows()).is_good());
        let mut all = rows();
        all.push(Row::of("long", "C", &[round((0, 9_900, 1), Some((0, 9_900, 1)))]));
        assert!(Report::of(all).is_good());
    }
}
