//! A session that a process of its own drives: begun with `run -d`, watched with `attach`.
//!
//! Owns how that process is started and where it writes. What it does is what `sessions
//! resume` does; the session itself was opened before, so that whatever is wrong with a task
//! is told to who typed it.

use outrigger_agent::SessionId;
use serde_json::json;
use std::fs::{self, File};
use std::time::Duration;

use crate::compose::Store;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::limits;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};
use crate::supervisor::{ProgramStreams, StartRequest, StartedProgram};

/// Who drives a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// This process, to its end.
    Here,
    /// A process of its own, which outlives this one and its terminal.
    Detached,
}

/// Leaves a session that is opened and that nobody holds to a process of its own, and says
/// how it is watched.
pub(crate) async fn leave(
    paths: &Paths,
    store: &Store,
    session: &SessionId,
    output: Output,
) -> Outcome<u8> {
    let mut program = start(paths, session).await.map_err(|error| {
        Failure::new(Kind::AgentFailed, format!("no process could be started: {error}"))
            .hint(super::drive::resume_hint(session))
    })?;
    taken_over(store, session, &mut program).await?;
    told(session, "by itself", output)
}

/// Says how a session is watched that goes on without this process.
pub(crate) fn told(session: &SessionId, how: &str, output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({ "type": "started", "session": session.as_str() }))?;
    } else {
        show::out(session.as_str())?;
    }
    let text = format!("● it goes on {how}; `outrigger attach {session}` shows it");
    Screen::new(output).note(Tone::Good, text);
    Ok(0)
}

async fn start(paths: &Paths, session: &SessionId) -> std::io::Result<StartedProgram> {
    let path = paths.log(session.as_str());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let stderr = File::create(path)?.into();
    let streams = ProgramStreams { stderr, ..ProgramStreams::null()? };
    let supervisor = paths.starter()?;
    supervisor.start_program(StartRequest::Detached { session: session.clone() }, streams).await
}

/// Until the process holds the session, so that whoever looks next sees that somebody does.
/// One that ended already is as good: what it did stands in the journal.
async fn taken_over(store: &Store, session: &SessionId, program: &mut StartedProgram) -> Outcome {
    let pause = Duration::from_millis(limits::FOLLOW_POLL_MS);
    for _ in 0..limits::HANDOVER_MS_MAX / limits::FOLLOW_POLL_MS {
        let is_over = tokio::time::timeout(pause, program.wait()).await.is_ok();
        if is_over || store.database.is_leased(session).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// The error with which the process ended that drove a session last without a terminal, if
/// it wrote one.
pub(crate) fn last_error(paths: &Paths, session: &SessionId) -> Option<String> {
    let text = fs::read_to_string(paths.log(session.as_str())).ok()?;
    let last = text.lines().rev().find_map(|line| line.strip_prefix("error: "))?;
    Some(last.to_owned())
}
