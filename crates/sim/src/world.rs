//! What outlives a harness: the journal, the blobs, the sandboxes.

use outrigger_agent::{
    Amounts, Approvals, Author, Event, Message, ModelSpec, Park, Record, Seq, SessionId, Spec,
    State, TurnLimits, Workspace,
};
use outrigger_engine::{Clock, Engine, Error, Feed, Parts, Site};
use outrigger_model::Model;
use outrigger_policy::RuleSet;
use outrigger_sandbox::fake::{Disk, Fake};
use outrigger_sandbox::{Backend, Suspend};
use outrigger_store::{Blobs, Journal, Memory, load_all};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::crash::{Death, Mortal};
use crate::limits;
use crate::model::Simulated;

/// Name of the sandbox in the simulated sessions.
pub(crate) const SANDBOX: &str = "work";

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
    model: Arc<dyn Model>,
    clock: Arc<dyn Clock>,
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
pub(crate) enum Ended {
    /// The session waits.
    Parked(Park),
    /// It was killed.
    Killed,
}

impl World {
    /// A new world, with the session opened and a task said.
    pub(crate) async fn begin(seed: u64) -> Result<Self, Error> {
        let world = Self {
            journal: Memory::default(),
            sandboxes: Fake::new(),
            session: SessionId::new(format!("sim-{seed}")).expect("digits are plain"),
            model: Arc::new(Simulated::new(seed)),
            clock: Arc::new(VirtualClock(Instant::now())),
        };
        let archive = world.journal.put(archive()).await;
        let archive =
            archive.map_err(|source| Error::Journal { session: world.session.clone(), source })?;
        let workspace = Workspace { archive, bytes: 0, files: 1, source: "simulated".to_owned() };
        let engine = world.engine(world.mortal(Death::Never));
        let task =
            Message { author: Author::Person("person:sim".to_owned()), text: "go".to_owned() };
        engine.open(&world.session, spec(seed, workspace), vec![task]).await?;
        Ok(world)
    }

    fn engine(&self, journal: Arc<Mortal>) -> Engine {
        let mut site = Site::new(Arc::new(self.sandboxes.clone()), Fake::spec());
        site.care.freeze_after_ms = Some(limits::FREEZE_AFTER_MS);
        Engine::new(Parts {
            journal,
            blobs: Arc::new(self.journal.clone()),
            model: Arc::clone(&self.model),
            sandboxes: [(SANDBOX.to_owned(), site)].into(),
            outside: BTreeMap::new(),
            rules: Arc::new(RuleSet::local_default()),
            clock: Arc::clone(&self.clock),
            feed: Feed::default(),
        })
    }

    /// Lives one life of a harness.
    pub(crate) async fn live(&self, fate: Fate) -> Result<(Ended, u64), Error> {
        if let Some(disk) = fate.lost_before {
            self.lose(disk);
        }
        let journal = self.mortal(fate.death);
        let engine = self.engine(Arc::clone(&journal));
        let poke = Notify::new();
        let driving = async {
            let mut park = self.befall(fate, engine.drive(&self.session, &poke)).await?;
            loop {
                // Who waits has its answer; what follows can be killed as well.
                engine.rest(&self.session).await?;
                // Whoever appends meanwhile pokes.
                let again = engine.drive(&self.session, &poke).await?;
                if again == park {
                    return Ok(park);
                }
                park = again;
            }
        };
        let ended = match fate.killed_after {
            None => Some(driving.await),
            // Dropping the future is what a SIGKILL leaves: nothing further happens.
            Some(moment) => tokio::time::timeout(moment, driving).await.ok(),
        };
        let writes = journal.writes();
        match ended {
            None => Ok((Ended::Killed, writes)),
            Some(_) if journal.is_dead() => Ok((Ended::Killed, writes)),
            Some(Ok(park)) => Ok((Ended::Parked(park), writes)),
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
    async fn suspend(&self, how: Suspend) {
        let id = Engine::sandbox_id(&self.session, SANDBOX);
        drop(self.sandboxes.suspend(&id, how).await);
    }

    fn lose(&self, disk: Disk) {
        self.sandboxes.lose(&Engine::sandbox_id(&self.session, SANDBOX), disk);
    }

    fn mortal(&self, death: Death) -> Arc<Mortal> {
        Arc::new(Mortal::new(self.journal.clone(), self.sandboxes.clone(), death))
    }

    /// Everything that was journalled.
    pub(crate) async fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let read =
            load_all(&self.journal, &self.session, Seq::default(), |record| records.push(record));
        read.await.expect("a journal in memory can be read");
        records
    }

    pub(crate) async fn verify(&self) -> bool {
        self.journal.verify(&self.session).await.is_ok()
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

/// The tokens that a seed's session may spend, if they are few: a lost attempt
/// stays charged, so such a session may end earlier when it was killed.
pub(crate) fn few_tokens(seed: u64) -> Option<u64> {
    let mut rng = fastrand::Rng::with_seed(seed.rotate_left(41));
    (rng.u8(..) < 40).then(|| rng.u64(5_000..40_000))
}

fn spec(seed: u64, workspace: Workspace) -> Spec {
    let mut rng = fastrand::Rng::with_seed(seed.rotate_left(33));
    // Now and then the limits bite.
    let steps_max = if rng.u8(..) < 40 { rng.u64(1..12) } else { 1_000 };
    let tokens = few_tokens(seed).unwrap_or(10_000_000);
    Spec {
        principal: "person:sim".to_owned(),
        model: ModelSpec {
            name: "simulated".to_owned(),
            provider: "simulated".to_owned(),
            address: None,
            context_tokens: 200_000,
            output_tokens_max: 4_000,
            scripted: true,
        },
        system: "You are simulated.".to_owned(),
        tools: outrigger_tools::specs(SANDBOX),
        budget: Amounts { steps: 10_000, tokens },
        turn: TurnLimits { steps_max, wall_ms_max: 3_600_000 },
        approvals: Approvals::default(),
        workspace: Some(workspace),
        sandboxes: Vec::new(),
    }
}

/// A workspace with one file.
fn archive() -> Vec<u8> {
    let mut builder = outrigger_engine::workspace::Builder::default();
    builder.file("seed", b"a", false);
    builder.finish()
}

/// What an event is, for people.
pub(crate) fn name(event: &Event) -> String {
    let text = format!("{event:?}");
    text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
}
