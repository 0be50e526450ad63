//! `execute`: a command line, its output with the middle cut out, and how it ended.

use outrigger_agent::{Status, ToolOutput};
use outrigger_sandbox::{
    Command, End, Error, ExecOutcome, Execute, FileOp, FileReply, OutputSink, Streams,
};

use crate::arguments::Arguments;
use crate::call::{CommandTime, Invocation};
use crate::namespace::Namespace;
use crate::{cut, limits, output};

/// Runs the command, or attaches to it, and says what it took.
pub(crate) async fn execute(
    arguments: &Arguments,
    call: &Invocation<'_>,
    namespace: &Namespace,
    sink: &dyn OutputSink,
) -> Result<(ToolOutput, CommandTime), Error> {
    let command = arguments.required("command").to_owned();
    let asked_ms = arguments.integer("timeout").unwrap_or(limits::TIMEOUT_MS_DEFAULT);
    let timeout_ms = asked_ms.min(call.command_ms_max.unwrap_or(asked_ms));
    let request = Execute {
        cwd: call.parsed.directory().map(str::to_owned),
        deadline_ms: timeout_ms,
        streams: Streams::Merged,
        spill_after_bytes: Some(limits::SPILL_AFTER_BYTES),
        env: call.env.clone(),
        ..Execute::new(call.exec.clone(), Command::Shell(command))
    };
    let done = namespace.execute(request, sink).await?;
    let last = last_bytes(&done, namespace).await?;
    let took = CommandTime { wall_ms: done.wall_ms, cpu_ms: done.cpu_ms };
    let owner = if timeout_ms < asked_ms { DeadlineOwner::Session } else { DeadlineOwner::Call };
    Ok((shown(&done, last.as_deref(), timeout_ms, owner), took))
}

/// The end of an output whose end was dropped, from the file that has all of it.
async fn last_bytes(done: &ExecOutcome, namespace: &Namespace) -> Result<Option<Vec<u8>>, Error> {
    let Some(path) = done.spill.clone().filter(|_| done.stdout_dropped_bytes > 0) else {
        return Ok(None);
    };
    let half = limits::EXECUTE_BYTES_MAX as u64 / 2;
    let offset = total_bytes(done).saturating_sub(half);
    match namespace.files(FileOp::Read { path, offset, bytes_max: half }).await {
        Ok(FileReply::Bytes { bytes, total_bytes: kept }) => {
            // A file that was cut at its own limit does not have the end.
            Ok((kept == total_bytes(done)).then_some(bytes))
        }
        // The command may have removed it: what is at hand is shown.
        Ok(_) | Err(Error::File(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn total_bytes(done: &ExecOutcome) -> u64 {
    done.stdout.len() as u64 + done.stdout_dropped_bytes
}

/// Whose a deadline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadlineOwner {
    /// The call's own.
    Call,
    /// An earlier one, because the session has no more time left.
    Session,
}

fn shown(
    done: &ExecOutcome,
    last: Option<&[u8]>,
    timeout_ms: u64,
    owner: DeadlineOwner,
) -> ToolOutput {
    let (mut text, hidden_bytes) = output(done, last);
    if text.is_empty() {
        text.push_str("(no output)\n");
    } else if !text.ends_with('\n') {
        text.push('\n');
    }
    let (status, end) = ending(done.end, timeout_ms, owner);
    text.push_str(&end);
    ToolOutput { status, exit_code: done.exit_code(), hidden_bytes, ..output::ok(text) }
}

/// The output with the middle cut out if it is too long, and the bytes cut.
fn output(done: &ExecOutcome, last: Option<&[u8]>) -> (String, u64) {
    let total = total_bytes(done);
    if done.stdout_dropped_bytes == 0 {
        let whole = cut::plain(&done.stdout);
        if whole.len() <= limits::EXECUTE_BYTES_MAX {
            return (whole, 0);
        }
    }
    let tail = match (last, done.stdout_dropped_bytes) {
        (Some(last), _) => last,
        (None, 0) => &done.stdout,
        (None, _) => &[],
    };
    let ends = cut::ends(&done.stdout, tail, total, limits::EXECUTE_BYTES_MAX);
    let mut text = ends.head;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let hidden = ends.hidden_bytes;
    let place = match &done.spill {
        Some(path) if last.is_some() || done.stdout_dropped_bytes == 0 => {
            format!("the whole output is in {path}: read it with read_file or grep")
        }
        Some(path) => format!("the first part of the output is in {path}; the rest was not kept"),
        None => "they were not kept".to_owned(),
    };
    text.push_str(&format!("[{hidden} of {total} bytes are hidden here; {place}]\n"));
    text.push_str(&ends.tail);
    (text, hidden)
}

/// How it ended. A command that ran is no error of the call, whatever its exit code.
fn ending(end: End, timeout_ms: u64, owner: DeadlineOwner) -> (Status, String) {
    match end {
        End::Exited(code) => (Status::Ok, format!("[exit code {code}]")),
        End::Signalled(signal) => {
            let code = 128 + signal;
            (Status::Ok, format!("[ended by signal {signal}, exit code {code}]"))
        }
        End::OutOfMemory => {
            let advice = "killed: out of memory, exit code 137; use less memory, or fewer \
                          processes at once";
            (Status::Error, format!("[{advice}]"))
        }
        End::DiskFull => {
            let advice = "killed with all its processes: the disk of the sandbox is full; \
                          remove what is not needed, then do it again";
            (Status::Error, format!("[{advice}]"))
        }
        End::Deadline => {
            let max = limits::TIMEOUT_MS_MAX;
            let advice = match owner {
                DeadlineOwner::Session => {
                    ", and the limits of this session leave no more; do less at once".to_owned()
                }
                DeadlineOwner::Call if timeout_ms < max => {
                    format!("; give a larger `timeout`, up to {max}, or do less at once")
                }
                DeadlineOwner::Call => "; do less at once".to_owned(),
            };
            let text = format!(
                "[killed with all its processes: it was still running after {timeout_ms} ms{advice}]"
            );
            (Status::Error, text)
        }
        End::Killed => (Status::Error, "[killed before it ended, on request]".to_owned()),
    }
}
