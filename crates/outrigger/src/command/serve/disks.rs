//! Looks into the sandboxes of sessions for the server: what they changed, what an answer would
//! change, where they can be forked.

use async_trait::async_trait;
use futures_util::FutureExt;
use outrigger_agent::{Seq, SessionId, State};
use outrigger_api::{
    AppliedChanges, ApplyChanges, CheckpointInfo, FileContent, FileList, ReadObjects,
};
use outrigger_engine::{Engine, SessionCheckpoint};
use outrigger_repository::{Accept, Change};
use outrigger_sandbox::Sandbox;
use outrigger_server::{FilePreview, RequestError, SessionChanges, SessionDisks, TakenChanges};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::context::ServeContext;
use super::files;
use super::host::{Host, QuietSession};
use super::jobs::Jobs;
use crate::change::ProposedChange;
use crate::command::finish::{WrittenChanges, first_sandbox};
use crate::exit::{Failure, Kind, Outcome};
use crate::waiting::PendingApproval;
use crate::{limits, own_files, repository, workspace};

/// Looks into the sandboxes of sessions.
#[derive(Debug, Clone)]
pub(super) struct Disks {
    context: Arc<ServeContext>,
    host: Host,
    jobs: Jobs,
}

impl Disks {
    pub(super) fn new(context: Arc<ServeContext>, host: Host, jobs: Jobs) -> Self {
        Self { context, host, jobs }
    }

    /// What a session changed: as it is now where its turn runs here, else as it was kept.
    async fn changed(&self, session: &SessionId) -> Outcome<TakenChanges> {
        let Some(driven) = self.host.driven(session).await else {
            self.host.is_here(session).await?;
            return self.context.kept(session);
        };
        let engine = &driven.engine;
        let state = engine.state(session).await?;
        let limit = Duration::from_millis(limits::CHANGES_MS_MAX);
        match tokio::time::timeout(limit, self.context.take(engine, session, &state)).await {
            Ok(taken) => taken,
            // Its sandbox is frozen while the model thinks long.
            Err(_) => self.context.kept(session),
        }
    }

    /// Looks into the sandbox that the directory was copied into. Where its turn runs here that
    /// goes on meanwhile.
    async fn looked<T, F: Future<Output = Outcome<T>>>(
        &self,
        session: &SessionId,
        look: impl FnOnce(Arc<dyn Sandbox>) -> F,
    ) -> Outcome<T> {
        let look = async |engine: &Engine| {
            let state = engine.state(session).await?;
            let name = state.spec().map(|spec| first_sandbox(spec)).unwrap_or_default();
            let found = outrigger_engine::reattach(engine, session, &state, name).await?;
            let found = found.ok_or_else(|| {
                Failure::new(Kind::NotFound, "the session has no sandbox, or none any more")
            })?;
            look(found.sandbox).await
        };
        if let Some(driven) = self.host.driven(session).await {
            let limit = Duration::from_millis(limits::CHANGES_MS_MAX);
            return tokio::time::timeout(limit, look(&driven.engine)).await.unwrap_or_else(|_| {
                let text = "the sandbox is frozen while the model thinks";
                Err(Failure::new(Kind::SandboxUnavailable, text).hint("Try again in a moment."))
            });
        }
        let quiet = self.host.quiet(session).await?;
        let looked = look(&quiet.engine).await;
        quiet.rest(session).await;
        looked
    }

    /// What changed, with which it is written back elsewhere.
    async fn archived(&self, session: &SessionId) -> Outcome<File> {
        let quiet = self.host.quiet(session).await?;
        let changes = self.taken(&quiet, session).await;
        quiet.rest(session).await;
        let (changes, scratch) = (changes?, self.context.paths.scratch());
        let written = outrigger_repository::write_changes(&changes, &scratch);
        written.map_err(|error| repository::failed(&scratch, &error))
    }

