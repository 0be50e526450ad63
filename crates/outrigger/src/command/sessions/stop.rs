//! `outrigger stop`: what a session does now ends, and the session stays.

use clap::Args;
use outrigger_agent::SessionId;
use outrigger_store::LeasePurpose;
use serde_json::json;
use std::time::Duration;
use tokio::sync::Notify;

use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};
use crate::{limits, session};

#[derive(Debug, Args)]
pub(crate) struct StopSessions {
    /// The sessions, or the beginnings of their names.
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) async fn stop(paths: &Paths, asked: StopSessions) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let mut screen = Screen::new(asked.output);
    let mut stopped = Vec::new();
    for name in &asked.sessions {
        let named = session::find(&*store.journal, name).await?.session;
        let session = session::root(&*store.journal, &named).await?;
        let stopping = Box::pin(one(paths, &config, &store, &session));
        if screen.during("stopping", stopping).await? {
            screen.note(Tone::Good, did_stop(&session));
            stopped.push(session);
        } else {
            let status = session::fold(&*store.journal, &session).await?.status();
            screen.note(Tone::Good, did_not_run(&session, status));
        }
    }
    print(&stopped, asked.output)
}

/// That something ran in a session.
pub(crate) fn did_stop(session: &SessionId) -> String {
    format!("● session {session} stopped; outrigger sessions resume {session} goes on")
}

/// That nothing did.
pub(crate) fn did_not_run(session: &SessionId, status: &str) -> String {
    format!("● session {session} does not run: it is `{status}`")
}

/// The error of one that does not stop in time.
pub(crate) fn still_runs(session: &SessionId) -> Failure {
    let seconds = limits::STOP_MS_MAX / 1_000;
    let text = format!("session {session} was told to stop, and still runs after {seconds} s");
    Failure::new(Kind::Conflict, text)
        .hint(format!("`outrigger sessions cancel {session}` ends it for good."))
}

/// Tells programs which stopped.
pub(crate) fn print(stopped: &[SessionId], output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({ "type": "stopped", "sessions": stopped }))?;
    }
    Ok(0)
}

/// Stops one; whether anything ran.
async fn one(paths: &Paths, config: &Config, store: &Store, session: &SessionId) -> Outcome<bool> {
    if let Some(_lease) = store.database.lease(session, LeasePurpose::Drive).await? {
        let state = session::fold(&*store.journal, session).await?;
        if !state.in_turn() || state.asked().next().is_some() || state.is_cancelled() {
            return Ok(false);
        }
        // Its process was killed: what may still run in its sandbox is stopped.
        let engine = compose::caretaker(paths, config, store).await?;
        engine.interrupt(session, session::WHO).await?;
        outrigger_engine::drive(&engine, session, &Notify::new()).await?;
        return Ok(true);
    }
    let in_turn = async || Outcome::Ok(session::fold(&*store.journal, session).await?.in_turn());
    if !in_turn().await? {
        // It takes its changes out, or waits in a conversation for what is said next.
        return Ok(false);
    }
    compose::clerk(paths, config, store)?.interrupt(session, session::WHO).await?;
    let mut left_ms = limits::STOP_MS_MAX;
    while left_ms > 0 {
        if !store.database.is_leased(session).await? {
            return Ok(true);
        }
        if !in_turn().await? {
            // A conversation keeps it; a run takes its changes out first.
            left_ms = left_ms.min(limits::STOPPED_RUN_MS_MAX);
        }
        left_ms = left_ms.saturating_sub(limits::FOLLOW_POLL_MS);
        tokio::time::sleep(Duration::from_millis(limits::FOLLOW_POLL_MS)).await;
    }
    if in_turn().await? { Err(still_runs(session)) } else { Ok(true) }
}
