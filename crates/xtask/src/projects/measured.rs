//! A test command that says itself how it went.
//!
//! Owns the line for the shell around it and the line that it prints at its end, the same
//! on the host and in a sandbox: what both are compared by must not depend on who starts it.

use serde::Serialize;

use super::list::Project;
use crate::limits::PROJECT_TAIL_LINES;

/// Begins the line that tells how it went, and stands nowhere else with a number behind it.
const MARK: &str = "measured-tests ";

/// How a test command went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Measurement {
    /// Its exit code.
    pub(crate) code: u8,
    /// From its start to its end.
    pub(crate) ms: u64,
    /// Processor time of all that it started, which other work on the machine changes less.
    pub(crate) cpu_ms: u64,
    /// Tests that passed.
    pub(crate) passed: u64,
}

/// The line for the shell: runs the tests, and says at the end how they went. If they fail,
/// it shows the end of what they printed.
pub(crate) fn line(project: &Project) -> String {
    let Project { test, passed, .. } = project;
    let count =
        "{ n += match($0, /[0-9]+/) ? substr($0, RSTART, RLENGTH) : 1 } END { print n + 0 }";
    // The second line of `times` has those of children that were waited for.
    let cpu = "NR == 2 { gsub(\"s\", \"\"); split($1 \"m\" $2, t, \"m\"); \
               printf \"%d\", (t[1] * 60 + t[2] + t[3] * 60 + t[4]) * 1000 }";
    format!(
        "log=$(mktemp); begun=$(date +%s%N); \
         ( {test} ) >\"$log\" 2>&1 </dev/null; code=$?; ended=$(date +%s%N); \
         times >\"$log.times\"; cpu=$(awk '{cpu}' \"$log.times\"); \
         passed=$(grep -aoE -e '{passed}' \"$log\" | awk '{count}'); \
         [ $code = 0 ] || tail -n {PROJECT_TAIL_LINES} \"$log\"; rm -f \"$log\" \"$log.times\"; \
         printf '{MARK}%d %d %d %d\\n' $code $(( (ended - begun) / 1000000 )) $cpu $passed"
    )
}

impl Measurement {
    /// Reads the line at the end out of everything that was printed.
    pub(crate) fn read(printed: &str) -> Option<Self> {
        let numbers = |rest: &str| {
            let mut numbers = rest.split(|other: char| !other.is_ascii_digit()).map(str::parse);
            let mut next = || numbers.next()?.ok();
            let mut four: [u64; 4] = [0; 4];
            for number in &mut four {
                *number = next()?;
            }
            let [code, ms, cpu_ms, passed] = four;
            Some(Self { code: u8::try_from(code).ok()?, ms, cpu_ms, passed })
        };
        printed.split(MARK).skip(1).filter_map(numbers).last()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn ran(test: &str, passed: &str) -> (Measurement, String) {
        let text = |text: &str| text.to_owned();
        let project = Project {
            name: text("p"),
            language: text("C"),
            git: text("https://example.org/a/b"),
            commit: text("0"),
            once: Vec::new(),
            test: text(test),
            passed: text(passed),
        };
        let output = Command::new("bash").arg("-c").arg(line(&project)).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        (Measurement::read(&printed).unwrap(), printed)
    }

    #[test]
    fn tests_are_counted_by_numbers_or_by_lines() {
        for (test, passed, expected) in [
            ("echo 12 passed; echo 3 passed", "[0-9]+ passed", (0, 15)),
            ("echo '--- PASS: a'; echo '--- PASS: b'; exit 3", "--- PASS", (3, 2)),
            ("true", "[0-9]+ passed", (0, 0)),
            ("cd / && kill -9 $BASHPID", "x", (137, 0)),
        ] {
            let (Measurement { code, passed, .. }, _) = ran(test, passed);
            assert_eq!((code, passed), expected, "{test}");
        }
    }

    #[test]
    fn what_failing_tests_printed_is_shown() {
        assert!(ran("echo why; false", "x").1.starts_with("why\n"));
        assert!(!ran("echo why", "x").1.contains("why"));
    }

    #[test]
    fn a_command_that_is_only_shown_says_nothing() {
        assert_eq!(Measurement::read(&format!("printf '{MARK}%d %d %d %d'")), None);
        let read = Measurement::read(&format!("{MARK}%d\\n{MARK}0 1500 900 7\\nend"));
        assert_eq!(read, Some(Measurement { code: 0, ms: 1500, cpu_ms: 900, passed: 7 }));
    }
}
