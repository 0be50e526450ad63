//! Opens sessions for the server and drives them, each with an engine of its own over one store.
//!
//! Owns which sessions this process holds. What was appended to one is acted on by the driver
//! that holds it; where another process does, that one sees it by itself.

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt as _};
use outrigger_agent::{Author, Limit, Message, Seq, SessionId, SharedAccess};
use outrigger_api::{CreateSession, ServerInfo, ServerRights, SessionLimits, UploadedWorkspace};
use outrigger_engine::{EmbeddedHost, Engine, Feed, Host as _};
use outrigger_policy::{AccessRules, Directory, Principal};
use outrigger_server::{RequestError, SessionHost, Upload};
use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedRwLockReadGuard, RwLock};

use super::context::ServeContext;
use super::failure;
use super::jobs::Jobs;
use super::marks::Marks;
use super::uploads::{TakenUpload, Uploads};
use crate::agents::{self, AgentStart};
use crate::command::detach::Driver;
use crate::command::task::{self, OpenedTask, Task};
use crate::compose;
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Apply;
use crate::network::Words;
use crate::project_file::ProjectFile;
use crate::session::{self, Lock};
use crate::show::Screen;
use crate::trust::{self, JudgedFile};
use crate::waiting::{self, PendingApproval};
use crate::{limits, notify, workspace};

/// A session that this process holds.
#[derive(Debug)]
struct HeldSession {
    engine: Engine,
    host: Arc<EmbeddedHost>,
    /// Read by whoever looks into its sandboxes meanwhile: they rest after that.
    looks: Arc<RwLock<()>>,
    _lock: Lock,
}

/// A session that is driven while somebody looks into its sandboxes.
pub(super) struct DrivenSession {
    pub(super) engine: Engine,
    _look: OwnedRwLockReadGuard<()>,
}

/// A session that is to be opened.
pub(super) struct SessionOpening<'a> {
    /// On whose behalf.
    pub(super) person: &'a str,
    pub(super) session: &'a SessionId,
    pub(super) asked: CreateSession,
    /// Which agent it is, where that is known; else what is asked for is looked up.
    pub(super) start: Option<AgentStart>,
    /// With whom it is shared from the beginning.
    pub(super) share: Option<(Principal, SharedAccess)>,
}

/// Held while a session is opened, woken or let go, so that nothing falls between.
type Slot = Arc<Mutex<Option<HeldSession>>>;

/// A session that stays as it is while somebody looks into its sandboxes.
pub(super) struct QuietSession {
    pub(super) engine: Engine,
    held: OwnedMutexGuard<Option<HeldSession>>,
    lock: Option<Lock>,
}

impl QuietSession {
    /// An error where another process drives it: that one may go on at any moment.
    pub(super) fn is_ours(&self, session: &SessionId) -> Outcome {
        let ours = self.held.is_some() || self.lock.is_some();
        if ours { Ok(()) } else { Err(session::held(session)) }
    }

    /// Nobody looks any more: its sandboxes rest, unless it is about to go on.
    pub(super) async fn rest(self, session: &SessionId) {
        if self.held.is_none() {
            drop(outrigger_engine::suspend(&self.engine, session).await);
        }
    }
}

/// Opens and drives the sessions of a server.
#[derive(Debug, Clone)]
pub(super) struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: Arc<ServeContext>,
    feed: Feed,
    marks: Marks,
    uploads: Uploads,
    held: StdMutex<HashMap<SessionId, Slot>>,
    jobs: Jobs,
}

impl Host {
    pub(super) fn new(context: Arc<ServeContext>, feed: Feed, jobs: Jobs) -> Self {
        let (marks, held) = (Marks::new(&context.paths), StdMutex::default());
        let uploads = Uploads::new(&context.paths, &context.config);
        Self(Arc::new(Inner { context, feed, marks, uploads, held, jobs }))
    }

    /// Goes on with what a server left in the middle of its work. Gives how many those are.
    pub(super) async fn go_on(&self) -> u64 {
        let left = stream::iter(self.0.marks.left().unwrap_or_default());
        let woken = left.map(|session| async move {
            let woken = self.wake(&session).await;
            // One that was removed, or can't go on, is told on its own page.
            woken.inspect_err(|_| self.0.marks.clear(&session)).is_ok()
        });
        let woken = woken.buffer_unordered(limits::SERVE_BEGIN_AT_ONCE);
        woken.fold(0, async |count, woken| count + u64::from(woken)).await
    }

    /// A session that is held: its sandboxes do not rest before it is let go of.
    pub(super) async fn driven(&self, session: &SessionId) -> Option<DrivenSession> {
        let slot = self.slot(&session.root());
        let held = slot.lock().await;
        let HeldSession { engine, looks, .. } = held.as_ref()?;
        // Who waits to have it alone has the slot, as we do.
        let look = Arc::clone(looks).try_read_owned().ok()?;
        Some(DrivenSession { engine: engine.clone(), _look: look })
    }

