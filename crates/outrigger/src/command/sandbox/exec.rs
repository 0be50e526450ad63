//! `outrigger sandbox exec`: one command, its output as it comes, its exit code.

use clap::{Args, value_parser};
use outrigger_sandbox::{
    Command, End, Error, ExecId, ExecOutcome, Execute, Output, OutputSink, limits,
};
use serde_json::json;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::context::{SandboxContext, fresh};
use super::network::ExecNetwork;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags;
use crate::sandbox::failed;
use crate::show::{self, Screen, Tone, inert, word};

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The sandbox.
    pub(crate) name: String,
    /// Where to run it, absolute or beneath the workspace.
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Variables of its environment.
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Kill it with all its processes after so long. The sandbox has as long to answer at all.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Give it a file, or standard input for `-`, as its standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Its name within the sandbox: one that ran already is not run again, its outcome is shown.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// A line for the sandbox's shell instead of a program and its arguments.
    #[arg(
        long,
        short = 'c',
        value_name = "LINE",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    pub(crate) line: Option<String>,
    /// The program and its arguments. What stands behind its name is its own.
    #[arg(trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) output: flags::Output,
}

/// The code of a command that was killed at its deadline, as timeout(1) has it.
const DEADLINE_CODE: u8 = 124;
/// The code of a command that was killed otherwise, as a shell has it.
const KILLED_CODE: u8 = 137;

pub(super) async fn execute(sandboxes: &SandboxContext, asked: Exec) -> Outcome<u8> {
    let (limit, name) = (Duration::from_secs(asked.timeout), &asked.name);
    let sandbox = tokio::time::timeout(limit, sandboxes.existing(name)).await.map_err(|_| {
        let text = format!("sandbox `{name}` does not answer within {} s", asked.timeout);
        Failure::new(Kind::SandboxUnavailable, text)
    })??;
    let mut request = request(&asked)?;
    let network = ExecNetwork::open(sandboxes, &*sandbox, &mut request).await?;
    let id = request.id.clone();
    let (shown, hidden) = (OutputRelay::new(), ());
    let is_hidden = asked.output.json.is_some() || asked.output.quiet;
    let sink: &dyn OutputSink = if is_hidden { &hidden } else { &shown };
    let executed = ExecNetwork::during(network.as_ref(), sandbox.execute(request, sink));
    let done = tokio::select! {
        done = executed => done.map_err(|error| not_done(&error, &asked))?,
        _ = tokio::signal::ctrl_c() => {
            sandbox.kill(&id).await.map_err(|error| failed(&error))?;
            return Err(Failure::new(Kind::Interrupted, "the command was killed"));
        }
    };
    if let Some(network) = network {
        network.explain(&Screen::new(asked.output)).await;
    }
    report(&done, id.as_str(), &asked)
}

/// Says how the command ended, by our own exit code too.
pub(crate) fn report(done: &ExecOutcome, id: &str, asked: &Exec) -> Outcome<u8> {
    if asked.output.json.is_some() {
        show::line(&object(&asked.name, id, done))?;
    } else {
        explain(done, asked.timeout, &Screen::new(asked.output));
    }
    Ok(code(done))
}

/// What went wrong. Who means a line for a shell is told how it is given.
fn not_done(error: &Error, asked: &Exec) -> Failure {
    let failure = failed(error);
    match &asked.command[..] {
        [line] if matches!(error, Error::CannotStart { .. }) && line.contains(' ') => {
            let (name, line) = (word(&asked.name), word(line));
            failure.hint(format!("A line for a shell: outrigger sandbox exec {name} -c {line}"))
        }
        _ => failure,
    }
}

pub(crate) fn request(asked: &Exec) -> Outcome<Execute> {
    let command = match &asked.line {
        Some(line) => Command::Shell(line.clone()),
        None => Command::Argv(asked.command.iter().map(|word| word.as_bytes().to_vec()).collect()),
    };
    let id = ExecId::new(asked.id.clone().unwrap_or_else(|| fresh("exec")));
    let id = id.map_err(|error| Failure::from_error(Kind::Usage, &error))?;
    let mut request = Execute::new(id, command);
    request.cwd.clone_from(&asked.cwd);
    request.deadline_ms = asked.timeout * 1_000;
    request.stdout_bytes_max = limits::OUTPUT_BYTES_MAX;
    request.stderr_bytes_max = limits::OUTPUT_BYTES_MAX;
    for variable in &asked.env {
        let (name, value) = variable.split_once('=').ok_or_else(|| {
            Failure::new(Kind::Usage, format!("`{variable}` is not of the form NAME=VALUE"))
        })?;
        request.env.insert(name.to_owned(), value.to_owned());
    }
    if let Some(file) = &asked.stdin {
        request.stdin = input(file)?;
    }
    Ok(request)
}

/// A file to its end, or as far as one request can carry, and one byte: the request
/// is then refused with the limit in words.
fn input(file: &Path) -> Outcome<Vec<u8>> {
    let most = limits::STDIN_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::new(Kind::Usage, format!("{}: {error}", file.display())))?;
    Ok(bytes)
}

fn object(name: &str, id: &str, done: &ExecOutcome) -> serde_json::Value {
    let end = match done.end {
        End::Exited(_) => "exited",
        End::Signalled(_) => "signalled",
        End::OutOfMemory => "out_of_memory",
        End::Deadline => "deadline",
        End::Killed => "killed",
        End::DiskFull => "disk_full",
    };
    json!({
        "type": "executed",
        "sandbox": name,
        "id": id,
        "end": end,
        "exit_code": done.exit_code(),
        "stdout": String::from_utf8_lossy(&done.stdout),
        "stderr": String::from_utf8_lossy(&done.stderr),
        "stdout_dropped_bytes": done.stdout_dropped_bytes,
        "stderr_dropped_bytes": done.stderr_dropped_bytes,
        "wall_ms": done.wall_ms,
        "cpu_ms": done.cpu_ms,
        "peak_memory_bytes": done.peak_memory_bytes,
    })
}

/// Says what the exit code alone does not.
fn explain(done: &ExecOutcome, timeout: u64, screen: &Screen) {
    if let Some(text) = show::killed(done.end, timeout) {
        screen.note(Tone::Warning, text);
    }
    let dropped = done.stdout_dropped_bytes + done.stderr_dropped_bytes;
    if dropped > 0 {
        screen.note(Tone::Warning, format!("{dropped} bytes of output are not shown"));
    }
}

fn code(done: &ExecOutcome) -> u8 {
    match (done.end, done.exit_code()) {
        (End::Deadline, _) => DEADLINE_CODE,
        (_, Some(code)) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        (_, None) => KILLED_CODE,
    }
}

/// Passes output on: as it is to files and pipes, made harmless to a terminal.
pub(crate) struct OutputRelay {
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
}

impl OutputRelay {
    pub(crate) fn new() -> Self {
        Self {
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }
}

/// A reader that has gone is no error of ours, and nothing that a command waits for.
fn put(mut to: impl Write, bytes: &[u8], is_terminal: bool) {
    let written = if is_terminal {
        to.write_all(inert(&String::from_utf8_lossy(bytes)).as_bytes())
    } else {
        to.write_all(bytes)
    };
    drop(written.and_then(|()| to.flush()));
}

impl OutputSink for OutputRelay {
    fn output(&self, output: Output<'_>) {
        match output {
            Output::Stdout(bytes) => put(std::io::stdout(), bytes, self.stdout_is_terminal),
            Output::Stderr(bytes) => put(std::io::stderr(), bytes, self.stderr_is_terminal),
        }
    }
}
