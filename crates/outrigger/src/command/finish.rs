//! The end of a drive: the changes are taken out of the sandbox, kept as a patch,
//! shown, and written back if that was asked for.

mod back;
mod branch;
mod delivery;
mod durable;
mod ending;
mod objects;
mod written;

use outrigger_agent::{SessionId, Spec, State};
use outrigger_api::ReadObjects;
use outrigger_engine::Engine;
use outrigger_engine::workspace::{self, Changes};
use outrigger_repository::{Change, Hazard, Rules};
use outrigger_sandbox::Sandbox;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::drive::resume_hint;
use crate::compose::Store;
use crate::config::Notify;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::show::{Screen, Tone, Totals};
use crate::waiting::{self, PendingApproval};
use crate::{limits, notify, session};

pub(crate) use back::Back;
pub(crate) use branch::{CommittedWork, give as make_branch};
pub(crate) use delivery::Delivery;
pub(crate) use durable::write;
pub(crate) use ending::{ending, next, waits};
pub(crate) use written::WrittenChanges;

/// What finishing needs.
#[derive(Debug)]
pub(crate) struct Finish<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) store: &'a Store,
    pub(crate) engine: &'a Engine,
    pub(crate) session: &'a SessionId,
    pub(crate) back: Back,
    pub(crate) retention_ms: u64,
    pub(crate) notify: &'a Notify,
}

