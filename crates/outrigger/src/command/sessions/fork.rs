//! `outrigger sessions checkpoints | fork | rewind`: where a session stood, a second one
//! that begins there, and the way back.

use outrigger_agent::{Seq, SessionId};
use outrigger_engine::{Engine, SessionCheckpoint, Warning};
use outrigger_store::LeasePurpose;
use serde_json::json;
use tokio::sync::Notify;

use crate::command::finish::{Back, Finish, WrittenChanges};
use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::Outcome;
use crate::flags::Output;
use crate::paths::Paths;
use crate::session;
use crate::show::{self, Screen, Tone, inert};

/// An engine that asks no model.
async fn engine(paths: &Paths) -> Outcome<(Config, Store, Engine)> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let engine = compose::caretaker(paths, &config, &store).await?;
    Ok((config, store, engine))
}

pub(crate) async fn list(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let (_, store, engine) = engine(paths).await?;
    let session = session::find(&*store.journal, name).await?.session;
    let all = engine.checkpoints(&session).await?;
    print(&session, &all.iter().map(line).collect::<Vec<_>>(), output)
}

/// A checkpoint of the list.
#[derive(Debug)]
pub(crate) struct CheckpointLine {
    pub(crate) at: u64,
    pub(crate) at_ms: u64,
    pub(crate) status: String,
    pub(crate) said: String,
    /// Whether its files are still kept.
    pub(crate) kept: bool,
    /// For programs.
    pub(crate) object: serde_json::Value,
}

fn line(checkpoint: &SessionCheckpoint) -> CheckpointLine {
    CheckpointLine {
        at: checkpoint.at.0,
        at_ms: checkpoint.at_ms,
        status: checkpoint.status.to_owned(),
        said: checkpoint.said.clone(),
        kept: checkpoint.gone.is_empty(),
        object: object(checkpoint),
    }
}

/// Prints a list of them.
pub(crate) fn print(session: &SessionId, all: &[CheckpointLine], output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        let all: Vec<_> = all.iter().map(|it| &it.object).collect();
        let name = session.as_str();
        show::line(&json!({ "type": "checkpoints", "session": name, "checkpoints": all }))?;
        return Ok(0);
    }
    for checkpoint in all {
        let said = inert(&checkpoint.said).replace(['\n', '\t'], " ");
        let said = if said.is_empty() { "(before anything was said)".to_owned() } else { said };
        let gone = if checkpoint.kept { "" } else { "  (its files are not kept any more)" };
        let (when, status) = (show::when(checkpoint.at_ms), &checkpoint.status);
        show::row(&format!("{:>6}  {when}  {status:<18}  {said}{gone}", checkpoint.at))?;
    }
    if all.is_empty() {
        Screen::new(output).note(
            Tone::Detail,
            "it has no checkpoint: one is made when a turn ends with its files kept",
        );
    }
    Ok(0)
}

fn object(checkpoint: &SessionCheckpoint) -> serde_json::Value {
    let kept: Vec<&str> = checkpoint.kept.iter().map(|kept| kept.snapshot.as_str()).collect();
    json!({
        "at": checkpoint.at.0,
        "at_ms": checkpoint.at_ms,
        "status": checkpoint.status,
        "said": checkpoint.said,
        "snapshots": kept,
        "gone": checkpoint.gone,
    })
}

pub(crate) async fn fork(
    paths: &Paths,
    name: &str,
    at: Option<u64>,
    output: Output,
) -> Outcome<u8> {
    let (_, store, engine) = engine(paths).await?;
    let session = session::find(&*store.journal, name).await?.session;
    let mut screen = Screen::new(output);
    let fork = session::new_id();
    let forking = Box::pin(engine.fork(&session, at.map(Seq), &fork, session::WHO));
    let checkpoint = screen.during("copying the session's disks", forking).await?;
    WrittenChanges::copy(paths, &session, &fork)?;
    let text = format!("● session {fork} begins where {session} stood at {}", checkpoint.at);
    screen.note(Tone::Good, text);
    let next = format!("go on with: outrigger sessions say {fork} \"...\"");
    screen.note(Tone::Detail, next);
    if output.json.is_some() {
        show::line(&json!({
            "type": "forked",
            "session": fork.as_str(),
            "from": session.as_str(),
            "at": checkpoint.at.0,
        }))?;
    }
    Ok(0)
}

pub(crate) async fn rewind(
    paths: &Paths,
    name: &str,
    to: Option<u64>,
    output: Output,
) -> Outcome<u8> {
    let (config, store, engine) = engine(paths).await?;
    let session = session::find(&*store.journal, name).await?.session;
    let Some(_lease) = store.database.lease(&session, LeasePurpose::Drive).await? else {
        return Err(session::held(&session));
    };
    let state = engine.state(&session).await?;
    if state.in_turn() && state.asked().next().is_none() && !state.is_cancelled() {
        // It was killed in the middle: what may still run is stopped first.
        engine.interrupt(&session, session::WHO).await?;
        outrigger_engine::drive(&engine, &session, &Notify::new()).await?;
    }
    let screen = Screen::new(output);
    let (checkpoint, warnings) = engine.rewind(&session, to.map(Seq), session::WHO).await?;
    warnings.iter().for_each(|warning| screen.note(Tone::Warning, told(warning)));
    keep_patch(paths, (&config, &store, &engine), &session, &screen).await?;
    screen.note(
        Tone::Good,
        format!("● session {session} stands where it stood at {}", checkpoint.at),
    );
    if output.json.is_some() {
        let (name, at) = (session.as_str(), checkpoint.at.0);
        show::line(&json!({ "type": "rewound", "session": name, "to": at }))?;
    }
    Ok(0)
}

/// The patch is of files that are not there any more: of those that are now another one is kept.
async fn keep_patch(
    paths: &Paths,
    (config, store, engine): (&Config, &Store, &Engine),
    session: &SessionId,
    screen: &Screen,
) -> Outcome {
    let (back, retention_ms) = (Back::Patch, config.retention_ms());
    let finish =
        Finish { paths, store, engine, session, back, retention_ms, notify: &config.notify };
    finish.keep(&[])?;
    let state = engine.state(session).await?;
    // Why not is noted for whoever looks at the changes.
    if let Err(failure) = finish.take_patch(&state).await {
        screen.note(Tone::Warning, format!("! {}", failure.message));
    }
    finish.tidy(screen).await;
    Ok(())
}

fn told(warning: &Warning) -> String {
    format!("! {}", outrigger_engine::workspace::explain(warning))
}
