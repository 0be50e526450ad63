//! What outlives a harness: the journal, the blobs, the sandboxes.

use outrigger_agent::{
    AccountId, Author, Event, Limit, Message, Park, Record, Seq, SessionId, State, Workspace,
};
use outrigger_engine::{Clock, Engine, Error, Feed, Parts, SandboxConfig};
use outrigger_sandbox::{Backend, SandboxId, Suspend};
use outrigger_sandbox_testing::fake::{Disk, Fake};
use outrigger_store::{
    AccountStop, Accounts, Blobs, Journal, Memory, Terms, TermsChange, load_all,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::accounts;
use crate::backend::WitnessedBackend;
use crate::crash::{Death, Mortal};
use crate::disk::Disorder;
use crate::ledger::Under;
use crate::limits;
use crate::model::{ModelClient, SimulatedModel};
use crate::rules::{Books, Kind};
use crate::spec::{SANDBOX, archive, spec};
use crate::store::{Life, Store, Without};
use crate::tally::Happening;
use crate::tool_server::ToolServer;
use crate::witness::{Detail, Witness};

/// Milliseconds since the world began, by tokio's paused clock.
#[derive(Debug)]
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        1_000_000 + u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A world with one session in it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) journal: Memory,
    pub(crate) sandboxes: Fake,
    pub(crate) session: SessionId,
    /// All sessions that people began.
    pub(crate) roots: Vec<SessionId>,
    pub(crate) seed: u64,
    pub(crate) witness: Arc<Witness>,
    /// The rules that are in force as long as nobody changes them.
    pub(crate) kind: Kind,
    books: Arc<Books>,
    without: Option<Without>,
    model: Arc<SimulatedModel>,
    clock: Arc<dyn Clock>,
    /// Processes that there were.
    lives: AtomicU64,
}

/// What all worlds have in common.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub(crate) books: Arc<Books>,
    pub(crate) without: Option<Without>,
    pub(crate) told: Detail,
}

/// A process that drives, or acts on, the session.
#[derive(Debug)]
pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) journal: Arc<Mortal>,
}

/// What befalls one life of a harness.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fate {
    /// What happens at a write.
    pub(crate) death: Death,
    /// When it is killed, between writes.
    pub(crate) killed_after: Option<Duration>,
    /// The sandbox is lost before it begins.
    pub(crate) lost_before: Option<Disk>,
    /// When the sandbox is lost, between writes.
    pub(crate) lost_after: Option<(Duration, Disk)>,
    /// When somebody else suspends the sandbox, or tries to, between writes.
    pub(crate) suspended_after: Option<(Duration, Suspend)>,
}

/// How a harness ended.
#[derive(Debug)]
pub(crate) enum RunEnd {
    /// The session waits.
    Parked(Park),
    /// It was killed.
    Killed,
}

impl World {
    /// A new world, with the session opened and a task said. In a concurrent run the model
    /// fails now and then.
    pub(crate) async fn begin(
        seed: u64,
        how: &How,
        concurrent: Option<fastrand::Rng>,
    ) -> Result<Self, Error> {
        let session = SessionId::new(format!("sim-{seed}")).expect("digits are plain");
        let witness = Arc::new(Witness::new(how.told));
        let mut roots = vec![session.clone()];
        if concurrent.is_some() && accounts::has(seed) {
            let beside = |name| SessionId::new(format!("{name}-{seed}"));
            roots.extend(["beside", "third"].into_iter().filter_map(beside));
        }
        let world = Self {
            journal: Memory::default(),
            roots,
            sandboxes: Fake::new(),
            session,
            seed,
            kind: Kind::of(seed),
            books: Arc::clone(&how.books),
            without: how.without,
            model: Arc::new(SimulatedModel::new(seed, Arc::clone(&witness), concurrent)),
            clock: Arc::new(VirtualClock(Instant::now())),
            lives: AtomicU64::new(0),
            witness,
        };
        let archive = world.journal.put(archive()).await;
        let archive =
            archive.map_err(|source| Error::Journal { session: world.session.clone(), source })?;
        let workspace = Workspace {
            archive,
            bytes: 0,
            files: 1,
            source: "simulated".to_owned(),
            dependencies: Vec::new(),
            prefix: String::new(),
        };
        let engine = world.harness(world.kind, Death::Never, None).engine;
        let task = Message::new(Author::Person("person:sim".to_owned()), "go".to_owned());
        for root in &world.roots {
            engine.open(root, spec(seed, workspace.clone()), vec![task.clone()]).await?;
        }
        Ok(world)
    }