    /// A session into whose sandboxes somebody looks: nobody here wakes it or lets it go meanwhile.
    pub(super) async fn quiet(&self, session: &SessionId) -> Outcome<QuietSession> {
        let held = self.slot(&session.root()).lock_owned().await;
        let ServeContext { paths, config, store, .. } = &*self.0.context;
        if let Some(it) = &*held {
            return Ok(QuietSession { engine: it.engine.clone(), lock: None, held });
        }
        let lock = session::lock(&paths.lock(session.root().as_str()))?;
        let engine = compose::caretaker(paths, config, store).await?;
        Ok(QuietSession { engine, lock, held })
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
        let ServeContext { paths, config, store, .. } = &*self.0.context;
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
        *held = Some(HeldSession { engine, host, looks: Arc::default(), _lock: lock });
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
                self.0.context.log.failure(&Failure::from(&*error));
            }
            self.tell_of(session, slot).await;
            let mut held = slot.lock().await;
            if driving.parked(session).now_or_never().is_none() {
                continue;
            }
            let Some(held) = held.take() else { return };
            drop(held.looks.write().await);
            // What fails here is done the next time.
            drop(outrigger_engine::suspend(&held.engine, session).await);
            match held.engine.state(session).await.ok().and_then(|state| state.next_expiry_ms()) {
                // The mark stays: a server that comes after this one sees to it as well.
                Some(at_ms) => self.wake_at(session, at_ms),
                None => self.0.marks.clear(session),
            }
            return;
        }
    }

    /// What is not answered in time is denied then.
    fn wake_at(&self, session: &SessionId, at_ms: u64) {
        let (host, session) = (self.clone(), session.clone());
        let wait = Duration::from_millis(at_ms.saturating_sub(session::now_ms()));
        tokio::task::spawn_local(async move {
            tokio::time::sleep(wait).await;
            // One that is over by then only waits again.
            drop(host.awake(&session).await);
        });
    }

    /// The agent that a person asks for.
    async fn agent(&self, person: &str, name: &str) -> Outcome<AgentStart> {
        let ServeContext { config, store, rules, .. } = &*self.0.context;
        let scope = person.parse().ok().and_then(|who| rules.directory().ok()?.authenticate(&who));
        let scope = scope
            .ok_or_else(|| Failure::new(Kind::NotFound, format!("there is no agent `{name}`")))?;
        let agent = agents::named(&*store.entries, &scope, config, name).await?;
        Ok(AgentStart { agent, trigger: None })
    }

    /// A session that waits: what it changed is kept as a patch, and who is asked is told. What
    /// fails here is done the next time.
    async fn tell_of(&self, session: &SessionId, slot: &Slot) {
        let engine = slot.lock().await.as_ref().map(|it| it.engine.clone());
        let Some(engine) = engine else { return };
        if let Ok(state) = engine.state(session).await
            && !state.in_turn()
        {
            drop(self.0.context.take(&engine, session, &state).await);
        }
        let ServeContext { paths, config, store, page, .. } = &*self.0.context;
        if let Ok(waiting) = PendingApproval::below(&*store.journal, session).await
            && !waiting.is_empty()
        {
            let screen = Screen::keeping();
            notify::tell(paths, &config.notify, &waiting::notice(&waiting, Some(page)), &screen)
                .await;
        }
    }

    /// Opens a session and has it driven. Where there is one of that name it only goes on.
    pub(super) async fn open(&self, opening: SessionOpening<'_>) -> Outcome {
        let SessionOpening { person, session, mut asked, start, share } = opening;
        let slot = self.slot(session);
        let mut held = slot.lock().await;
        let ServeContext { paths, config, model, dir, store, .. } = &*self.0.context;
        if store.journal.head(session).await? > Seq::default() {
            // The server may have died right after it was opened.
            drop(held);
            return self.awake(session).await;
        }
        let start = match (start, &asked.agent) {
            (None, Some(name)) => Some(self.agent(person, name).await?),
            (start, _) => start,
        };
        let mut config = config.clone();
        if let Some(AgentStart { agent, .. }) = &start {
            agent.settle(&mut config);
            asked.text = agent.task(asked.text)?;
            asked.model = asked.model.or(agent.definition.model.clone());
        }
        let (config, model) = chosen(config, model, &asked)?;
        let screen = Screen::keeping();
        let upload = asked.workspace.as_ref();
        let upload = upload.map(|sent| self.0.uploads.take(person, &sent.id)).transpose()?;
        let (tree, mut messages, sent) = match (&upload, &asked.workspace) {
            (Some(upload), Some(sent)) => {
                let tree = upload.tree(&sent.prefix)?;
                let messages = TakenUpload::messages(&tree, sent, person);
                (tree, messages, Some(upload.content(&sent.source)?))
            }
            _ => {
                let tree = workspace::tree(dir)?;
                let all = ProjectFile::all(&tree);
                let judged = trust::settle(paths, &tree.top, all, &screen).await?;
                (tree, judged.into_iter().filter_map(JudgedFile::message).collect(), None)
            }
        };
        let data = asked.data.into_iter();
        messages.extend(data.map(|it| Message::new(Author::Untrusted(it.name), it.text)));
        messages.push(Message::new(Author::Person(person.to_owned()), asked.text));
        let task = Task {
            who: person.to_owned(),
            tree,
            sent,
            messages,
            apply: Apply::default(),
            model,
            name: Some(session.clone()),
            driver: Driver::Here,
            agent: start,
        };
        let mut screen = screen;
        // Before there is a session, so that none is left behind that nobody takes up.
        self.0.marks.set(session)?;
        let opening = task::open(paths, &config, Some(store.clone()), task, &mut screen);
        let opened = Box::pin(opening).await;
        let OpenedTask { engine, lock, .. } =
            opened.inspect_err(|_| self.0.marks.clear(session))?;
        let lock = lock.ok_or_else(|| session::held(session))?;
        if let Some((with, access)) = share {
            engine.share(session, &with, access, person).await?;
        }
        self.hold(&mut held, session, engine, lock)?;
        drop(held);
        self.let_go_later(session, slot);
        if let Some(upload) = upload {
            upload.done();
        }
        Ok(())
    }
}

