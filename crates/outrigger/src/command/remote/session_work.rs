//! What is done with a server's session beside talking with it.

use async_trait::async_trait;
use outrigger_agent::{SessionId, State};
use outrigger_api::{CheckpointInfo, ForkSession, RewindSession, SessionInfo, WorkspaceChanges};
use outrigger_engine::EgressQuestion;
use outrigger_repository::Change;
use serde_json::json;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::rc::Rc;

use super::changes::{branch, changes};
use super::connection::{Remote, named, not_there};
use crate::command::converse::source::{
    OpenedTalk, SessionControl, SessionSource, SessionWork, WorkspaceDiff,
};
use crate::command::converse::went_back;
use crate::command::finish::WrittenChanges;
use crate::exit::{Failure, Kind, Outcome};
use crate::network::{HostChoice, Words, shown};
use crate::show::Screen;
use crate::show::row::Row;

/// A server's session, to be worked on.
pub(super) struct RemoteWork {
    sessions: Rc<dyn SessionSource>,
    pub(super) remote: Rc<Remote>,
    pub(super) session: SessionId,
}

impl RemoteWork {
    pub(super) fn new(
        sessions: Rc<dyn SessionSource>,
        remote: Rc<Remote>,
        session: SessionId,
    ) -> Self {
        Self { sessions, remote, session }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}/{rest}", self.session)
    }
}

#[async_trait(?Send)]
impl SessionWork for RemoteWork {
    fn session(&self) -> &SessionId {
        &self.session
    }

    async fn state(&self) -> Outcome<State> {
        self.remote.state(&self.session).await
    }

    async fn source(&self) -> Outcome<PathBuf> {
        self.remote.source(&self.session).ok_or_else(|| {
            let session = &self.session;
            let text = format!("session {session} began with no directory that was sent from here");
            Failure::new(Kind::NotFound, text).hint(format!(
                "`outrigger sessions apply {session}` writes its changes back where it began."
            ))
        })
    }

    async fn changes(&self) -> Outcome<Vec<Change>> {
        let changes = changes(&self.remote, &self.session).await?;
        Ok(changes.map(|changes| changes.changed).unwrap_or_default())
    }

    fn written(&self) -> Outcome<WrittenChanges> {
        WrittenChanges::load(&self.remote.kept, &self.session)
    }

    async fn diff(&self) -> Outcome<WorkspaceDiff> {
        let changes: WorkspaceChanges = self.remote.client.get(&self.path("changes")).await?;
        let WorkspaceChanges { mut patch, hidden_bytes, mut warnings, .. } = changes;
        if hidden_bytes > 0 {
            // What is shown ends with a whole line.
            patch.truncate(patch.rfind('\n').map_or(0, |end| end + 1));
            warnings.push(format!(
                "! {hidden_bytes} bytes more: `outrigger sessions diff {}` has all of it",
                self.session
            ));
        }
        Ok(WorkspaceDiff { patch, warnings })
    }

    async fn rest(&self) -> Outcome<(usize, Vec<Row>)> {
        let changes: WorkspaceChanges = self.remote.client.get(&self.path("changes")).await?;
        Ok((changes.files.len(), Vec::new()))
    }

    async fn branch(&self) -> Outcome<Vec<Row>> {
        let (dir, changes) = (self.source().await?, self.changes().await?);
        let screen = Screen::keeping();
        branch(&self.remote, &self.session, (&dir, &changes), &screen).await?;
        Ok(screen.kept())
    }
}

#[async_trait(?Send)]
impl SessionControl for RemoteWork {
    async fn compact(&self) -> Outcome {
        Ok(self.remote.client.command(&self.path("compact"), &json!({})).await?)
    }

    async fn fork(&self) -> Outcome<SessionId> {
        let once = uuid::Uuid::new_v4().to_string();
        let (path, asked) = (self.path("fork"), ForkSession { at: None });
        let fork: SessionInfo = self.remote.client.post_once(&path, &asked, &once).await?;
        let fork = named(&fork.id)?;
        // Its changes go where those of the session would that it is a copy of.
        self.remote.remember_fork(&self.session, &fork)?;
        Ok(fork)
    }

    async fn rewind(&self, to: Option<NonZeroU64>) -> Outcome<OpenedTalk> {
        let asked = RewindSession { to: to.map(NonZeroU64::get) };
        let CheckpointInfo { said, .. } =
            self.remote.client.post(&self.path("rewind"), &asked).await?;
        let mut opened = self.sessions.go_on(self.session.as_str()).await?;
        opened.rows = vec![went_back(&said)];
        Ok(opened)
    }

    async fn ask_model(&self, name: &str) -> Outcome<OpenedTalk> {
        let session = &self.session;
        let text = format!("session {session} keeps its model: the server has no other for it");
        Err(Failure::new(Kind::Usage, text).hint(format!("`/new` begins one that asks {name}.")))
    }

    async fn reach(&self, more: Option<&Words>) -> Outcome<String> {
        if more.is_none() {
            let state = self.state().await?;
            let words = state.spec().map_or(&[][..], |spec| spec.network());
            // Nobody is asked about a host there.
            return Ok(if words.is_empty() { "nothing".to_owned() } else { shown(words) });
        }
        let text = format!("what session {} may reach is not changed at a server", self.session);
        Err(Failure::new(Kind::Usage, text).hint("`/new` begins one that may reach it."))
    }

    async fn hosts(&self) -> Vec<EgressQuestion> {
        // A server asks nobody: what the session may not reach is refused.
        Vec::new()
    }

    async fn answer_host(&self, _question: &EgressQuestion, _: HostChoice) -> Outcome<String> {
        Err(not_there("an answer about a host"))
    }
}
