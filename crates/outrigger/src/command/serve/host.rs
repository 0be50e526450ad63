//! Opens sessions for the server and drives them, each with an engine of its own over one store.
//!
//! Owns which sessions this process holds. What was appended to one is acted on by the driver
//! that holds it; where another process does, that one sees it by itself.

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use outrigger_agent::{Author, Message, Seq, SessionId, State};
use outrigger_api::{AppliedChanges, ApplyChanges, CreateSession, ProblemCode, ServerInfo};
use outrigger_engine::{EmbeddedHost, Engine, Feed, Host as _};
use outrigger_repository::{Accept, Change};
use outrigger_server::{FilePreview, RequestError, SessionHost, TakenChanges};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Mutex;

use super::changes::files;
use super::failure::told;
use super::jobs::Jobs;
use super::marks::Marks;
use crate::change::ProposedChange;
use crate::command::detach::Driver;
use crate::command::finish::{Back, Finish, since};
use crate::command::task::{self, OpenedTask, Task};
use crate::compose::{self, Store};
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Apply;
use crate::network::Words;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::session::{self, Lock};
use crate::show::Screen;
use crate::trust::{self, JudgedFile};
use crate::waiting::{self, PendingApproval};
use crate::{limits, notify, own_files, repository, show, workspace};

/// A session that this process holds.
#[derive(Debug)]
struct HeldSession {
    engine: Engine,
    host: Arc<EmbeddedHost>,
    _lock: Lock,
}

/// Held while a session is opened, woken or let go, so that nothing falls between.
type Slot = Arc<Mutex<Option<HeldSession>>>;

/// Opens and drives the sessions of a server.
#[derive(Debug, Clone)]
pub(super) struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    paths: Paths,
    config: Config,
    model: ModelChoice,
    dir: PathBuf,
    store: Store,
    feed: Feed,
    marks: Marks,
    /// What was written back of each session, the newest last.
    applied: StdMutex<HashMap<SessionId, Vec<Vec<Change>>>>,
    held: StdMutex<HashMap<SessionId, Slot>>,
    jobs: Jobs,
}

impl Host {
    pub(super) fn new(
        paths: Paths,
        (config, model, dir): (Config, ModelChoice, PathBuf),
        (store, feed): (Store, Feed),
        jobs: Jobs,
    ) -> Self {
        let (marks, held, applied) = (Marks::new(&paths), StdMutex::default(), StdMutex::default());
        Self(Arc::new(Inner { paths, config, model, dir, store, feed, marks, applied, held, jobs }))
    }

    /// Goes on with what a server left in the middle of its work. Gives how many those are.
    pub(super) async fn go_on(&self) -> u64 {
        let left = self.0.marks.left().unwrap_or_default();
        let mut went_on = 0;
        for session in left {
            match self.wake(&session).await {
                Ok(()) => went_on += 1,
                // One that was removed, or can't go on, is told on its own page.
                Err(_) => self.0.marks.clear(&session),
            }
        }
        went_on
    }