    /// A process where these rules are in force. In a concurrent run the store and the backend
    /// fail it now and then.
    pub(crate) fn harness(
        &self,
        kind: Kind,
        death: Death,
        concurrent: Option<&mut fastrand::Rng>,
    ) -> Harness {
        let believes = match self.without {
            Some(Without::Redecision) => self.kind,
            _ => kind,
        };
        let rules = self.books.get(believes);
        let under = Under { kind, hash: rules.hash() };
        let (witness, without) = (Arc::clone(&self.witness), self.without);
        let life = Arc::new(Life::new(1 + self.lives.fetch_add(1, Ordering::Relaxed)));
        let inner = self.journal.clone();
        let store = Store { inner, witness, without, under, life: Arc::clone(&life) };
        let (disorder, mood, temper) = match concurrent {
            None => (None, None, None),
            Some(rng) => {
                let (disorder, mood) = (Disorder::new(rng.fork()), Mutex::new(rng.fork()));
                (Some(disorder), Some(Arc::new(mood)), Some(Mutex::new(rng.fork())))
            }
        };
        let (seen, alive) = (Arc::clone(&self.witness), Arc::clone(&life));
        let tool_server = ToolServer { witness: seen, under, life: alive, mood: temper };
        let (fake, witness) = (self.sandboxes.clone(), Arc::clone(&self.witness));
        let model =
            Arc::new(ModelClient { model: Arc::clone(&self.model), life: Arc::clone(&life) });
        let backend = WitnessedBackend { fake, witness, under, life, mood };
        let (sandboxes, root) = (self.sandboxes.clone(), self.session.clone());
        let journal = Arc::new(Mortal::new(store, sandboxes, death, disorder, root));
        let mut config = SandboxConfig::new(Arc::new(backend), Fake::spec());
        config.retention.freeze_after_ms = Some(limits::FREEZE_AFTER_MS);
        let engine = Engine::new(Parts {
            journal: Arc::clone(&journal) as Arc<dyn Journal>,
            blobs: Arc::new(self.journal.clone()),
            model,
            sandboxes: [(SANDBOX.to_owned(), config)].into(),
            egress: None,
            outside: tool_server.servers(),
            memory: None,
            rules: Arc::new(rules.clone()),
            clock: Arc::clone(&self.clock),
            feed: Feed::default(),
        });
        Harness { engine, journal }
    }

    /// The time that the next event carries.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// A process that drives nothing, and lives.
    pub(crate) fn bystander(&self) -> Engine {
        self.harness(self.kind, Death::Never, None).engine
    }

    /// Lives one life of a harness.
    pub(crate) async fn live(&self, fate: Fate) -> Result<(RunEnd, u64), Error> {
        if let Some(disk) = fate.lost_before {
            self.lose(disk);
        }
        let Harness { engine, journal } = self.harness(self.kind, fate.death, None);
        let driving = self.befall(fate, drive(&engine, &self.session));
        let ended = match fate.killed_after {
            None => Some(driving.await),
            // Dropping the future is what a SIGKILL leaves: nothing further happens.
            Some(moment) => tokio::time::timeout(moment, driving).await.ok(),
        };
        let writes = journal.writes();
        match ended {
            None => {
                journal.kill(Happening::KilledBetween);
                Ok((RunEnd::Killed, writes))
            }
            Some(_) if journal.is_dead() => Ok((RunEnd::Killed, writes)),
            Some(Ok(park)) => Ok((RunEnd::Parked(park), writes)),
            Some(Err(error)) => Err(error),
        }
    }

    /// Drives, and does meanwhile what befalls the sandbox.
    async fn befall<T>(&self, fate: Fate, driving: impl Future<Output = T>) -> T {
        let mut driving = std::pin::pin!(driving);
        let moment = fate.lost_after.map(|(moment, _)| moment);
        if let Some(moment) = moment.or(fate.suspended_after.map(|(moment, _)| moment)) {
            match tokio::time::timeout(moment, &mut driving).await {
                Ok(ended) => return ended,
                Err(_) => match (fate.lost_after, fate.suspended_after) {
                    (Some((_, disk)), _) => self.lose(disk),
                    (None, Some((_, how))) => self.suspend(how).await,
                    (None, None) => {}
                },
            }
        }
        driving.await
    }

