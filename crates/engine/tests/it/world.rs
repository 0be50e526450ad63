//! An engine with sessions, and everything around them in memory.

use outrigger_agent::{
    Approvals, Author, Item, Limit, Message, ModelSpec, Park, Price, Role, SandboxScope,
    SandboxSpec, SessionId, Spec, State, ToolSpec, TurnLimits, WhenBusy, Workspace,
};
use outrigger_engine::{
    Clock, Engine, Feed, MemoryService, Parts, RetentionPolicy, SandboxConfig, workspace,
};
use outrigger_model::Model;
use outrigger_policy::RuleSet;
use outrigger_sandbox::{Backend, SandboxId};
use outrigger_sandbox_testing::fake::Fake;
use outrigger_store::{Blobs, Journal, Memory};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::model::{FakeModel, Step};
use crate::spy::Spy;

#[derive(Debug)]
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

/// A machine.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) journal: Memory,
    pub(crate) spy: Spy,
    pub(crate) retention: RetentionPolicy,
    pub(crate) sandboxes: Vec<(SandboxSpec, Spy)>,
    pub(crate) rules: RuleSet,
    /// What subagents say, by the beginning of their task.
    pub(crate) below: Vec<(String, Vec<Step>)>,
    pub(crate) role: Role,
    pub(crate) budget: Limit,
    pub(crate) approvals: Approvals,
    pub(crate) price: Option<Price>,
    pub(crate) memory: Option<MemoryService>,
    /// What sessions have beside our own.
    tools: Vec<ToolSpec>,
    clock: Arc<VirtualClock>,
    workspace: Workspace,
}

/// A sandbox of a session, as it asks for it.
pub(crate) fn asked(name: &str, scope: SandboxScope) -> SandboxSpec {
    SandboxSpec {
        network: Vec::new(),
        name: name.to_owned(),
        backend: "fake".to_owned(),
        isolation_min: "fake".to_owned(),
        workspace: name == "work",
        template: None,
        scope,
    }
}

impl World {
    /// With one sandbox, `work`, whose workspace begins with the file `seed`.
    pub(crate) async fn new() -> Self {
        Self::with(Spy::new("fake"), SandboxScope::Thread).await
    }

    pub(crate) async fn with(spy: Spy, scope: SandboxScope) -> Self {
        let journal = Memory::default();
        let mut builder = workspace::Builder::default();
        builder.file("seed", b"seed\n", false);
        let archive = journal.put(builder.finish()).await.unwrap();
        let workspace = Workspace {
            archive,
            bytes: 0,
            files: 1,
            source: "here".to_owned(),
            dependencies: Vec::new(),
            prefix: String::new(),
        };
        let sandboxes = vec![(asked("work", scope), spy.clone())];
        let clock = Arc::new(VirtualClock(Instant::now()));
        let rules = RuleSet::local_default();
        let (below, role, budget, price) = (Vec::new(), Role::default(), Limit::NONE, None);
        let (retention, tools) = (RetentionPolicy::default(), Vec::new());
        Self {
            journal,
            spy,
            retention,
            sandboxes,
            tools,
            clock,
            workspace,
            rules,
            below,
            role,
            budget,
            approvals: Approvals::default(),
            price,
            memory: None,
        }
    }

    /// Offers these tools beside our own.
    pub(crate) fn having(mut self, tools: &[ToolSpec]) -> Self {
        self.tools.extend_from_slice(tools);
        self
    }

    pub(crate) fn engine(&self, steps: &[Step]) -> Engine {
        self.engine_on(
            Arc::new(self.journal.clone()),
            Arc::new(FakeModel::new(steps).and(&self.below)),
        )
    }

    /// An engine on this journal and with this model.
    pub(crate) fn engine_on(&self, journal: Arc<dyn Journal>, model: Arc<dyn Model>) -> Engine {
        let config = |(asked, spy): &(SandboxSpec, Spy)| {
            let backend: Arc<dyn Backend> = Arc::new(spy.clone());
            let config = SandboxConfig { backend, spec: Fake::spec(), retention: self.retention };
            (asked.name.clone(), config)
        };
        Engine::new(Parts {
            journal,
            blobs: Arc::new(self.journal.clone()),
            model,
            sandboxes: self.sandboxes.iter().map(config).collect(),
            egress: None,
            outside: BTreeMap::new(),
            memory: self.memory.clone(),
            rules: Arc::new(self.rules.clone()),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            feed: Feed::default(),
        })
    }

    pub(crate) fn spec(&self) -> Spec {
        let mut names = self.sandboxes.iter().map(|(asked, _)| asked.name.as_str());
        let mut tools = names.next().map(outrigger_tools::specs).unwrap_or_default();
        tools.extend(names.flat_map(outrigger_tools::specs_of_further));
        if self.memory.is_some() {
            outrigger_tools::serve(&mut tools);
        }
        if !self.role.agents.is_empty() {
            tools.push(outrigger_tools::subagent::spec(&self.role.agents));
        }
        tools.extend(self.tools.iter().cloned());
        Spec {
            principal: "person:test".to_owned(),
            model: ModelSpec {
                name: "told".to_owned(),
                provider: "told".to_owned(),
                address: None,
                context_tokens: 200_000,
                output_tokens_max: 1_000,
                scripted: true,
                price: self.price,
            },
            system: String::new(),
            tools,
            budget: self.budget,
            soft: Limit::NONE,
            turn: TurnLimits { steps_max: 1_000, wall_ms_max: 3_600_000 },
            approvals: self.approvals,
            when_busy: WhenBusy::default(),
            workspace: Some(self.workspace.clone()),
            sandboxes: self.sandboxes.iter().map(|(asked, _)| asked.clone()).collect(),
            role: self.role.clone(),
        }
    }

    /// Milliseconds since it began.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    pub(crate) async fn open(&self, engine: &Engine, name: &str) -> SessionId {
        let session = session(name);
        engine.open(&session, self.spec(), vec![said("go")]).await.unwrap();
        session
    }

    /// A session that says what it was told to until it waits.
    pub(crate) async fn played(&self, steps: &[Step]) -> (Engine, SessionId) {
        let engine = self.engine(steps);
        let session = self.open(&engine, "s1").await;
        drive(&engine, &session).await;
        (engine, session)
    }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn said(text: &str) -> Message {
    Message::new(Author::Person("person:test".to_owned()), text.to_owned())
}

pub(crate) async fn drive(engine: &Engine, session: &SessionId) {
    let park = outrigger_engine::drive(engine, session, &Notify::new()).await.unwrap();
    assert_eq!(park, Park::Message);
}

/// Another turn, after the sandboxes were looked after.
pub(crate) async fn next_turn(engine: &Engine, session: &SessionId) {
    assert_eq!(outrigger_engine::suspend(engine, session).await.unwrap(), []);
    engine.say(session, said("go on")).await.unwrap();
    drive(engine, session).await;
}

pub(crate) fn work(session: &SessionId) -> SandboxId {
    outrigger_engine::sandbox_id(session, "work")
}

/// What the model was told beside results.
pub(crate) fn notices(state: &State) -> Vec<String> {
    let notice = |item: &Item| match item {
        Item::Notice(text) => Some(text.to_string()),
        _ => None,
    };
    state.conversation().iter().filter_map(notice).collect()
}

/// What the tools gave.
pub(crate) fn results(state: &State) -> Vec<String> {
    let result = |item: &Item| match item {
        Item::Result(result) => Some(result.text.clone()),
        _ => None,
    };
    state.conversation().iter().filter_map(result).collect()
}
