//! What is done with a session of this machine beside talking with it.

use async_trait::async_trait;
use outrigger_agent::{SessionId, State};
use outrigger_engine::Engine;
use outrigger_repository::Change;
use outrigger_store::Lease;
use std::path::PathBuf;
use std::rc::Weak;
use std::sync::Arc;
use tokio::sync::Mutex;

use super::sessions::OwnSessions;
use crate::command::converse::source::{SessionWork, WorkspaceDiff};
use crate::command::finish::{Back, Finish, WrittenChanges};
use crate::compose::Store;
use crate::exit::{Failure, Kind, Outcome};
use crate::show::row::Row;
use crate::show::{self, Screen};

/// A session of this machine, to be worked on.
#[derive(Debug, Clone)]
pub(super) struct OwnWork {
    pub(super) sessions: OwnSessions,
    pub(super) store: Store,
    pub(super) engine: Engine,
    pub(super) session: SessionId,
    /// Held by who looks into the sandboxes or lets them rest, each of which ends the other.
    pub(super) sandboxes: Arc<Mutex<()>>,
    /// Held by who talks with it, and by who goes on with that.
    pub(super) lease: Weak<Lease>,
}

impl OwnWork {
    pub(super) fn new(
        sessions: OwnSessions,
        store: Store,
        engine: Engine,
        session: SessionId,
    ) -> Self {
        let (sandboxes, lease) = (Arc::default(), Weak::new());
        Self { sessions, store, engine, session, sandboxes, lease }
    }

    fn finish(&self) -> Finish<'_> {
        let OwnSessions { paths, config, .. } = &self.sessions;
        Finish {
            paths,
            store: &self.store,
            engine: &self.engine,
            session: &self.session,
            back: Back::Patch,
            retention_ms: config.retention_ms(),
            notify: &config.notify,
        }
    }

    /// What the session changed, and what of it is no file.
    async fn taken(&self, state: &State) -> Outcome<(Vec<Change>, Vec<String>)> {
        let changes = self.finish().changes(state).await?;
        Ok(changes.map(|changes| (changes.changed, changes.special)).unwrap_or_default())
    }
}

#[async_trait(?Send)]
impl SessionWork for OwnWork {
    fn session(&self) -> &SessionId {
        &self.session
    }

    async fn state(&self) -> Outcome<State> {
        Ok(self.engine.state(&self.session).await?)
    }

    async fn source(&self) -> Outcome<PathBuf> {
        let state = self.state().await?;
        let source = state.spec().and_then(|spec| spec.workspace.as_ref());
        let source = source.map(|it| PathBuf::from(&it.source));
        source.ok_or_else(|| {
            let text = format!("session {} began in no directory", self.session);
            Failure::new(Kind::NotFound, text)
        })
    }

    async fn changes(&self) -> Outcome<Vec<Change>> {
        let _alone = self.sandboxes.lock().await;
        Ok(self.taken(&self.state().await?).await?.0)
    }

    fn written(&self) -> Outcome<WrittenChanges> {
        WrittenChanges::load(&self.sessions.paths, &self.session)
    }

    async fn diff(&self) -> Outcome<WorkspaceDiff> {
        let _alone = self.sandboxes.lock().await;
        let (changes, special) = self.taken(&self.state().await?).await?;
        let hazards = outrigger_repository::hazards(None, &changes);
        let patch = outrigger_repository::patch(&changes, &hazards);
        let special =
            special.iter().map(|path| format!("! not copied: {path}: a FIFO, device or socket"));
        let warnings = special.chain(show::warnings("", &hazards)).collect();
        Ok(WorkspaceDiff { patch: String::from_utf8_lossy(&patch).into_owned(), warnings })
    }

    async fn rest(&self) -> Outcome<(usize, Vec<Row>)> {
        let _alone = self.sandboxes.lock().await;
        let (finish, screen) = (self.finish(), Screen::keeping());
        let (changes, _) = self.taken(&self.state().await?).await?;
        let hazards = outrigger_repository::hazards(None, &changes);
        finish.keep(&outrigger_repository::patch(&changes, &hazards))?;
        finish.tidy(&screen).await;
        Ok((changes.len(), screen.kept()))
    }

    async fn branch(&self) -> Outcome<Vec<Row>> {
        let _alone = self.sandboxes.lock().await;
        let state = self.state().await?;
        let (changes, _) = self.taken(&state).await?;
        let screen = Screen::keeping();
        self.finish().branch(&state, &changes, &screen).await?;
        Ok(screen.kept())
    }
}
