//! How many tests ran, read from what the test runners print.
//!
//! Owns the two summary lines that cargo's own runner and nextest print, and
//! the one line that adds them up. Must never judge: exit codes do.

use std::fmt;
use std::time::Duration;

/// Whose summary lines count. Nextest shows the output of a failed test, and in it
/// the summary of cargo's own runner for that one test, which must not count again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo test`.
    Cargo,
    /// `cargo nextest run`.
    Nextest,
}

/// Tests counted over several runs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    took: Duration,
}

impl Tally {
    /// Adds a line, if it is the runner's summary.
    pub(crate) fn add(&mut self, runner: Runner, line: &str) {
        let line = line.trim();
        let counts = match runner {
            Runner::Cargo => line.strip_prefix("test result: "),
            Runner::Nextest => line
                .strip_prefix("Summary [")
                .and_then(|line| line.split_once(" run: "))
                .map(|(_, counts)| counts),
        };
        let Some(counts) = counts else { return };
        // `ok. 3 passed; 1 failed; ...` and `3 passed (1 slow), 1 failed, ...`
        for part in counts.split([';', ',', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" | "timed" => self.failed += number,
                "ignored" | "skipped" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Adds the time that a run took.
    pub(crate) fn took(&mut self, time: Duration) {
        self.took += time;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.failed == 0 && self.passed > 0 { "ok" } else { "FAILED" };
        write!(
            f,
            "test result: {verdict}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in {:.2}s",
            self.passed,
            self.failed,
            self.ignored,
            self.took.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(lines: &[(Runner, &str)], expected: &Expect) {
        let mut tally = Tally::default();
        for (runner, line) in lines {
            tally.add(*runner, line);
        }
        expected.assert_eq(&tally.to_string());
    }

    #[test]
    fn both_runners_add_up() {
        check(
            &[
                (Runner::Cargo, "running 4 tests"),
                (
                    Runner::Cargo,
                    "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.03s",
                ),
                (
                    Runner::Nextest,
                    "     Summary [   1.204s] 41 tests run: 41 passed (2 slow), 2 skipped",
                ),
            ],
            &expect![
                "test result: ok. 44 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s"
            ],
        );
    }

    #[test]
    fn failures_count_in_every_spelling() {
        check(
            &[
                (
                    Runner::Cargo,
                    "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.03s",
                ),
                (
                    Runner::Nextest,
                    "     Summary [   1.204s] 9/10 tests run: 7 passed, 1 failed, 1 timed out, 0 skipped",
                ),
            ],
            &expect![
                "test result: FAILED. 10 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
            ],
        );
    }

    #[test]
    fn no_test_at_all_is_no_success() {
        check(
            &[(Runner::Cargo, "error: could not compile")],
            &expect![
                "test result: FAILED. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
            ],
        );
    }

    #[test]
    fn a_summary_within_the_output_of_a_test_does_not_count() {
        check(
            &[
                (Runner::Nextest, "    test result: FAILED. 0 passed; 1 failed; 0 ignored"),
                (
                    Runner::Nextest,
                    "     Summary [   0.208s] 3 tests run: 2 passed, 1 failed, 0 skipped",
                ),
            ],
            &expect![
                "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
            ],
        );
    }
}
