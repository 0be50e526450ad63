//! What CI runs, in order, on anybody's machine.
//!
//! Owns the list of steps. Stops at the first that fails and says how to run
//! that one alone. Must never hold a check of its own.

use std::io::Write;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::child::{self, Child, code};
use crate::setup;
use crate::tally::{Runner, Tally};

/// Why the run broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A step could not be run to its end.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[from] std::io::Error),
}

/// One step.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    name: &'static str,
    child: Child,
    /// Whose counts it prints, if it runs tests.
    runner: Option<Runner>,
}

fn step(name: &'static str, typed: &str) -> Step {
    let runner = if typed.contains("cargo nextest ") {
        Some(Runner::Nextest)
    } else if typed.contains("cargo test ") {
        Some(Runner::Cargo)
    } else {
        None
    };
    Step { name, child: Child::new(typed.split_whitespace()), runner }
}

/// The steps, in the order in which CI runs them.
fn steps(has_nextest: bool) -> Vec<Step> {
    let tests = if has_nextest {
        "cargo xtask docker cargo xtask postgres cargo nextest run --workspace --no-fail-fast"
    } else {
        "cargo xtask docker cargo xtask postgres cargo test --workspace --lib --bins --tests --examples --no-fail-fast"
    };
    vec![
        step("format", "cargo fmt --all --check"),
        step("clippy", "cargo clippy --workspace --all-targets -- -D warnings"),
        step("tidy", "cargo xtask tidy"),
        step("layers", "cargo xtask layers"),
        step("subjects", "cargo xtask subjects"),
        step("tests", tests),
        step("tests of docs", "cargo test --workspace --doc"),
    ]
}

/// Runs every step; the exit code of the first that fails, or 0.
///
/// The last line is the sum of all tests, in the words of cargo's own runner.
pub(crate) fn run(out: &mut (impl Write + Send)) -> Result<u8, Error> {
    let missing = setup::missing();
    if !missing.is_empty() {
        writeln!(out, "{missing}")?;
        return Ok(2);
    }
    let steps = steps(Child::new(["cargo", "nextest", "--version"]).succeeds());
    run_steps(&steps, out)
}

fn run_steps(steps: &[Step], out: &mut (impl Write + Send)) -> Result<u8, Error> {
    let mut tally = Tally::default();
    for (index, step) in steps.iter().enumerate() {
        writeln!(out, "== {}/{} {}: {}", index + 1, steps.len(), step.name, step.child.typed())?;
        out.flush()?;
        let begin = Instant::now();
        let status = match step.runner {
            Some(runner) => run_counted(step, runner, &mut tally, out)?,
            None => step.child.run()?,
        };
        let took = begin.elapsed();
        if step.runner.is_some() {
            tally.took(took);
        }
        let exit = code(status);
        writeln!(out, "== {}: exit {exit} after {:.1} s", step.name, took.as_secs_f64())?;
        if exit != 0 {
            writeln!(
                out,
                "== stopped at `{}`; to run it alone: {}",
                step.name,
                step.child.typed()
            )?;
            if step.runner.is_some() {
                writeln!(out, "{tally}")?;
            }
            return Ok(exit);
        }
    }
    writeln!(out, "{tally}")?;
    Ok(0)
}

/// Shows what the runner prints, and reads its counts from it.
fn run_counted(
    step: &Step,
    runner: Runner,
    tally: &mut Tally,
    out: &mut (impl Write + Send),
) -> Result<ExitStatus, Error> {
    let seen = Mutex::new((tally, out, Ok(())));
    let status = step.child.run_lines(&|line: &str| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0.add(runner, line);
        if seen.2.is_ok() {
            seen.2 = writeln!(seen.1, "{line}").and_then(|()| seen.1.flush());
        }
    })?;
    seen.into_inner().unwrap_or_else(PoisonError::into_inner).2?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn the_steps_are_these() {
        let typed = |has_nextest| -> String {
            steps(has_nextest)
                .iter()
                .map(|s| format!("{}: {}\n", s.name, s.child.typed()))
                .collect()
        };
        expect![[r#"
            format: cargo fmt --all --check
            clippy: cargo clippy --workspace --all-targets -- -D warnings
            tidy: cargo xtask tidy
            layers: cargo xtask layers
            subjects: cargo xtask subjects
            tests: cargo xtask docker cargo xtask postgres cargo nextest run --workspace --no-fail-fast
            tests of docs: cargo test --workspace --doc
        "#]]
        .assert_eq(&typed(true));
        assert!(
            typed(false)
                .contains("tests: cargo xtask docker cargo xtask postgres cargo test --workspace --lib --bins --tests")
        );
    }

    fn check(steps: &[Step], exit: u8, expected: &Expect) {
        let mut out = Vec::new();
        assert_eq!(run_steps(steps, &mut out).expect("every step starts"), exit);
        let text = String::from_utf8(out).expect("we write text");
        // Times differ from run to run.
        let text: String = text
            .lines()
            .map(|line| line.split(" after ").next().unwrap_or(line))
            .map(|line| line.split("; finished in ").next().unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect();
        expected.assert_eq(&text);
    }

    #[test]
    fn the_last_line_adds_up_the_tests() {
        let result = "test result: ok. 2 passed; 0 failed; 0 ignored";
        let counted =
            |name| Step { runner: Some(Runner::Cargo), ..step(name, &format!("echo {result}")) };
        check(
            &[step("format", "true"), counted("tests"), counted("tests of docs")],
            0,
            &expect![[r#"
                == 1/3 format: true
                == format: exit 0
                == 2/3 tests: echo test result: ok. 2 passed; 0 failed; 0 ignored
                test result: ok. 2 passed; 0 failed; 0 ignored
                == tests: exit 0
                == 3/3 tests of docs: echo test result: ok. 2 passed; 0 failed; 0 ignored
                test result: ok. 2 passed; 0 failed; 0 ignored
                == tests of docs: exit 0
                test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
            "#]],
        );
    }

    #[test]
    fn the_first_failure_stops_and_says_how_to_run_it_alone() {
        check(
            &[step("format", "true"), step("layers", "false"), step("tests", "true")],
            1,
            &expect![[r"
                == 1/3 format: true
                == format: exit 0
                == 2/3 layers: false
                == layers: exit 1
                == stopped at `layers`; to run it alone: false
            "]],
        );
    }
}
