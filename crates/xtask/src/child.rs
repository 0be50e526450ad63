//! Programs that the checks start.
//!
//! Owns how a child is started, how its output is handed on line by line, and
//! how its end becomes our exit code. Must never interpret what it prints.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};

/// Why a child did not run to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It could not be started.
    #[error("cannot start `{command}`")]
    Start {
        /// As a person would type it.
        command: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It started, and we lost it.
    #[error("lost `{command}` while it ran")]
    Lost {
        /// As a person would type it.
        command: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    argv: Vec<String>,
    variables: Vec<(String, String)>,
}

/// What is killed again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Killed {
    /// The engine.
    #[default]
    Engine,
    /// The engine over a database that `cargo xtask postgres` starts.
    EngineOnPostgres,
    /// The gate that it reaches models, and sandboxes reach hosts, through.
    Gate,
}

/// Whether the arguments of the attacks name a backend that needs a Docker engine.
pub(crate) fn wants_docker(args: &[String]) -> bool {
    args.iter().any(|arg| matches!(arg.trim_start_matches("--backend="), "docker" | "all"))
}

impl Child {
    /// From words, the first being the program.
    pub(crate) fn new<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        Self { argv: words.into_iter().map(Into::into).collect(), variables: Vec::new() }
    }

    /// Sets a variable of its environment.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What builds the program itself as it is published, beside those of the simulation crate.
    pub(crate) fn program() -> Self {
        let words = ["cargo", "build", "--release", "--quiet", "--package", "outrigger"];
        Self::new(words.into_iter().chain(["--bin", "outrigger"]))
    }

    /// A program of the simulation crate, built for speed.
    pub(crate) fn sim_bin(bin: &str, args: impl IntoIterator<Item = String>) -> Self {
        let words = ["cargo", "run", "--release", "--quiet", "--package", "outrigger-sim"];
        let words = words.into_iter().chain(["--bin", bin, "--"]).map(str::to_owned);
        Self::new(words.chain(args))
    }

    /// What measures the gate, built for speed.
    pub(crate) fn gate_bench(args: impl IntoIterator<Item = String>) -> Self {
        let words = ["cargo", "run", "--release", "--quiet", "--package", "outrigger-gate"];
        let words = words.into_iter().chain(["--example", "bench", "--"]).map(str::to_owned);
        Self::new(words.chain(args))
    }

    /// What measures the server from outside, beside the program.
    pub(crate) fn server_bench(args: impl IntoIterator<Item = String>) -> Self {
        let words = ["cargo", "run", "--release", "--quiet", "--package", "outrigger-api"];
        let words = words.into_iter().chain(["--example", "bench-server", "--"]);
        Self::new(words.map(str::to_owned).chain(args))
    }

    /// The program that attacks sandboxes, built for speed, because it floods itself.
    pub(crate) fn attack(args: impl IntoIterator<Item = String>) -> Self {
        let words = ["cargo", "run", "--release", "--quiet", "--package", "outrigger-attack"];
        let words = words.into_iter().chain(["--bin", "attack", "--"]).map(str::to_owned);
        Self::new(words.chain(args))
    }

    /// The test that kills the program, so often.
    pub(crate) fn kills(times: u32, killed: Killed) -> Self {
        let words = ["cargo", "test", "--quiet", "--package", "outrigger", "--test", "it", "--"];
        let (test, variable) = match killed {
            Killed::Engine => (
                "kill::a_session_killed_at_any_moment_goes_on_and_does_nothing_twice",
                "OUTRIGGER_TEST_KILLS",
            ),
            Killed::EngineOnPostgres => (
                "kill::a_session_killed_at_any_moment_goes_on_in_a_database_of_postgresql",
                "OUTRIGGER_TEST_KILLS",
            ),
            Killed::Gate => (
                "gate_kill::a_gate_killed_at_any_moment_costs_no_turn_and_no_command_hangs",
                "OUTRIGGER_TEST_GATE_KILLS",
            ),
        };
        let words = words.into_iter().chain([test, "--exact", "--nocapture"]);
        Self::new(words).with(variable, &times.to_string())
    }

    /// As a person would type it.
    pub(crate) fn typed(&self) -> String {
        self.argv.join(" ")
    }

    /// Runs it with our own input and output.
    pub(crate) fn run(&self) -> Result<ExitStatus, Error> {
        self.command().status().map_err(|source| self.start(source))
    }

    /// Runs it and hands on every line of both its outputs, as they come.
    pub(crate) fn run_lines(&self, each: &(impl Fn(&str) + Sync)) -> Result<ExitStatus, Error> {
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| self.start(source))?;
        let stdout = child.stdout.take().expect("stdout was asked to be a pipe");
        let stderr = child.stderr.take().expect("stderr was asked to be a pipe");
        std::thread::scope(|scope| {
            scope.spawn(|| lines(stderr, each));
            lines(stdout, each);
        });
        child.wait().map_err(|source| Error::Lost { command: self.typed(), source })
    }

    /// Runs it with its output on our standard error, where ours is for a program.
    pub(crate) fn run_on_stderr(&self) -> Result<ExitStatus, Error> {
        let quiet = self.command().stdin(Stdio::null()).stdout(std::io::stderr()).status();
        quiet.map_err(|source| self.start(source))
    }

    /// Runs it without input, and gives what it printed: first its output, then its errors.
    pub(crate) fn output(&self) -> Result<String, Error> {
        let output = self.command().stdin(Stdio::null()).output();
        let output = output.map_err(|source| self.start(source))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(text(&output.stdout) + &text(&output.stderr))
    }

    /// Whether it starts and succeeds, in silence.
    pub(crate) fn succeeds(&self) -> bool {
        let silent = self.command().stdout(Stdio::null()).stderr(Stdio::null()).status();
        silent.is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        let (program, args) = self.argv.split_first().expect("a child has a program");
        let mut command = Command::new(program);
        command.args(args).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn start(&self, source: std::io::Error) -> Error {
        Error::Start { command: self.typed(), source }
    }
}