/// What limits a session beside its agent.
fn limit_of(limits: SessionLimits) -> Limit {
    Limit {
        steps: None,
        tokens: limits.tokens_max,
        money_nanos: limits.money_nanos_max,
        wall_ms: limits.wall_ms_max,
        cpu_ms: limits.cpu_ms_max,
        egress_bytes: limits.egress_bytes_max,
    }
}

/// The configuration and the model of a session, with what was asked for it.
fn chosen(
    mut config: Config,
    model: &ModelChoice,
    asked: &CreateSession,
) -> Outcome<(Config, ModelChoice)> {
    let mut model = model.clone();
    if !asked.network.is_empty() {
        let words = Words::parse(&asked.network)
            .map_err(|why| Failure::new(Kind::Usage, format!("`network`: {why}")))?;
        config.sandboxes.iter_mut().take(1).for_each(|first| first.network = words.clone());
    }
    config.steps_max =
        asked.limits.steps_max.map_or(config.steps_max, |it| it.min(config.steps_max));
    config.narrow(limit_of(asked.limits));
    config.when_busy = outrigger_server::when_busy(asked.when_busy);
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
        let ServeContext { config, model, dir, .. } = &*self.0.context;
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
            rights: ServerRights::default(),
            directory: dir.display().to_string(),
            model,
            network: network.unwrap_or_default(),
        }
    }

    fn access(&self) -> Result<Arc<AccessRules>, RequestError> {
        self.0.context.rules.access().map_err(failure::of_server)
    }

    fn directory(&self) -> Result<Directory, RequestError> {
        self.0.context.rules.directory().map_err(failure::of_server)
    }

    async fn create(
        &self,
        person: &str,
        session: &SessionId,
        request: CreateSession,
    ) -> Result<(), RequestError> {
        let (host, person, session) = (self.clone(), person.to_owned(), session.clone());
        let job = move || {
            async move {
                let (person, session, asked) = (person.as_str(), &session, request);
                let opening = SessionOpening { person, session, asked, start: None, share: None };
                Box::pin(host.open(opening)).await
            }
            .boxed_local()
        };
        self.0.jobs.ask(job).await
    }

    async fn begin_upload(&self, person: &str) -> Result<Upload, RequestError> {
        self.0.uploads.begin(person)
    }

    async fn end_upload(&self, id: &str) -> Result<UploadedWorkspace, RequestError> {
        let (uploads, id) = (self.0.uploads.clone(), id.to_owned());
        let ended = tokio::task::spawn_blocking(move || uploads.end(&id)).await;
        let ended = ended.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic));
        ended.and_then(|ended| ended).map_err(failure::told)
    }

    async fn wake(&self, session: &SessionId) -> Result<(), RequestError> {
        let (host, session) = (self.clone(), session.clone());
        self.0.jobs.ask(move || async move { host.awake(&session).await }.boxed_local()).await
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
        let lock = session::lock_briefly(&self.0.context.paths.lock(session.as_str()));
        lock.is_ok_and(|lock| lock.is_none())
    }
}
