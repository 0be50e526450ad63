//! Commands as they are asked for, and what came of them.

use outrigger_api::limits::EXEC_OUTPUT_BYTES_MAX;
use outrigger_api::{ExecEnd, ExecInfo, ExecState, ProblemCode, RunCommand, TerminalDimensions};
use outrigger_sandbox::{
    Command, End, ExecId, ExecOutcome, Execute, Streams, TerminalSize, limits,
};

use crate::RequestError;
use crate::limits::TERMINAL_SIDE_MAX;

fn invalid(text: impl Into<String>) -> RequestError {
    RequestError::new(ProblemCode::InvalidRequest, text)
}

/// A made-up name.
fn fresh(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

fn exec_id(name: &str) -> Result<ExecId, RequestError> {
    ExecId::new(name).map_err(|error| invalid(error.to_string()))
}

/// A name that nobody else made up.
pub(super) fn fresh_exec(what: &str) -> ExecId {
    ExecId::new(fresh(what)).expect("letters, a dash and digits are plain")
}

/// The size that is asked for, if a terminal can have it.
pub(super) fn size(asked: TerminalDimensions) -> Result<TerminalSize, RequestError> {
    let sides = 1..=TERMINAL_SIDE_MAX;
    if sides.contains(&asked.rows) && sides.contains(&asked.cols) {
        return Ok(TerminalSize { rows: asked.rows, columns: asked.cols });
    }
    Err(invalid(format!("a terminal has 1 to {TERMINAL_SIDE_MAX} rows and cols")))
}

/// What is asked for, as the sandbox is asked.
pub(super) fn request(asked: RunCommand) -> Result<Execute, RequestError> {
    let command = match (asked.argv, asked.shell) {
        (Some(words), None) => Command::Argv(words.into_iter().map(String::into_bytes).collect()),
        (None, Some(line)) => Command::Shell(line),
        _ => return Err(invalid("give either `argv` or `shell`: what is to run")),
    };
    let cap = asked.output_bytes_max.unwrap_or(limits::OUTPUT_BYTES_DEFAULT);
    if cap > EXEC_OUTPUT_BYTES_MAX {
        let text = format!("`output_bytes_max` of {cap}: {EXEC_OUTPUT_BYTES_MAX} is the most");
        return Err(invalid(text).hint("Have it written into a file, and read that."));
    }
    let id = asked.id.unwrap_or_else(|| fresh("exec"));
    let mut request = Execute::new(exec_id(&id)?, command);
    request.cwd = asked.cwd;
    request.env = asked.env;
    request.stdin = asked.stdin.into_bytes();
    request.deadline_ms = asked.deadline_ms.unwrap_or(request.deadline_ms);
    request.stdout_bytes_max = cap;
    request.stderr_bytes_max = cap;
    request.streams = if asked.merged { Streams::Merged } else { Streams::Separate };
    request.terminal = asked.terminal.map(size).transpose()?;
    request.check()?;
    Ok(request)
}

/// A request for what runs or ran by that name already. Where the guest has not heard of it after
/// all, it can't be started.
pub(super) fn attach(id: ExecId) -> Execute {
    let mut request = Execute::new(id, Command::Argv(vec![b"/".to_vec()]));
    request.deadline_ms = limits::DEADLINE_MS_MAX;
    request.stdout_bytes_max = limits::OUTPUT_BYTES_MAX;
    request.stderr_bytes_max = limits::OUTPUT_BYTES_MAX;
    request
}

/// The error of a command that was begun in a life that is over.
pub(super) fn of_another_life(exec: &ExecId) -> RequestError {
    let text = format!(
        "the sandbox was started anew since `{exec}` began: it may have run fully, partly or not at all"
    );
    RequestError::new(ProblemCode::Conflict, text)
        .hint("Its files are as they were left. Run it again under another id.")
}

/// A command that has not ended.
pub(super) fn running(id: &ExecId) -> ExecInfo {
    let info = ended(id, ExecOutcome::never_ran());
    ExecInfo { state: ExecState::Running, end: None, ..info }
}

/// A command that ended.
pub(super) fn ended(id: &ExecId, outcome: ExecOutcome) -> ExecInfo {
    let end = match outcome.end {
        End::Exited(_) => ExecEnd::Exited,
        End::Signalled(_) => ExecEnd::Signalled,
        End::OutOfMemory => ExecEnd::OutOfMemory,
        End::Deadline => ExecEnd::Deadline,
        End::Killed => ExecEnd::Killed,
        End::DiskFull => ExecEnd::DiskFull,
    };
    ExecInfo {
        id: id.to_string(),
        state: ExecState::Ended,
        end: Some(end),
        exit_code: outcome.exit_code(),
        stdout: String::from_utf8_lossy(&outcome.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&outcome.stderr).into_owned(),
        stdout_dropped_bytes: outcome.stdout_dropped_bytes,
        stderr_dropped_bytes: outcome.stderr_dropped_bytes,
        wall_ms: outcome.wall_ms,
        cpu_ms: outcome.cpu_ms,
        peak_memory_bytes: outcome.peak_memory_bytes,
    }
}
