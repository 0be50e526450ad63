//! `outrigger sandbox exec` at a server: one command, its output as it comes, its exit code.
//!
//! The command has a name from here, so that it is begun once however often the connection breaks,
//! and followed on from where that was.

use futures_util::StreamExt;
use outrigger_api::limits::{EXEC_OUTPUT_BYTES_MAX, EXEC_WAIT_SECONDS_MAX};
use outrigger_api::{ExecEnd, ExecInfo, ExecState, RunCommand};
use outrigger_client::CommandFrame;
use outrigger_sandbox::{Command, End, ExecOutcome, Execute, Output, OutputSink};
use serde_json::json;
use std::pin::pin;
use std::time::Duration;

use super::connection::{Remote, persist};
use super::sandbox_names::{address, sandbox};
use crate::command::sandbox::exec::{Exec, OutputRelay, report, request};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

pub(super) async fn execute(remote: &Remote, asked: Exec) -> Outcome<u8> {
    let execs = format!("{}/execs", address(&sandbox(remote, &asked.name).await?));
    let request = request(&asked)?;
    let at = format!("{execs}/{}", request.id.as_str());
    let said = wire(request)?;
    let mut begun = pin!(persist(async || remote.client.post(&execs, &said).await));
    let kill = async || {
        persist(async || remote.client.command(&format!("{at}/kill"), &json!({})).await).await
    };
    let killed = || Failure::new(Kind::Interrupted, "the command was killed");
    tokio::select! {
        info = &mut begun => drop::<ExecInfo>(info?),
        _ = tokio::signal::ctrl_c() => {
            // Only what was begun can be killed; whoever presses again does not wait for that.
            tokio::select! {
                ended = async { drop::<ExecInfo>(begun.await?); kill().await } => ended?,
                _ = tokio::signal::ctrl_c() => {}
            }
            return Err(killed());
        }
    }
    let done = tokio::select! {
        done = outcome(remote, &at, &asked) => done?,
        _ = tokio::signal::ctrl_c() => {
            kill().await?;
            return Err(killed());
        }
    };
    report(&done, said.id.as_deref().unwrap_or_default(), &asked)
}

fn wire(request: Execute) -> Outcome<RunCommand> {
    let text = |bytes: Vec<u8>, what: &str| {
        String::from_utf8(bytes).map_err(|_| {
            Failure::new(Kind::Usage, format!("{what} is no text, and a server takes text"))
        })
    };
    let (argv, shell) = match request.command {
        Command::Argv(words) => {
            let words = words.into_iter().map(|word| text(word, "a word of the command"));
            (Some(words.collect::<Outcome<Vec<_>>>()?), None)
        }
        Command::Shell(line) => (None, Some(line)),
    };
    Ok(RunCommand {
        argv,
        shell,
        id: Some(request.id.as_str().to_owned()),
        cwd: request.cwd,
        env: request.env,
        stdin: text(request.stdin, "standard input")?,
        deadline_ms: Some(request.deadline_ms),
        output_bytes_max: Some(EXEC_OUTPUT_BYTES_MAX),
        wait: Some(0),
        ..RunCommand::default()
    })
}

/// How the command ended, once it did; what it writes is shown meanwhile unless programs are told it
/// at the end.
async fn outcome(remote: &Remote, at: &str, asked: &Exec) -> Outcome<ExecOutcome> {
    if asked.output.json.is_none() {
        let relay = (!asked.output.quiet).then(OutputRelay::new);
        return of_info(followed(remote, at, relay.as_ref()).await?);
    }
    loop {
        let path = format!("{at}?wait={EXEC_WAIT_SECONDS_MAX}");
        let info: ExecInfo = persist(async || remote.client.get(&path).await).await?;
        if info.state == ExecState::Ended {
            return of_info(info);
        }
    }
}

/// Passes on what comes, from the first byte to the end. Where the connection breaks it goes on
/// where it was.
async fn followed(remote: &Remote, at: &str, relay: Option<&OutputRelay>) -> Outcome<ExecInfo> {
    let (mut from, mut breaks) = (None, 0);
    loop {
        let why = match remote.client.follow_command(at, from.as_deref()).await {
            Ok(frames) => {
                let mut frames = pin!(frames);
                loop {
                    match frames.next().await {
                        Some(Ok(CommandFrame::Ended(info))) => return Ok(*info),
                        Some(Ok(CommandFrame::Output { is_error, text, position })) => {
                            (from, breaks) = (Some(position), 0);
                            let bytes = text.as_bytes();
                            let output = if is_error {
                                Output::Stderr(bytes)
                            } else {
                                Output::Stdout(bytes)
                            };
                            if let Some(relay) = relay {
                                relay.output(output);
                            }
                        }
                        Some(Err(error)) => break Some(error),
                        // Where it was lost, who comes again is told why.
                        None => break remote.client.get::<ExecInfo>(at).await.err(),
                    }
                }
            }
            Err(error) => Some(error),
        };
        breaks += 1;
        if why.as_ref().is_some_and(|why| !why.is_retryable()) || breaks > limits::RECONNECTS_MAX {
            return Err(why.map_or_else(ended_early, Failure::from));
        }
        let pause = limits::RECONNECT_MS << breaks.min(5);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

fn ended_early() -> Failure {
    Failure::new(Kind::ServerFailed, "the server ends the output of the command before its end")
}

fn of_info(info: ExecInfo) -> Outcome<ExecOutcome> {
    let code = info.exit_code.unwrap_or_default();
    let end = match info.end {
        Some(ExecEnd::Exited) => End::Exited(code),
        Some(ExecEnd::Signalled) => End::Signalled(code.saturating_sub(128)),
        Some(ExecEnd::OutOfMemory) => End::OutOfMemory,
        Some(ExecEnd::Deadline) => End::Deadline,
        Some(ExecEnd::Killed) => End::Killed,
        Some(ExecEnd::DiskFull) => End::DiskFull,
        None => {
            return Err(Failure::new(Kind::ServerFailed, "the server says no end of the command"));
        }
    };
    Ok(ExecOutcome {
        stdout: info.stdout.into_bytes(),
        stderr: info.stderr.into_bytes(),
        stdout_dropped_bytes: info.stdout_dropped_bytes,
        stderr_dropped_bytes: info.stderr_dropped_bytes,
        end,
        wall_ms: info.wall_ms,
        cpu_ms: info.cpu_ms,
        peak_memory_bytes: info.peak_memory_bytes,
        spill: None,
    })
}