    /// Has a job done on the thread for that.
    async fn job<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> LocalBoxFuture<'static, Outcome<T>> + Send + 'static,
    ) -> Result<T, RequestError> {
        let ends = || RequestError::new(ProblemCode::Internal, "the server is about to end");
        self.0.jobs.run(job).await.ok_or_else(ends)?.map_err(told)
    }

    fn slot(&self, session: &SessionId) -> Slot {
        let mut held = self.0.held.lock().expect("nobody panics while they hold the table");
        // Those that nobody holds or waits for leave here.
        held.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().map_or(true, |it| it.is_some())
        });
        Arc::clone(held.entry(session.clone()).or_default())
    }

    /// Has a session driven, unless another process does.
    async fn awake(&self, session: &SessionId) -> Outcome {
        let slot = self.slot(session);
        let mut held = slot.lock().await;
        if let Some(held) = &*held {
            return Ok(held.host.poke(session)?);
        }
        let Inner { paths, config, store, .. } = &*self.0;
        let Some(lock) = session::lock(&paths.lock(session.as_str()))? else { return Ok(()) };
        let state = session::fold(&*store.journal, session).await?;
        let spec = state.spec().cloned();
        let spec = spec.ok_or_else(|| session::none(session.as_str()))?;
        let engine = task::reopen(paths, config, store, &spec, &Screen::keeping()).await?;
        self.hold(&mut held, session, engine, lock)?;
        drop(held);
        self.let_go_later(session, slot);
        Ok(())
    }

    /// Begins to drive.
    fn hold(
        &self,
        held: &mut Option<HeldSession>,
        session: &SessionId,
        engine: Engine,
        lock: Lock,
    ) -> Outcome {
        let engine = engine.with_feed(self.0.feed.clone());
        let host = Arc::new(EmbeddedHost::new(engine.clone()));
        self.0.marks.set(session)?;
        host.poke(session)?;
        *held = Some(HeldSession { engine, host, _lock: lock });
        Ok(())
    }

    /// Lets a session go once it waits and nobody woke it meanwhile.
    fn let_go_later(&self, session: &SessionId, slot: Slot) {
        let (host, session) = (self.clone(), session.clone());
        tokio::task::spawn_local(async move { host.let_go(&session, &slot).await });
    }

    async fn let_go(&self, session: &SessionId, slot: &Slot) {
        loop {
            let driving = slot.lock().await.as_ref().map(|it| Arc::clone(&it.host));
            let Some(driving) = driving else { return };
            if let Err(error) = driving.parked(session).await {
                // It stands as interrupted, and a person can let it go on.
                show::failure(&Failure::from(&*error), false);
            }
            self.tell_of(session, slot).await;
            let mut held = slot.lock().await;
            if driving.parked(session).now_or_never().is_none() {
                continue;
            }
            if let Some(held) = held.take() {
                // What fails here is done the next time.
                drop(outrigger_engine::suspend(&held.engine, session).await);
            }
            self.0.marks.clear(session);
            return;
        }
    }

    /// A session that waits: what it changed is kept as a patch, and who is asked is told. What
    /// fails here is done the next time.
    async fn tell_of(&self, session: &SessionId, slot: &Slot) {
        let engine = slot.lock().await.as_ref().map(|it| it.engine.clone());
        let Some(engine) = engine else { return };
        if let Ok(state) = engine.state(session).await
            && !state.in_turn()
        {
            drop(self.take(&engine, session, &state).await);
        }
        let Inner { paths, config, store, .. } = &*self.0;
        if let Ok(waiting) = PendingApproval::below(&*store.journal, session).await
            && !waiting.is_empty()
        {
            let screen = Screen::keeping();
            notify::tell(paths, &config.notify, &waiting::list(&waiting), &screen).await;
        }
    }

    fn finish<'a>(&'a self, engine: &'a Engine, session: &'a SessionId) -> Finish<'a> {
        let Inner { paths, config, store, .. } = &*self.0;
        let (back, retention_ms) = (Back::Patch, config.retention_ms());
        Finish { paths, store, engine, session, back, retention_ms, notify: &config.notify }
    }

    /// Takes the changes out and keeps them. Gives the patch.
    async fn take(
        &self,
        engine: &Engine,
        session: &SessionId,
        state: &State,
    ) -> Outcome<TakenChanges> {
        let finish = self.finish(engine, session);
        let Some(changes) = finish.changes(state).await? else { return self.kept(session) };
        let hazards = outrigger_repository::hazards(None, &changes.changed);
        let patch = outrigger_repository::patch(&changes.changed, &hazards);
        finish.keep(&patch)?;
        let warnings = show::warnings("", &hazards);
        Ok(TakenChanges { files: files(&patch), patch, warnings })
    }

    /// What was kept when the session last waited.
    fn kept(&self, session: &SessionId) -> Outcome<TakenChanges> {
        let path = self.0.paths.patch(session.as_str());
        let patch = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|error| {
                Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
            })?,
        };
        Ok(TakenChanges { files: files(&patch), patch, warnings: Vec::new() })
    }

    /// What a session changed: as it is now where its turn runs here, else as it was kept.
    async fn changed(&self, session: &SessionId) -> Outcome<TakenChanges> {
        let slot = self.slot(session);
        let engine = slot.lock().await.as_ref().map(|it| it.engine.clone());
        let Some(engine) = engine else { return self.kept(session) };
        let state = engine.state(session).await?;
        let limit = Duration::from_millis(limits::CHANGES_MS_MAX);
        match tokio::time::timeout(limit, self.take(&engine, session, &state)).await {
            Ok(taken) => taken,
            // Its sandbox is frozen while the model thinks long.
            Err(_) => self.kept(session),
        }
    }

    /// Writes back what changed since it was written back last.
    async fn written_back(
        &self,
        session: &SessionId,
        asked: ApplyChanges,
    ) -> Outcome<AppliedChanges> {
        let Inner { paths, config, store, .. } = &*self.0;
        let slot = self.slot(session);
        let held = slot.lock().await;
        let _lock = match *held {
            Some(_) => None,
            None => Some(
                session::lock(&paths.lock(session.as_str()))?
                    .ok_or_else(|| session::held(session))?,
            ),
        };
        let engine = match &*held {
            Some(held) => held.engine.clone(),
            None => compose::caretaker(paths, config, store).await?,
        };
        let state = engine.state(session).await?;
        let dir = self.source(session, &state)?;
        let changes = self.finish(&engine, session).changes(&state).await?;
        if held.is_none() {
            drop(outrigger_engine::suspend(&engine, session).await);
        }
        let changes = changes.ok_or_else(|| {
            let text = "there is no sandbox any more to take the changes from";
            Failure::new(Kind::SandboxUnavailable, text)
                .hint("The patch has what was kept of them.")
        })?;
        let before = self.applied().get(session).cloned().unwrap_or_default();
        let changes = since(&before, changes.changed);
        let accept = if asked.accept_hazards { Accept::Named } else { Accept::Nothing };
        own_files::stay_untouched(paths, &dir, &changes)?;
        outrigger_repository::apply(&dir, &changes, accept)
            .map_err(|error| repository::failed(&dir, &error))?;
        let files = changes.len() as u64;
        self.applied().entry(session.clone()).or_default().push(changes);
        Ok(AppliedChanges { files, directory: dir.display().to_string() })
    }

    /// The directory that a session began with, if this server may write there.
    fn source(&self, session: &SessionId, state: &State) -> Outcome<PathBuf> {
        let source = state.spec().and_then(|spec| spec.workspace.as_ref());
        let source = source.map(|it| PathBuf::from(&it.source));
        let ours = workspace::tree(&self.0.dir)?.top;
        source.filter(|source| *source == ours).ok_or_else(|| {
            let text = "this server writes into the directory that it was begun in, and the session began in another one";
            Failure::new(Kind::Usage, text).hint(format!("`outrigger sessions apply {session}` writes it back."))
        })
    }

    fn applied(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Vec<Change>>>> {
        self.0.applied.lock().expect("nobody panics while they hold the table")
    }

    async fn previewed(&self, session: &SessionId, effect: Seq) -> Outcome<Option<FilePreview>> {
        let Inner { paths, config, store, .. } = &*self.0;
        let slot = self.slot(session);
        // Until it was looked at: nobody else has its sandbox rest meanwhile.
        let held = slot.lock().await;
        let engine = match &*held {
            Some(held) => held.engine.clone(),
            None => compose::caretaker(paths, config, store).await?,
        };
        let waiting = PendingApproval::find(&*store.journal, &session.effect(effect)).await?;
        let change = ProposedChange::of(&engine, &waiting).await;
        if held.is_none() {
            // It may have been cold, and goes on waiting.
            drop(outrigger_engine::suspend(&engine, session).await);
        }
        Ok(change?.map(|change| {
            let name = change.name();
            FilePreview { diff: change.diff, name, seen: change.seen }
        }))
    }

    async fn open(&self, person: &str, session: &SessionId, asked: CreateSession) -> Outcome {
        let slot = self.slot(session);
        let mut held = slot.lock().await;
        let Inner { paths, config, model, dir, store, .. } = &*self.0;
        if store.journal.head(session).await? > Seq::default() {
            return Ok(());
        }
        let (config, model) = chosen(config, model, &asked)?;
        let screen = Screen::keeping();
        let tree = workspace::tree(dir)?;
        let judged = trust::settle(paths, &tree.top, ProjectFile::all(&tree), &screen).await?;
        let mut messages: Vec<_> = judged.into_iter().filter_map(JudgedFile::message).collect();
        messages.push(Message::new(Author::Person(person.to_owned()), asked.text));
        let task = Task {
            who: person.to_owned(),
            tree,
            messages,
            apply: Apply::default(),
            model,
            name: Some(session.clone()),
            driver: Driver::Here,
        };
        let mut screen = screen;
        let opened = task::open(paths, &config, store.clone(), task, &mut screen).await?;
        let OpenedTask { engine, lock, .. } = opened;
        let lock = lock.ok_or_else(|| session::held(session))?;
        self.hold(&mut held, session, engine, lock)?;
        drop(held);
        self.let_go_later(session, slot);
        Ok(())
    }
}