    /// What was committed in the sandbox that the directory was copied into.
    async fn committed(&self, session: &SessionId, asked: &ReadObjects) -> Outcome<Vec<u8>> {
        let quiet = self.host.quiet(session).await?;
        let state = quiet.engine.state(session).await?;
        let objects = self.context.finish(&quiet.engine, session).objects(&state, asked).await;
        quiet.rest(session).await;
        objects
    }

    /// What changed in the sandbox of a session that stays as it is meanwhile.
    async fn taken(&self, quiet: &QuietSession, session: &SessionId) -> Outcome<Vec<Change>> {
        let state = quiet.engine.state(session).await?;
        let changes = self.context.finish(&quiet.engine, session).changes(&state).await?;
        let changes = changes.ok_or_else(|| {
            let text = "there is no sandbox any more to take the changes from";
            Failure::new(Kind::Conflict, text).hint("The patch has what was kept of them.")
        })?;
        Ok(changes.changed)
    }

    /// Writes back what changed since it was written back last.
    async fn written_back(
        &self,
        session: &SessionId,
        asked: ApplyChanges,
    ) -> Outcome<AppliedChanges> {
        let quiet = self.host.quiet(session).await?;
        quiet.is_ours(session)?;
        let state = quiet.engine.state(session).await?;
        let dir = self.source(session, &state)?;
        let changes = self.taken(&quiet, session).await;
        quiet.rest(session).await;
        let mut written = WrittenChanges::load(&self.context.paths, session)?;
        let changes = outrigger_repository::since(&dir, &written.changes(), changes?);
        let accept = if asked.accept_hazards { Accept::Named } else { Accept::Nothing };
        own_files::stay_untouched(&self.context.paths, &dir, &changes)?;
        outrigger_repository::apply(&dir, &changes, accept)
            .map_err(|error| repository::failed(&dir, &error))?;
        let files = changes.len() as u64;
        written.add(&changes)?;
        Ok(AppliedChanges { files, directory: dir.display().to_string() })
    }

    /// The directory that a session began with, if this server may write there.
    fn source(&self, session: &SessionId, state: &State) -> Outcome<PathBuf> {
        let source = state.spec().and_then(|spec| spec.workspace.as_ref());
        let source = source.map(|it| PathBuf::from(&it.source));
        let ours = workspace::tree(&self.context.dir)?.top;
        source.filter(|source| *source == ours).ok_or_else(|| {
            let text = "this server writes into the directory that it was begun in, and the session began in another one";
            Failure::new(Kind::Usage, text)
                .hint(format!("`outrigger sessions apply {session}` writes it back."))
        })
    }

    async fn previewed(&self, session: &SessionId, effect: Seq) -> Outcome<Option<FilePreview>> {
        let journal = &*self.context.store.journal;
        let waiting = PendingApproval::find(journal, &session.effect(effect)).await?;
        let quiet = self.host.quiet(session).await?;
        let change = ProposedChange::of(&quiet.engine, &waiting).await;
        // It may have been cold, and goes on waiting.
        quiet.rest(session).await;
        Ok(change?.map(|change| {
            let name = change.name();
            FilePreview { diff: change.diff, name, seen: change.seen }
        }))
    }

    async fn all_checkpoints(&self, session: &SessionId) -> Outcome<Vec<CheckpointInfo>> {
        let quiet = self.host.quiet(session).await?;
        let all = quiet.engine.checkpoints(session).await?;
        Ok(all.into_iter().map(told).collect())
    }

    async fn forked(
        &self,
        session: &SessionId,
        at: Option<Seq>,
        into: &SessionId,
        by: &str,
    ) -> Outcome {
        if self.context.store.journal.head(into).await? > Seq::default() {
            return Ok(());
        }
        let quiet = self.host.quiet(session).await?;
        quiet.engine.fork(session, at, into, by).await?;
        WrittenChanges::copy(&self.context.paths, session, into)?;
        // It has the changes of the other until it has some of its own.
        drop(self.keep_changes(into).await);
        Ok(())
    }

