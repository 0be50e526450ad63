//! `outrigger sessions rm`: sessions go, and the audit log says that they did.
//!
//! Owns the order: what a session keeps elsewhere goes before the session, so that whatever
//! stops it in the middle leaves a session that can be removed again. Must never remove one
//! that somebody drives, nor one that has something to do.

use clap::Args;
use outrigger_agent::{SessionId, State};
use outrigger_engine::Engine;
use outrigger_store::LeasePurpose;
use serde_json::json;
use std::fs;
use std::io;
use std::path::Path;

use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session;
use crate::show::{self, Screen, Tone, count};

#[derive(Debug, Args)]
pub(crate) struct RemoveSessions {
    /// The sessions, or the beginnings of their names.
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) async fn rm(paths: &Paths, asked: RemoveSessions) -> Outcome<u8> {
    let RemoveSessions { sessions: names, output } = asked;
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let mut remover = Remover::new(paths, &config, &store);
    // A name that is wrong takes none of the others with it.
    let mut sessions = Vec::new();
    for name in &names {
        sessions.push(session::find(&*store.journal, name).await?.session);
    }
    let mut removed = Vec::new();
    for session in &sessions {
        removed.extend(remover.remove(session).await?);
    }
    told(&removed, Some(BLOBS_STAY), output)
}

/// What is said where the database is this machine's.
pub(super) const BLOBS_STAY: &str =
    "what was copied into it goes with the next `outrigger gc` after a day";

/// Says which sessions are gone.
pub(crate) fn told(removed: &[SessionId], detail: Option<&str>, output: Output) -> Outcome<u8> {
    let screen = Screen::new(output);
    screen.note(Tone::Good, format!("● {} removed", count(removed.len() as u64, "session")));
    if let Some(detail) = detail {
        screen.note(Tone::Detail, detail);
    }
    if output.json.is_some() {
        let removed: Vec<_> = removed.iter().map(SessionId::as_str).collect();
        show::line(&json!({ "type": "removed", "sessions": removed }))?;
    }
    Ok(0)
}

/// Removes sessions.
#[derive(Debug)]
pub(crate) struct Remover<'a> {
    paths: &'a Paths,
    config: &'a Config,
    store: &'a Store,
    /// Reaches sandboxes; made for the first session that has any.
    engine: Option<Engine>,
}

impl<'a> Remover<'a> {
    pub(crate) fn new(paths: &'a Paths, config: &'a Config, store: &'a Store) -> Self {
        Self { paths, config, store, engine: None }
    }

    /// Removes a session and those below it, and gives their names.
    pub(crate) async fn remove(&mut self, session: &SessionId) -> Outcome<Vec<SessionId>> {
        // One whose parent is gone is nobody's any more.
        let root = session.root();
        if root != *session && self.store.journal.head(&root).await?.0 > 0 {
            let text = format!("{session} is a subagent's of session {root}");
            return Err(Failure::new(Kind::Usage, text)
                .hint(format!("`outrigger sessions rm {root}` removes all of it.")));
        }
        let Some(_lease) = self.store.database.lease(session, LeasePurpose::Drive).await? else {
            return Err(session::held(session));
        };
        let mut all = self.store.database.below(session).await?;
        let head = self.store.journal.head(session).await?;
        all.push((session.clone(), head));
        for (name, head) in &all {
            let state = session::fold(&*self.store.journal, name).await?;
            if state.seq() != *head {
                return Err(session::held(session));
            }
            self.is_over(name, &state)?;
            self.discard(name, &state).await?;
        }
        for (name, head) in &all {
            self.store.database.remove(name, *head).await?;
            gone(&self.paths.patch(name.as_str()))?;
            gone(&self.paths.untaken(name.as_str()))?;
            gone(&self.paths.written(name.as_str()))?;
        }
        gone(&self.paths.apply(session.as_str()))?;
        gone(&self.paths.log(session.as_str()))?;
        Ok(all.into_iter().map(|(name, _)| name).collect())
    }

    fn is_over(&self, session: &SessionId, state: &State) -> Outcome {
        if state.is_cancelled() || !state.in_turn() {
            return Ok(());
        }
        Err(unfinished(session))
    }

    /// Destroys the sandboxes of a session that ever had any.
    async fn discard(&mut self, session: &SessionId, state: &State) -> Outcome {
        let mut names = state.spec().map(|spec| spec.sandbox_names()).unwrap_or_default();
        names.retain(|name| state.last_ready(name).is_some());
        if names.is_empty() {
            return Ok(());
        }
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => {
                let made = compose::caretaker(self.paths, self.config, self.store).await?;
                none.insert(made)
            }
        };
        match outrigger_engine::discard(engine, session, state).await.first() {
            None => Ok(()),
            Some(warning) => Err(Failure::from_error(Kind::SandboxUnavailable, warning)
                .hint("Nothing of the session was removed.")),
        }
    }
}

/// The error for a session that goes on yet.
pub(crate) fn unfinished(session: &SessionId) -> Failure {
    Failure::new(Kind::Conflict, format!("session {session} has something to do yet"))
        .hint(format!("`outrigger sessions cancel {session}` ends it."))
}

/// Removes a file, if it is there.
pub(crate) fn gone(path: &Path) -> Outcome {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::new(Kind::Storage, format!("{}: {error}", path.display())))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