fn lines(from: impl Read, each: &impl Fn(&str)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // A broken pipe ends the output; the exit status tells the rest.
    while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        each(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// The exit code that a shell would show.
pub(crate) fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn output_is_seen_by_line_and_the_end_becomes_a_code() {
        let seen = Mutex::new(Vec::new());
        let child = Child::new(["sh", "-c", "echo one; echo two; exit 3"]);
        let status = child
            .run_lines(&|line: &str| {
                seen.lock().expect("no test panics here").push(line.to_owned())
            })
            .expect("sh starts");
        assert_eq!(code(status), 3);
        assert_eq!(seen.into_inner().expect("no test panics here"), ["one", "two"]);
    }

    #[test]
    fn output_is_given_with_errors_behind_it() {
        let child = Child::new(["sh", "-c", "echo err >&2; echo out; cat; exit 3"]);
        assert_eq!(child.output().expect("sh starts"), "out\nerr\n");
    }

    #[test]
    fn a_signal_reads_as_in_a_shell() {
        let status = Child::new(["sh", "-c", "kill -TERM $$"]).run().expect("sh starts");
        assert_eq!(code(status), 128 + 15);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Child::new(["no-such-program", "x"]).run().expect_err("there is none");
        assert_eq!(error.to_string(), "cannot start `no-such-program x`");
        assert!(!Child::new(["no-such-program"]).succeeds());
    }

    #[test]
    fn arguments_reach_the_simulation_untouched() {
        let child = Child::sim_bin("bench", ["turn", "--json"].map(str::to_owned));
        assert_eq!(
            child.typed(),
            "cargo run --release --quiet --package outrigger-sim --bin bench -- turn --json"
        );
        let child = Child::gate_bench(["--json".to_owned()]);
        assert_eq!(
            child.typed(),
            "cargo run --release --quiet --package outrigger-gate --example bench -- --json"
        );
        let child = Child::server_bench(["--json".to_owned()]);
        assert_eq!(
            child.typed(),
            "cargo run --release --quiet --package outrigger-api --example bench-server -- --json"
        );
    }
}
