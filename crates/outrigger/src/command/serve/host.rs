//! Opens sessions for the server and drives them, each with an engine of its own over one store.
//!
//! Owns which sessions this process holds. What was appended to one is acted on by the driver
//! that holds it; where another server does, or has its sandboxes, that one is told. What a server
//! left that does not live goes on here.

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt as _};
use outrigger_agent::{Picture, Seq, SessionId, State};
use outrigger_api::{CreateSession, ServerInfo, ServerRights, SessionLimits, UploadedWorkspace};
use outrigger_engine::{EmbeddedHost, Engine, Feed, Host as _, ResumeChange};
use outrigger_policy::{AccessRules, Directory};
use outrigger_server::{RequestError, SessionHost, Upload, UploadHost};
use outrigger_store::{DueSession, Lease, LeasePurpose, Notices};
use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, OwnedRwLockReadGuard, RwLock};
use tokio::time::Instant;

use super::context::ServeContext;
use super::failure;
use super::jobs::Jobs;
use super::left::LeftBehind;
use super::opening::{self, PreparedOpening, SessionOpening};
use super::uploads::Uploads;
use crate::command::sessions::{Remover, unfinished};
use crate::command::task::{self, OpenedTask};
use crate::config::ModelChoice;
use crate::exit::{Failure, Kind, Outcome};
use crate::show::Screen;
use crate::waiting::{self, PendingApproval};
use crate::{compose, limits, notify, session};

/// A session that this process holds.
#[derive(Debug)]
struct HeldSession {
    engine: Engine,
    host: Arc<EmbeddedHost>,
    /// Read by whoever looks into its sandboxes meanwhile: they rest after that.
    looks: Arc<RwLock<()>>,
    lease: Lease,
    /// How often it was woken before it was driven here.
    wakes: u64,
}

/// A session that is driven while somebody looks into its sandboxes.
pub(super) struct DrivenSession {
    pub(super) engine: Engine,
    _look: OwnedRwLockReadGuard<()>,
}

/// Held while a session is opened, woken or let go, so that nothing falls between.
type Slot = Arc<Mutex<Option<HeldSession>>>;

/// A session that stays as it is while somebody looks into its sandboxes.
pub(super) struct QuietSession {
    pub(super) engine: Engine,
    held: OwnedMutexGuard<Option<HeldSession>>,
    lease: Option<Lease>,
}

impl QuietSession {
    /// An error where another process drives it: that one may go on at any moment.
    pub(super) fn is_ours(&self, session: &SessionId) -> Outcome {
        let ours = self.held.is_some() || self.lease.is_some();
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
    /// Something may be due.
    due: Notify,
    uploads: Uploads,
    held: StdMutex<HashMap<SessionId, Slot>>,
    jobs: Jobs,
}

impl Host {
    pub(super) fn new(context: Arc<ServeContext>, feed: Feed, jobs: Jobs) -> Self {
        let (due, held) = (Notify::new(), StdMutex::default());
        let uploads = Uploads::new(&context.paths, &context.config);
        Self(Arc::new(Inner { context, feed, due, uploads, held, jobs }))
    }

    /// Goes on with what a server of this installation left in the middle of its work. Gives how
    /// many sessions those are.
    pub(super) async fn go_on(&self) -> u64 {
        self.take_up(&mut LeftBehind::default()).await
    }

    /// Drives what is to be driven and nobody drives, for ever.
    pub(super) async fn watch(&self) {
        let mut left = LeftBehind::default();
        loop {
            let pause = Duration::from_millis(limits::SERVE_DUE_LOOK_MS);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.0.due.notified() => {}
            }
            self.take_up(&mut left).await;
        }
    }

    /// Tells followers and drivers what other servers append, for ever.
    pub(super) async fn hear(&self, mut notices: Notices) {
        while let Some((session, head)) = notices.next().await {
            if head == Seq::default() {
                self.0.due.notify_one();
                continue;
            }
            self.0.feed.tell_elsewhere(&session, head);
            let root = session.root();
            let held = self.held_slot(&root);
            if let Some(held) = held.as_ref().and_then(|slot| slot.try_lock().ok())
                && let Some(held) = &*held
            {
                // One that can't be driven on now is looked for.
                drop(held.host.poke(&root));
            }
        }
        std::future::pending().await
    }