    /// As an idle time that is over does it. Busy, or gone, is fine.
    pub(crate) async fn suspend(&self, how: Suspend) {
        let id = self.some_sandbox();
        if self.sandboxes.suspend(&id, how).await.is_ok() {
            self.witness.count(Happening::Suspended);
        }
    }

    /// That of a session which happens to be hit.
    fn some_sandbox(&self) -> SandboxId {
        let sessions = self.witness.sessions();
        let place = usize::try_from(self.now_ms()).unwrap_or_default() % sessions.len().max(1);
        let hit = sessions.get(place).unwrap_or(&self.session);
        if !self.roots.contains(hit) {
            self.witness.count(Happening::ChildUnhoused);
        }
        outrigger_engine::sandbox_id(hit, SANDBOX)
    }

    pub(crate) fn lose(&self, disk: Disk) {
        self.sandboxes.lose(&self.some_sandbox(), disk);
        self.witness.count(match disk {
            Disk::Kept => Happening::LostLife,
            Disk::Dropped => Happening::LostDisk,
        });
    }

    /// Limits what all its sessions may spend together: by the organisation or by the user.
    pub(crate) async fn limit_all(&self, rng: &mut fastrand::Rng) {
        let tokens = rng.u64(limits::PURSE_TOKENS_MIN..limits::PURSE_TOKENS_MAX);
        let limit = Limit { tokens: Some(tokens), ..Limit::NONE };
        let change = TermsChange::Set(Terms { limit, ..Terms::default() });
        let account = match rng.bool() {
            true => AccountId::organisation(),
            false => AccountId::user("person:sim"),
        };
        let set = self.journal.set_terms(&account, change).await;
        set.expect("accounts in memory can be set");
        self.witness.accounts(|accounts| accounts.limit(tokens));
    }

    /// Throws the switch that stops everything, or takes it back.
    pub(crate) async fn switch(&self, is_stopped: bool) {
        let (by, reason, at_ms) = ("person:other".to_owned(), String::new(), self.now_ms());
        let change = match is_stopped {
            true => TermsChange::Stop(AccountStop { by, reason, at_ms }),
            false => TermsChange::Allow,
        };
        let set = self.journal.set_terms(&AccountId::organisation(), change).await;
        set.expect("accounts in memory can be set");
        self.witness.accounts(|accounts| accounts.stop(is_stopped));
        if is_stopped {
            self.witness.count(Happening::Switched);
        }
    }

    /// Everything that was journalled of a session.
    pub(crate) async fn records(&self, session: &SessionId) -> Vec<Record> {
        let mut records = Vec::new();
        let read = load_all(&self.journal, session, Seq::default(), |record| records.push(record));
        read.await.expect("a journal in memory can be read");
        records
    }

    /// How a session stands.
    pub(crate) async fn state(&self, session: &SessionId) -> State {
        fold(&self.records(session).await, |_, _| ())
    }

    pub(crate) async fn verify(&self, session: &SessionId) -> bool {
        self.journal.verify(session).await.is_ok()
    }

    /// The first effect that waits for a person, of the session that people began or of
    /// those below it.
    pub(crate) async fn first_asked(&self) -> Option<(SessionId, Seq, State)> {
        let mut open = vec![self.session.clone()];
        while let Some(session) = open.pop() {
            let state = self.state(&session).await;
            let asked = state.asked().next().map(|(effect, ..)| effect);
            if let Some(effect) = asked {
                return Some((session, effect, state));
            }
            let mut below: Vec<SessionId> = state.subagents(&session).collect();
            below.reverse();
            open.extend(below);
        }
        None
    }
}

/// Drives a session until it waits, and looks after its sandboxes.
pub(crate) async fn drive(engine: &Engine, session: &SessionId) -> Result<Park, Error> {
    let poke = Notify::new();
    let mut park = outrigger_engine::drive(engine, session, &poke).await?;
    loop {
        // Who waits has its answer; what follows can be killed as well.
        outrigger_engine::suspend(engine, session).await?;
        // Whoever appends meanwhile pokes.
        let again = outrigger_engine::drive(engine, session, &poke).await?;
        if again == park {
            return Ok(park);
        }
        park = again;
    }
}

/// Folds a journal, and shows each record with the state that it leads to.
pub(crate) fn fold(records: &[Record], mut each: impl FnMut(&Record, &State)) -> State {
    let mut state = State::default();
    for record in records {
        state = state.apply(record);
        each(record, &state);
    }
    state
}

/// What an event is, for people.
pub(crate) fn name(event: &Event) -> String {
    let text = format!("{event:?}");
    text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
}
