//! `outrigger sessions cancel`: a session ends for good.

use outrigger_agent::SessionId;
use outrigger_engine::Engine;
use outrigger_store::LeasePurpose;
use serde_json::json;
use std::time::Duration;

use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};
use crate::{limits, session};

pub(crate) async fn cancel(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let session = session::find(&*store.journal, name).await?.session;
    let screen = Screen::new(output);
    // Whatever the sandboxes are like: what drives the session stops, and nothing is started.
    let clerk = compose::clerk(paths, &config, &store)?;
    clerk.cancel(&session, session::WHO, "outrigger sessions cancel").await?;
    let engine = compose::caretaker(paths, &config, &store).await.map_err(|failure| {
        failure
            .hint(format!("Session {session} is cancelled: nothing is started for it any more, and a process that runs it stops."))
            .hint(format!("Its sandbox is not deleted, and what runs there may run until its deadline: `outrigger sessions cancel {session}` tries that again."))
    })?;
    wind_down(&store, &engine, &session).await?;
    let state = engine.state(&session).await?;
    if let Some(warning) = outrigger_engine::discard(&engine, &session, &state).await.first() {
        return Err(Failure::from_error(Kind::SandboxUnavailable, warning));
    }
    screen.note(Tone::Good, format!("● session {session} is cancelled; its sandbox is deleted"));
    if output.json.is_some() {
        show::line(&json!({ "type": "cancelled", "session": session.as_str() }))?;
    }
    Ok(0)
}

/// The process that drives the session stops it; if there is none, we do. One that
/// does not stop in time loses the sandbox all the same.
pub(crate) async fn wind_down(store: &Store, engine: &Engine, session: &SessionId) -> Outcome {
    let polls = limits::CANCEL_MS_MAX / limits::FOLLOW_POLL_MS;
    for _ in 0..polls {
        if let Some(_lease) = store.database.lease(session, LeasePurpose::Drive).await? {
            outrigger_engine::drive(engine, session, &tokio::sync::Notify::new()).await?;
            return Ok(());
        }
        if !session::fold(&*store.journal, session).await?.in_turn() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(limits::FOLLOW_POLL_MS)).await;
    }
    Ok(())
}