    /// Keeps what a session changed, as its sandboxes have it.
    async fn keep_changes(&self, session: &SessionId) -> Outcome {
        let quiet = self.host.quiet(session).await?;
        let state = quiet.engine.state(session).await?;
        let kept = self.context.take(&quiet.engine, session, &state).await;
        quiet.rest(session).await;
        kept.map(drop)
    }

    async fn rewound(
        &self,
        session: &SessionId,
        to: Option<Seq>,
        by: &str,
    ) -> Outcome<CheckpointInfo> {
        let quiet = self.host.quiet(session).await?;
        quiet.is_ours(session)?;
        let (checkpoint, _) = quiet.engine.rewind(session, to, by).await?;
        drop(quiet);
        // What is kept of its changes is of what was given up.
        drop(self.keep_changes(session).await);
        Ok(told(checkpoint))
    }
}

fn told(checkpoint: SessionCheckpoint) -> CheckpointInfo {
    CheckpointInfo {
        at: checkpoint.at.0,
        at_ms: checkpoint.at_ms,
        status: checkpoint.status.to_owned(),
        said: checkpoint.said,
        kept: checkpoint.gone.is_empty(),
    }
}

#[async_trait]
impl SessionChanges for Disks {
    async fn changes(&self, session: &SessionId) -> Result<TakenChanges, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs.ask(move || async move { disks.changed(&session).await }.boxed_local()).await
    }

    async fn change_archive(&self, session: &SessionId) -> Result<File, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs.ask(move || async move { disks.archived(&session).await }.boxed_local()).await
    }

    async fn objects(
        &self,
        session: &SessionId,
        asked: ReadObjects,
    ) -> Result<Vec<u8>, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs
            .ask(move || async move { disks.committed(&session, &asked).await }.boxed_local())
            .await
    }

    async fn apply(
        &self,
        session: &SessionId,
        asked: ApplyChanges,
    ) -> Result<AppliedChanges, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs
            .ask(move || async move { disks.written_back(&session, asked).await }.boxed_local())
            .await
    }
}

#[async_trait]
impl SessionDisks for Disks {
    async fn folder(&self, session: &SessionId, path: String) -> Result<FileList, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs
            .ask(move || {
                async move { disks.looked(&session, |it| files::folder(it, path)).await }
                    .boxed_local()
            })
            .await
    }

    async fn file(&self, session: &SessionId, path: String) -> Result<FileContent, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs
            .ask(move || {
                async move { disks.looked(&session, |it| files::file(it, path)).await }
                    .boxed_local()
            })
            .await
    }

    async fn preview(
        &self,
        session: &SessionId,
        effect: Seq,
    ) -> Result<Option<FilePreview>, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs
            .ask(move || async move { disks.previewed(&session, effect).await }.boxed_local())
            .await
    }

    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<CheckpointInfo>, RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        self.jobs
            .ask(move || async move { disks.all_checkpoints(&session).await }.boxed_local())
            .await
    }

    async fn fork(
        &self,
        session: &SessionId,
        at: Option<Seq>,
        into: &SessionId,
        by: &str,
    ) -> Result<(), RequestError> {
        let (disks, session) = (self.clone(), session.clone());
        let (into, by) = (into.clone(), by.to_owned());
        self.jobs
            .ask(move || async move { disks.forked(&session, at, &into, &by).await }.boxed_local())
            .await
    }

    async fn rewind(
        &self,
        session: &SessionId,
        to: Option<Seq>,
        by: &str,
    ) -> Result<CheckpointInfo, RequestError> {
        let (disks, session, by) = (self.clone(), session.clone(), by.to_owned());
        self.jobs
            .ask(move || async move { disks.rewound(&session, to, &by).await }.boxed_local())
            .await
    }
}