impl Finish<'_> {
    /// Finishes, and gives the exit code. Safe to repeat.
    pub(crate) async fn execute(&self, state: &State, screen: &mut Screen) -> Outcome<u8> {
        let waiting = PendingApproval::below(&*self.store.journal, self.session).await?;
        let done = match waits(&waiting) {
            Some(failure) => self.delivery(state).tell_waiting(state, &waiting, failure, screen),
            None => self.take_out(state, screen).await,
        };
        // Whatever became of it, nothing runs on for nobody.
        self.tidy(screen).await;
        if !waiting.is_empty() {
            notify::tell(self.paths, self.notify, &waiting::notice(&waiting, None), screen).await;
        }
        if let Ok(next) = self.next(state, &waiting).await {
            screen.note(Tone::Detail, Totals::of(state).line(self.session, &next));
        }
        done
    }

    /// The command that goes on from here.
    async fn next(&self, state: &State, waiting: &[PendingApproval]) -> Outcome<String> {
        let session = self.session;
        if let Some(next) = next(state, session, waiting) {
            return Ok(next);
        }
        let last = match session::here() {
            Some(here) => session::last_in(self.store, &here).await?,
            None => None,
        };
        let is_last = last.is_some_and(|last| last.session == *session);
        let which =
            if is_last { "run --continue".to_owned() } else { format!("sessions say {session}") };
        Ok(format!("outrigger {which} \"...\""))
    }

    /// Takes the changes out, keeps, shows and writes them back, and tells the answer.
    async fn take_out(&self, state: &State, screen: &mut Screen) -> Outcome<u8> {
        let changes = screen.during("taking the changes out", self.changes(state)).await?;
        let screen = &*screen;
        let commits = async |changes: &[Change]| self.branch(state, changes, screen).await;
        self.delivery(state).deliver(state, changes, commits, screen).await
    }

    fn delivery<'a>(&'a self, state: &'a State) -> Delivery<'a> {
        let source = state.spec().and_then(|spec| spec.workspace.as_ref());
        let source = source.map(|it| Path::new(it.source.as_str()));
        let (paths, session, back) = (self.paths, self.session, self.back);
        Delivery { paths, session, back, source }
    }

    /// Keeps the patch.
    pub(crate) fn keep(&self, patch: &[u8]) -> Outcome {
        let (paths, session, back) = (self.paths, self.session, self.back);
        Delivery { paths, session, back, source: None }.keep(patch).map(drop)
    }

    /// Takes the changes out and keeps them as a patch; `None` as for [`Self::changes`].
    pub(crate) async fn take_patch(
        &self,
        state: &State,
    ) -> Outcome<Option<(Vec<u8>, Vec<Hazard>)>> {
        let Some(changes) = self.changes(state).await? else { return Ok(None) };
        let hazards = outrigger_repository::hazards(None, &changes.changed);
        let patch = outrigger_repository::patch(&changes.changed, &hazards);
        self.keep(&patch)?;
        Ok(Some((patch, hazards)))
    }

    /// Makes what was committed a branch. Nothing where nothing was.
    pub(super) async fn branch(
        &self,
        state: &State,
        changes: &[Change],
        screen: &Screen,
    ) -> Outcome<Option<CommittedWork>> {
        let source = state.spec().and_then(|spec| spec.workspace.as_ref());
        let Some(source) = source.map(|it| Path::new(&it.source)) else { return Ok(None) };
        let ask = async |asked| self.objects(state, &asked).await;
        make_branch(self.session, ask, (source, changes), screen).await
    }

    /// What was committed in the first sandbox: HEAD and objects, as git there prints them.
    pub(crate) async fn objects(&self, state: &State, asked: &ReadObjects) -> Outcome<Vec<u8>> {
        match self.sandbox(state).await? {
            Some(sandbox) => objects::objects(&*sandbox, asked).await,
            None => Ok(Vec::new()),
        }
    }

    /// The sandbox whose changes come out, if it is still there.
    async fn sandbox(&self, state: &State) -> Outcome<Option<Arc<dyn Sandbox>>> {
        let Some(spec) = state.spec() else { return Ok(None) };
        let name = first_sandbox(spec);
        let found = outrigger_engine::reattach(self.engine, self.session, state, name).await;
        Ok(found.map_err(|error| failed(&error))?.map(|found| found.sandbox))
    }

    /// After the answer was shown. Failing here fails nothing: it is tried again.
    pub(super) async fn tidy(&self, screen: &Screen) {
        // Also after an answer: more may be said. What nobody asks for is collected.
        let mut warnings =
            outrigger_engine::suspend(self.engine, self.session).await.unwrap_or_default();
        warnings.extend(outrigger_engine::gc(self.engine, self.retention_ms).await.warnings);
        warnings.iter().for_each(|warning| screen.warning(warning));
    }

    /// The changes; `None` if there is no sandbox any more that could have any. They
    /// are those of the first sandbox: the others are for what is not to come out.
    /// That they can't be taken out is remembered, so that nobody is told that there are none.
    pub(super) async fn changes(&self, state: &State) -> Outcome<Option<Changes>> {
        let taken = self.taken(state).await;
        let untaken = self.paths.untaken(self.session.as_str());
        let noted = match &taken {
            Ok(_) => fs::remove_file(&untaken),
            Err(failure) => fs::create_dir_all(self.paths.patches())
                .and_then(|()| fs::write(&untaken, &failure.message)),
        };
        // What went wrong is told in any case.
        drop(noted);
        taken
    }

    async fn taken(&self, state: &State) -> Outcome<Option<Changes>> {
        let Some(spec) = state.spec() else { return Ok(Some(Changes::default())) };
        let name = first_sandbox(spec);
        // Before it was filled, what is in a workspace is nobody's work.
        let Some(content) = spec.content(name).filter(|_| state.last_ready(name).is_some()) else {
            return Ok(Some(Changes::default()));
        };
        if state.is_set_back(name) && state.kept(name).is_empty() {
            // It is to begin anew.
            return Ok(Some(Changes::default()));
        }
        // Who cancelled the session deletes its sandbox, which must not come back here.
        if state.is_cancelled() {
            return Ok(None);
        }
        let found = outrigger_engine::reattach(self.engine, self.session, state, name).await;
        let Some(found) = found.map_err(|error| failed(&error))? else { return Ok(None) };
        if !found.whole && !spec.sandbox(name).is_none_or(|asked| asked.scope.is_thread()) {
            // Another session filled it, so that there is nothing to compare it with.
            return Ok(None);
        }
        if !found.whole {
            let text = "the sandbox died, and what is left of its disk can't be told from a half-filled one";
            return Err(Failure::new(Kind::SandboxUnavailable, text)
                .hint("Nothing was deleted. `outrigger sessions logs` has every step.")
                .hint(resume_hint(self.session)));
        }
        let sandbox = found.sandbox;
        let blobs = &self.store.blobs;
        let open = async || blobs.open(&content.archive).await.map_err(workspace::Error::Blob);
        let archive = open().await.map_err(|error| failed(&error))?;
        let ignored = tokio::task::spawn_blocking(move || Rules::of_archive(archive)).await;
        let ignored = ignored.map_err(|panic| failed(&panic))?.map_err(|error| failed(&error))?;
        // Folders of what comes along are passed over; there are single files, too.
        let comes_along = |path: &str| content.dependencies.iter().any(|it| it == path);
        let keep = |path: &str| !ignored.covers(path) && !comes_along(path);
        let changes = workspace::changes(&*sandbox, open, &content.dependencies, keep).await;
        changes.map(Some).map_err(|error| match error {
            workspace::Error::TooLarge(_) => Failure::from_error(Kind::Conflict, &error)
                .hint("What is large and not to come out is removed, or listed in .gitignore.")
                .hint(format!("Then `outrigger sessions apply {}` takes them out.", self.session)),
            error => failed(&error).hint(resume_hint(self.session)),
        })
    }
}

/// The sandbox that the directory was copied into.
pub(super) fn first_sandbox(spec: &Spec) -> &str {
    let first = spec.sandboxes.first().map(|sandbox| sandbox.name.as_str());
    first.unwrap_or(limits::SANDBOX_NAME_DEFAULT)
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::from_error(Kind::SandboxUnavailable, error)
}