    /// Takes up what is due. Gives how many sessions were.
    async fn take_up(&self, left: &mut LeftBehind) -> u64 {
        let database = &self.0.context.store.database;
        let due = left.ready(database.due(session::now_ms()).await, Instant::now());
        let due = due.into_iter().filter(|due| self.held_slot(&due.session).is_none());
        let taken = stream::iter(due).map(|due| async move {
            let DueSession { session, wakes, .. } = due;
            let (host, taking) = (self.clone(), session.clone());
            let job = move || async move { host.take(&taking).await }.boxed_local();
            let taken = self.0.jobs.ask(job).await;
            if taken.is_err() {
                // One that was removed, or can't go on, is told on its own page.
                drop(database.settle(&session, wakes, None).await);
            }
            taken.is_ok_and(|taken| taken)
        });
        let taken = taken.buffer_unordered(limits::SERVE_BEGIN_AT_ONCE);
        taken.fold(0, async |count, taken| count + u64::from(taken)).await
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
            return Ok(QuietSession { engine: it.engine.clone(), lease: None, held });
        }
        self.is_here(session).await?;
        let lease = store.database.lease(&session.root(), LeasePurpose::Look).await?;
        let engine = compose::caretaker(paths, config, store).await?;
        Ok(QuietSession { engine, lease, held })
    }

    /// An error where another server that lives has the sandboxes of a session.
    pub(super) async fn is_here(&self, session: &SessionId) -> Outcome {
        let elsewhere = self.0.context.store.database.is_elsewhere(&session.root()).await?;
        if elsewhere { Err(session::elsewhere(session)) } else { Ok(()) }
    }

    fn slot(&self, session: &SessionId) -> Slot {
        let mut held = self.0.held.lock().expect("nobody panics while they hold the table");
        // Those that nobody holds or waits for leave here.
        held.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().map_or(true, |it| it.is_some())
        });
        Arc::clone(held.entry(session.clone()).or_default())
    }

    fn held_slot(&self, session: &SessionId) -> Option<Slot> {
        let held = self.0.held.lock().expect("nobody panics while they hold the table");
        let slot = held.get(session).cloned();
        // One that is being opened will be held.
        slot.filter(|slot| slot.try_lock().map_or(true, |held| held.is_some()))
    }

    /// Has a session driven: here, or by the server that has it.
    async fn awake(&self, session: &SessionId) -> Outcome {
        if let Some(held) = &*self.slot(session).lock().await {
            return Ok(held.host.poke(session)?);
        }
        let database = &self.0.context.store.database;
        database.wake(session).await?;
        let taken = self.take(session).await;
        if taken.is_err() {
            let wakes = database.wakes(session).await?;
            database.settle(session, wakes, None).await?;
        }
        taken.map(drop)
    }

    /// Removes a session that is over, once it is let go of here.
    async fn take_away(&self, session: &SessionId) -> Outcome {
        let ServeContext { paths, config, store, .. } = &*self.0.context;
        self.is_here(session).await?;
        let slot = self.slot(&session.root());
        let patience = Instant::now() + Duration::from_millis(limits::SERVE_REMOVE_WAIT_MS);
        // poll: one that has just answered has its changes taken out, and is let go of then
        let _free = loop {
            let held = slot.lock().await;
            let Some(driven) = &*held else { break held };
            let state = driven.engine.state(session).await?;
            if state.in_turn() && !state.is_cancelled() {
                return Err(unfinished(session));
            }
            if Instant::now() > patience {
                return Err(session::held(session));
            }
            drop(held);
            tokio::time::sleep(Duration::from_millis(limits::SERVE_REMOVE_LOOK_MS)).await;
        };
        Remover::new(paths, config, store).remove(session).await.map(drop)
    }

    /// Drives a session, unless another process does or has its sandboxes. Gives whether it does.
    async fn take(&self, session: &SessionId) -> Outcome<bool> {
        let slot = self.slot(session);
        let mut held = slot.lock().await;
        if let Some(held) = &*held {
            held.host.poke(session)?;
            return Ok(true);
        }
        let ServeContext { paths, config, store, .. } = &*self.0.context;
        let lease = store.database.lease(session, LeasePurpose::Drive).await?;
        let Some(lease) = lease else { return Ok(false) };
        let state = session::fold(&*store.journal, session).await?;
        let spec = state.spec().cloned();
        let spec = spec.ok_or_else(|| session::none(session.as_str()))?;
        let store = store.clone().under(&lease);
        let engine = task::reopen(paths, config, &store, &spec, &Screen::keeping()).await?;
        self.hold(&mut held, session, engine, lease).await?;
        drop(held);
        self.let_go_later(session, slot);
        Ok(true)
    }

    /// Begins to drive what a server is to drive.
    async fn hold(
        &self,
        held: &mut Option<HeldSession>,
        session: &SessionId,
        engine: Engine,
        lease: Lease,
    ) -> Outcome {
        let engine = engine.with_feed(self.0.feed.clone());
        let host = Arc::new(EmbeddedHost::new(engine.clone()));
        // Before the journal is read: what somebody appends later is told by another number.
        let wakes = self.0.context.store.database.wakes(session).await?;
        host.poke(session)?;
        *held = Some(HeldSession { engine, host, looks: Arc::default(), lease, wakes });
        Ok(())
    }

    /// Lets a session go once it waits and nobody woke it meanwhile.
    fn let_go_later(&self, session: &SessionId, slot: Slot) {
        let (host, session) = (self.clone(), session.clone());
        tokio::task::spawn_local(async move { host.let_go(&session, &slot).await });
    }

    async fn let_go(&self, session: &SessionId, slot: &Slot) {
        loop {
            let held = slot.lock().await;
            let driving = held.as_ref().map(|it| (Arc::clone(&it.host), it.lease.lost()));
            drop(held);
            let Some((driving, lost)) = driving else { return };
            let parked = tokio::select! {
                parked = driving.parked(session) => parked,
                () = lost => {
                    // Dropped with its driver: another server goes on with it, or will.
                    *slot.lock().await = None;
                    let text = format!("session {session} went on at another server, because this one was not heard of for too long");
                    self.0.context.log.failure(&Failure::new(Kind::Conflict, text));
                    return;
                }
            };
            if let Err(error) = parked {
                // It stands as interrupted, and a person can let it go on.
                self.0.context.log.failure(&Failure::from(&*error));
            }
            self.tell_of(session, slot).await;
            let mut held = slot.lock().await;
            if driving.parked(session).now_or_never().is_none() {
                continue;
            }
            let Some(waiting) = &mut *held else { return };
            drop(waiting.looks.write().await);
            // What fails here is done the next time.
            drop(outrigger_engine::suspend(&waiting.engine, session).await);
            if self.has_settled(session, waiting).await {
                *held = None;
                return;
            }
        }
    }

    /// Notes that a session waits, and until when. False where somebody woke it meanwhile: then it
    /// is driven once more.
    async fn has_settled(&self, session: &SessionId, held: &mut HeldSession) -> bool {
        let database = &self.0.context.store.database;
        let state = held.engine.state(session).await.ok();
        // What is not answered in time is denied then, by whichever server looks next.
        let due_ms = state.and_then(|state| state.next_expiry_ms());
        match database.settle(session, held.wakes, due_ms).await {
            Ok(false) => {
                let Ok(wakes) = database.wakes(session).await else { return true };
                held.wakes = wakes;
                held.host.poke(session).is_err()
            }
            // One that can't be noted is looked at once more.
            Ok(true) | Err(_) => true,
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
    pub(super) async fn open(&self, mut opening: SessionOpening<'_>) -> Outcome {
        let (session, person, share) = (opening.session, opening.person, opening.share.take());
        let slot = self.slot(session);
        let mut held = slot.lock().await;
        let ServeContext { paths, store, .. } = &*self.0.context;
        if store.journal.head(session).await? > Seq::default() {
            // The server may have died right after it was opened.
            drop(held);
            return self.awake(session).await;
        }
        let lease = store.database.lease(session, LeasePurpose::Drive).await?;
        // Another server opens the very same one.
        let lease = lease.ok_or_else(|| session::held(session))?;
        let prepared = opening.prepare(&self.0.context, &self.0.uploads, lease).await?;
        let PreparedOpening { task, config, upload } = prepared;
        let mut screen = Screen::keeping();
        // Before there is a session, so that none is left behind that nobody takes up.
        store.database.wake(session).await?;
        let opening = task::open(paths, &config, Some(store.clone()), task, &mut screen);
        let OpenedTask { engine, lease, .. } = match Box::pin(opening).await {
            Ok(opened) => opened,
            Err(failure) => {
                let wakes = store.database.wakes(session).await?;
                store.database.settle(session, wakes, None).await?;
                return Err(failure);
            }
        };
        let lease = lease.ok_or_else(|| session::held(session))?;
        if let Some((with, access)) = share {
            engine.share(session, &with, access, person).await?;
        }
        self.hold(&mut held, session, engine, lease).await?;
        drop(held);
        self.let_go_later(session, slot);
        if let Some(upload) = upload {
            upload.done();
        }
        Ok(())
    }
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
        pictures: Vec<Picture>,
    ) -> Result<(), RequestError> {
        let (host, person, session) = (self.clone(), person.to_owned(), session.clone());
        let job = move || {
            async move {
                let (person, session, asked) = (person.as_str(), &session, request);
                let (start, share) = (None, None);
                let opening = SessionOpening { person, session, asked, pictures, start, share };
                Box::pin(host.open(opening)).await
            }
            .boxed_local()
        };
        self.0.jobs.ask(job).await
    }

    async fn wake(&self, session: &SessionId) -> Result<(), RequestError> {
        let (host, session) = (self.clone(), session.clone());
        self.0.jobs.ask(move || async move { host.awake(&session).await }.boxed_local()).await
    }

    fn resumed(&self, state: &State, limits: SessionLimits) -> ResumeChange {
        opening::resumed(&self.0.context.config, state, limits)
    }

    async fn is_driven(&self, session: &SessionId) -> bool {
        if self.held_slot(session).is_some() {
            return true;
        }
        self.0.context.store.database.is_leased(session).await.unwrap_or(false)
    }

    async fn remove(&self, session: &SessionId) -> Result<(), RequestError> {
        let (host, session) = (self.clone(), session.clone());
        self.0.jobs.ask(move || async move { host.take_away(&session).await }.boxed_local()).await
    }
}

#[async_trait]
impl UploadHost for Host {
    async fn begin_upload(&self, person: &str) -> Result<Upload, RequestError> {
        self.0.uploads.begin(person)
    }

    async fn end_upload(&self, id: &str) -> Result<UploadedWorkspace, RequestError> {
        let (uploads, id) = (self.0.uploads.clone(), id.to_owned());
        let ended = tokio::task::spawn_blocking(move || uploads.end(&id)).await;
        let ended = ended.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic));
        ended.and_then(|ended| ended).map_err(failure::told)
    }
}