/// The configuration and the model of a session, with what was asked for it.
fn chosen(
    config: &Config,
    model: &ModelChoice,
    asked: &CreateSession,
) -> Outcome<(Config, ModelChoice)> {
    let (mut config, mut model) = (config.clone(), model.clone());
    if !asked.network.is_empty() {
        let words = Words::parse(&asked.network)
            .map_err(|why| Failure::new(Kind::Usage, format!("`network`: {why}")))?;
        config.sandboxes.iter_mut().take(1).for_each(|first| first.network = words.clone());
    }
    match (&asked.model, &mut model) {
        (None, _) => {}
        (Some(name), ModelChoice::Provider(model)) => model.name.clone_from(name),
        (Some(_), ModelChoice::Script(_) | ModelChoice::Bundled(_) | ModelChoice::Unset) => {
            let text = "`model`: this server plays a script, or has no model";
            return Err(Failure::new(Kind::Usage, text));
        }
    }
    Ok((config, model))
}

#[async_trait]
impl SessionHost for Host {
    fn info(&self, person: &str) -> ServerInfo {
        let Inner { config, model, dir, .. } = &*self.0;
        let model = match model {
            ModelChoice::Provider(model) => Some(model.name.clone()),
            ModelChoice::Script(path) => Some(format!("the script {}", path.display())),
            ModelChoice::Bundled(_) => Some("the bundled script".to_owned()),
            ModelChoice::Unset => None,
        };
        let network = config.sandboxes.first().map(|first| first.network.all().to_vec());
        ServerInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            person: person.to_owned(),
            directory: dir.display().to_string(),
            model,
            network: network.unwrap_or_default(),
        }
    }

    async fn create(
        &self,
        person: &str,
        session: &SessionId,
        request: CreateSession,
    ) -> Result<(), RequestError> {
        let (host, person, session) = (self.clone(), person.to_owned(), session.clone());
        self.job(move || async move { host.open(&person, &session, request).await }.boxed_local())
            .await
    }

    async fn wake(&self, session: &SessionId) -> Result<(), RequestError> {
        let (host, session) = (self.clone(), session.clone());
        self.job(move || async move { host.awake(&session).await }.boxed_local()).await
    }

    fn is_driven(&self, session: &SessionId) -> bool {
        let slot = {
            let held = self.0.held.lock().expect("nobody panics while they hold the table");
            held.get(session).cloned()
        };
        // One that is being opened will be.
        if slot.is_some_and(|slot| slot.try_lock().map_or(true, |held| held.is_some())) {
            return true;
        }
        let lock = session::lock_briefly(&self.0.paths.lock(session.as_str()));
        lock.is_ok_and(|lock| lock.is_none())
    }

    async fn changes(&self, session: &SessionId) -> Result<TakenChanges, RequestError> {
        let (host, session) = (self.clone(), session.clone());
        self.job(move || async move { host.changed(&session).await }.boxed_local()).await
    }

    async fn apply(
        &self,
        session: &SessionId,
        asked: ApplyChanges,
    ) -> Result<AppliedChanges, RequestError> {
        let (host, session) = (self.clone(), session.clone());
        self.job(move || async move { host.written_back(&session, asked).await }.boxed_local())
            .await
    }

    async fn preview(
        &self,
        session: &SessionId,
        effect: Seq,
    ) -> Result<Option<FilePreview>, RequestError> {
        let (host, session) = (self.clone(), session.clone());
        self.job(move || async move { host.previewed(&session, effect).await }.boxed_local()).await
    }
}
