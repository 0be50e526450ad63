//! What everything that serves has: the installation, the configuration, the directory.

use outrigger_agent::{SessionId, State};
use outrigger_engine::Engine;
use outrigger_server::TakenChanges;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use super::changes::files;
use super::log::ServerLog;
use crate::command::finish::{Back, Finish};
use crate::compose::Store;
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::rules::ConfiguredRules;
use crate::show;

/// What everything that serves has.
#[derive(Debug)]
pub(super) struct ServeContext {
    pub(super) paths: Paths,
    pub(super) config: Config,
    pub(super) model: ModelChoice,
    /// What sessions work on a copy of.
    pub(super) dir: PathBuf,
    pub(super) store: Store,
    /// What the rules say now.
    pub(super) rules: Arc<ConfiguredRules>,
    /// What links to its page begin with.
    pub(super) page: String,
    /// What is said while it serves.
    pub(super) log: ServerLog,
}

impl ServeContext {
    pub(super) fn finish<'a>(&'a self, engine: &'a Engine, session: &'a SessionId) -> Finish<'a> {
        let Self { paths, config, store, .. } = self;
        let (back, retention_ms) = (Back::Patch, config.retention_ms());
        Finish { paths, store, engine, session, back, retention_ms, notify: &config.notify }
    }

    /// Takes the changes of a session out and keeps them as a patch.
    pub(super) async fn take(
        &self,
        engine: &Engine,
        session: &SessionId,
        state: &State,
    ) -> Outcome<TakenChanges> {
        let finish = self.finish(engine, session);
        let Some((patch, hazards)) = finish.take_patch(state).await? else {
            return self.kept(session);
        };
        let warnings = show::warnings("", &hazards);
        Ok(TakenChanges { files: files(&patch), patch, warnings })
    }

    /// What was kept when the session last waited.
    pub(super) fn kept(&self, session: &SessionId) -> Outcome<TakenChanges> {
        let path = self.paths.patch(session.as_str());
        let patch = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|error| {
                Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
            })?,
        };
        Ok(TakenChanges { files: files(&patch), patch, warnings: Vec::new() })
    }
}
