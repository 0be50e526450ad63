//! The harness under measurement: the product's parts, put together as the product
//! does it, in a directory of its own.
//!
//! Owns the sandboxes in it. Must never take a part that the
//! product does not take: no journal in memory, no fake sandbox, no scripted model.

use outrigger_agent::{
    Approvals, Author, Limit, Message, ModelSpec, Role, SessionId, Spec, TurnEnd, TurnLimits,
    WhenBusy, Workspace,
};
use outrigger_engine::{
    EmbeddedHost, Engine, Feed, Host, Parts, SandboxConfig, SystemClock, workspace,
};
use outrigger_model::{Api, Client, Endpoint, HttpClient, Model, RetryPolicy};
use outrigger_policy::RuleSet;
use outrigger_sandbox::Backend;
use outrigger_sandbox_native::{Config, Launch, Native};
use outrigger_store::{Blobs, Database, DatabaseAddress, Settings};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorContext, Outcome};
use crate::home;
use crate::provider;
use crate::spawner::Spawner;

/// The hidden mode in which this program is the spawner of native sandboxes.
pub(crate) const SPAWNER_MODE: &str = "native-spawner";

/// The name of a session's sandbox.
const SANDBOX: &str = "work";
/// As long as the product's own.
const SYSTEM: &str = "You are an agent that works in a sandbox. Its directory /workspace holds a \
copy of a repository. Use the tools to look at it, to change it and to run what is in it. Work in \
small steps, look at what each of them gave, and check what you did before you say that it is done.";

/// A harness, ready to drive sessions.
#[derive(Debug)]
pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) host: EmbeddedHost,
    store: Arc<Database>,
    native: Arc<Native>,
    spec: Spec,
    sandboxes: PathBuf,
}

impl Harness {
    /// Puts one together, whose model ends after so many turns; `wrapped` may look
    /// on while it is asked.
    pub(crate) async fn open(
        home: &Path,
        port: u16,
        turns: u64,
        wrapped: impl FnOnce(Client) -> Arc<dyn Model>,
    ) -> Outcome<Self> {
        let sandboxes = home::sandboxes(home);
        let store =
            Database::open(&home::store(home), &DatabaseAddress::Sqlite, Settings::default()).await;
        let store = Arc::new(store.doing("opening the store")?);
        let blobs: Arc<dyn Blobs> = Arc::new(store.blobs().clone());
        let program = std::env::current_exe().doing("finding this program")?;
        let native = Native::open(Config {
            state_dir: sandboxes.clone(),
            scratch: home.to_owned(),
            launcher: Arc::new(Launch { program, args: vec![OsString::from(SPAWNER_MODE)] }),
            guest: outrigger_guest::PROGRAM,
            read_only: Vec::new(),
            trees: None,
        });
        let native = Arc::new(native.await.doing("opening the native sandboxes")?);
        let spec = spec(&*blobs).await?;
        let config = SandboxConfig::new(native.clone(), outrigger_sandbox::CreateSpec::default());
        let engine = Engine::new(Parts {
            journal: store.clone(),
            blobs,
            model: wrapped(client(port, turns)?),
            sandboxes: [(SANDBOX.to_owned(), config)].into(),
            egress: None,
            outside: BTreeMap::new(),
            memory: None,
            rules: Arc::new(RuleSet::local_default()),
            clock: Arc::new(SystemClock),
            feed: Feed::default(),
        });
        let host = EmbeddedHost::new(engine.clone());
        Ok(Self { engine, host, store, native, spec, sandboxes })
    }

    /// Opens a session with a task and begins to drive it.
    pub(crate) async fn begin(&self, number: u64) -> Outcome<SessionId> {
        let session = SessionId::new(format!("bench-{number}")).expect("digits are plain");
        let text = "Do all steps, one after the other.".to_owned();
        let task = Message::new(Author::Person("person:bench".to_owned()), text);
        let opened = self.engine.open(&session, self.spec.clone(), vec![task]).await;
        opened.doing("opening a session")?;
        self.host.poke(&session).doing("driving a session")?;
        Ok(session)
    }

    /// Whether a session that waits has done what it was opened for.
    pub(crate) async fn answered(&self, session: &SessionId) -> Outcome<()> {
        let state = self.engine.state(session).await.doing("reading a session")?;
        match state.ended() {
            Some(TurnEnd::Answered) => Ok(()),
            other => Err(Error::Astray(format!("session {session} did not answer: {other:?}"))),
        }
    }

    /// The spawner of its sandboxes.
    pub(crate) fn spawner(&self) -> Outcome<Spawner> {
        Spawner::of(&self.sandboxes)
    }

    /// Destroys the sandboxes, closes the journal, and sees the spawner to its end.
    pub(crate) async fn close(self) -> Outcome<()> {
        let ids = self.native.list().await.doing("listing the sandboxes")?;
        for listed in ids {
            self.native.destroy(&listed.id).await.doing("destroying a sandbox")?;
        }
        self.store.close().await;
        let spawner = self.spawner()?;
        tokio::task::spawn_blocking(|| spawner.end()).await.doing("ending the spawner")?
    }
}

fn client(port: u16, turns: u64) -> Outcome<Client> {
    let connect = Duration::from_millis(outrigger_model::limits::CONNECT_MS);
    let http = outrigger_model::http(connect).doing("making the HTTP client")?;
    let endpoint = Endpoint {
        api: Api::AnthropicMessages,
        base_url: provider::base_url(port, turns),
        key: None,
        http_hosts: Vec::new(),
        headers: Vec::new(),
        model: "fake".to_owned(),
        context_tokens: 200_000,
        output_tokens_max: 16_000,
        prompt_cache_key: false,
        body: Vec::new(),
    };
    Client::new(HttpClient::direct(http), endpoint, RetryPolicy::new(1))
        .doing("making the model's client")
}

/// What the product opens a session with.
async fn spec(blobs: &dyn Blobs) -> Outcome<Spec> {
    let mut builder = workspace::Builder::default();
    builder.file("README.md", b"A repository to work in.\n", false);
    let archive = builder.finish();
    let bytes = archive.len() as u64;
    let archive = blobs.put(archive).await.doing("storing the workspace")?;
    Ok(Spec {
        principal: "person:bench".to_owned(),
        model: ModelSpec {
            name: "fake".to_owned(),
            provider: "anthropic".to_owned(),
            address: None,
            context_tokens: 200_000,
            output_tokens_max: 16_000,
            scripted: false,
            price: None,
        },
        system: SYSTEM.to_owned(),
        tools: outrigger_tools::specs(SANDBOX),
        budget: Limit::NONE,
        soft: Limit::NONE,
        turn: TurnLimits { steps_max: u64::MAX, wall_ms_max: 3_600_000 },
        approvals: Approvals::default(),
        when_busy: WhenBusy::default(),
        workspace: Some(Workspace {
            archive,
            bytes,
            files: 1,
            source: "bench".to_owned(),
            dependencies: Vec::new(),
            prefix: String::new(),
        }),
        sandboxes: Vec::new(),
        role: Role::default(),
    })
}
