//! Puts the parts together: the only place that names implementations of the store and of
//! backends. Keys are the gate's: `hand_over` brings them there.

use outrigger_engine::{
    Engine, Feed, MemoryService, OutsideServer, Parts, SandboxConfig, ServedTrees, SystemClock,
};
use outrigger_policy::Scope;
use outrigger_sandbox::{Backend, Capabilities, CreateSpec, Networks};
use outrigger_sandbox_docker::Docker;
use outrigger_sandbox_native::{Launch, Native, SpawnerLauncher, is_of_project};
use outrigger_store::entries::{Entries, Reviews};
use outrigger_store::{
    Accounts, Blobs, Database, DatabaseAddress, Journal, Lease, Settings, installation,
};
use outrigger_tools::namespace::MOUNTS;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::config::{BackendName, Config, Sandbox};
use crate::exit::{Failure, Kind, Outcome};
use crate::models::OpenedModel;
use crate::network::{self, GateEgress};
use crate::paths::Paths;
use crate::rules::ConfiguredRules;
use crate::sandbox::no_sandbox;
use crate::{models, rules};

/// The hidden mode in which this program is the spawner of native sandboxes.
pub(crate) const SPAWNER_MODE: &str = "native-spawner";

/// The template that a sandbox has where none is named.
pub(crate) const HOST_TOOLS: &str = "host-tools";

/// The store of an installation.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) entries: Arc<dyn Entries>,
    pub(crate) reviews: Arc<dyn Reviews>,
    /// All of it as what it is, for its upkeep.
    pub(crate) database: Arc<Database>,
    /// What of it is served into sandboxes.
    pub(crate) served: ServedTrees,
    /// The rules, once an engine over it was judged by them.
    rules: Arc<OnceLock<Arc<ConfiguredRules>>>,
}

impl Store {
    /// This store for whoever drives a session under a lease: its engine appends nothing to it
    /// once another process drives it.
    pub(crate) fn under(mut self, lease: &Lease) -> Self {
        self.journal = self.database.journal_under(lease);
        self
    }

    /// The rules of every engine over it: to understand them takes longer than to open a session.
    /// Wrong ones are an error, also where they were right before.
    pub(crate) fn rules(&self, paths: &Paths) -> Outcome<Arc<ConfiguredRules>> {
        if let Some(rules) = self.rules.get() {
            rules.access()?;
            return Ok(Arc::clone(rules));
        }
        let read = Arc::new(ConfiguredRules::read(paths)?);
        Ok(Arc::clone(self.rules.get_or_init(|| read)))
    }
}

/// Opens the store; makes it if there is none.
pub(crate) async fn store(paths: &Paths) -> Outcome<Store> {
    let opened = database(paths).await?;
    let blobs = Arc::new(opened.blobs().clone());
    let opened = Arc::new(opened);
    Ok(Store {
        journal: Arc::clone(&opened) as _,
        blobs,
        accounts: Arc::clone(&opened) as _,
        entries: Arc::clone(&opened) as _,
        reviews: Arc::clone(&opened) as _,
        database: opened,
        served: ServedTrees::default(),
        rules: Arc::default(),
    })
}

/// Opens the store as the database that it is.
pub(crate) async fn database(paths: &Paths) -> Outcome<Database> {
    paths.prepare()?;
    // Where the configuration is wrong, whatever writes memory says so before it does.
    let quotas = Config::of_files(paths.configs()).unwrap_or_default().quotas;
    let settings = Settings { quotas, ..Settings::default() };
    Database::open(paths.harness(), paths.database(), settings).await.map_err(|error| {
        let mut failure = Failure::from(error);
        let place = match paths.database() {
            DatabaseAddress::Sqlite => paths.data().display().to_string(),
            DatabaseAddress::Postgres(address) => address.to_string(),
        };
        failure.message = format!("{place}: {}", failure.message);
        failure
    })
}

/// Who a person is, and in which groups.
pub(crate) fn scope(paths: &Paths, config: &Config, who: &str) -> Outcome<Option<Scope>> {
    let people = rules::directory(paths, config)?;
    Ok(who.parse().ok().and_then(|who| people.authenticate(&who)))
}

/// The ways to servers of tools, by the names that the configuration has for them.
pub(crate) type Servers = BTreeMap<String, OutsideServer>;

/// How programs in sandboxes get out, by the names of backends.
pub(crate) type BackendNetworks = BTreeMap<&'static str, Arc<dyn Networks>>;

/// The backends that a configuration names.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    by_name: BTreeMap<BackendName, Arc<dyn Backend>>,
    /// The native one as what it is, for its templates.
    pub(crate) native: Option<Arc<Native>>,
    pub(crate) networks: BackendNetworks,
}

impl Backends {
    pub(crate) fn get(&self, name: BackendName) -> Option<&Arc<dyn Backend>> {
        self.by_name.get(&name)
    }

    pub(crate) fn take(mut self, name: BackendName) -> Option<Arc<dyn Backend>> {
        self.by_name.remove(&name)
    }

    /// Whether each isolates as the configuration demands of its sandboxes.
    pub(crate) fn isolate(&self, config: &Config) -> Outcome {
        config.sandboxes.iter().try_for_each(|sandbox| match self.get(sandbox.backend) {
            Some(backend) => isolates(sandbox, backend.capabilities()),
            None => Ok(()),
        })
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        self.by_name.values()
    }
}

/// Opens the backends in which sandboxes are made. `served`: what the sandboxes are served
/// of the store, where sessions are driven.
pub(crate) async fn backends(
    paths: &Paths,
    config: &Config,
    served: Option<&ServedTrees>,
) -> Outcome<Backends> {
    let mut backends = Backends::default();
    for sandbox in &config.sandboxes {
        if let Entry::Vacant(vacant) = backends.by_name.entry(sandbox.backend) {
            let opened: Arc<dyn Backend> = match sandbox.backend {
                BackendName::Native => {
                    let opened = native(paths, config, served).await?;
                    backends.native = Some(Arc::clone(&opened));
                    backends.networks.insert("native", Arc::clone(&opened) as _);
                    opened
                }
                BackendName::Docker => {
                    let opened = Arc::new(docker(paths, config).await?);
                    backends.networks.insert("docker", Arc::clone(&opened) as _);
                    opened
                }
            };
            vacant.insert(opened);
        }
    }
    Ok(backends)
}

/// Whether a backend isolates as the configuration demands of a sandbox.
pub(crate) fn isolates(sandbox: &Sandbox, offered: &Capabilities) -> Outcome {
    let least = sandbox.spec.isolation_min;
    if offered.isolation >= least {
        return Ok(());
    }
    let (name, backend, isolation) = (&sandbox.name, &offered.backend, offered.isolation);
    let text = format!(
        "the sandbox `{name}` accepts no isolation below `{least}`, and `{backend}` offers `{isolation}` on this machine"
    );
    Err(Failure::new(Kind::SandboxUnavailable, text).hint(format!(
        "Fix what `outrigger doctor` misses, or set its `isolation_min` to `{isolation}`."
    )))
}

/// The native backend. Its list of readable directories holds for all its sandboxes.
pub(crate) async fn native(
    paths: &Paths,
    config: &Config,
    served: Option<&ServedTrees>,
) -> Outcome<Arc<Native>> {
    let ours = config.sandboxes.iter().filter(|sandbox| sandbox.backend == BackendName::Native);
    let shown = ours.flat_map(|sandbox| &sandbox.read_only);
    let mut read_only: Vec<_> = shown.map(|directory| directory.path.clone()).collect();
    read_only.sort();
    read_only.dedup();
    let launcher: Arc<dyn SpawnerLauncher> = match paths.supervisor() {
        Some(supervisor) => Arc::new(supervisor.clone()),
        None => Arc::new(spawner()),
    };
    let scratch = paths.scratch();
    std::fs::create_dir_all(&scratch)
        .map_err(|error| Failure::from_error(Kind::Storage, &error))?;
    let opened = Native::open(outrigger_sandbox_native::Config {
        state_dir: paths.sandboxes(),
        scratch,
        launcher,
        guest: outrigger_guest::PROGRAM,
        read_only,
        trees: served.cloned().map(|served| Arc::new(served) as _),
    });
    opened.await.map(Arc::new).map_err(|error| no_sandbox(&error))
}

/// The Docker backend. A template is an image of the engine's, by its own name.
pub(crate) async fn docker(paths: &Paths, config: &Config) -> Outcome<Docker> {
    let ours = config.sandboxes.iter().filter(|sandbox| sandbox.backend == BackendName::Docker);
    paths.prepare()?;
    let images = ours.filter_map(Sandbox::template).filter(|name| *name != HOST_TOOLS);
    let host = std::env::var("DOCKER_HOST").ok();
    let socket = host.as_deref().and_then(|host| host.strip_prefix("unix://"));
    let opened = Docker::open(outrigger_sandbox_docker::Config {
        socket: config.docker.socket.clone().or_else(|| socket.map(PathBuf::from)),
        owner: installation(paths.harness())?,
        runtime: config.docker.runtime.clone(),
        guest: outrigger_guest::PROGRAM,
        images: images.map(|name| (name.to_owned(), name.to_owned())).collect(),
        default_image: config.docker.image.clone(),
    });
    opened.await.map_err(|error| no_sandbox(&error))
}

/// Whether sandboxes can begin with the templates that the configuration names: asked before
/// anybody pays for a model's first word.
pub(crate) async fn templates_are_there(paths: &Paths, config: &Config) -> Outcome {
    let of = |backend: BackendName| {
        let ours = config.sandboxes.iter().filter(move |sandbox| sandbox.backend == backend);
        ours.filter_map(Sandbox::template).collect::<Vec<_>>()
    };
    let mut named = of(BackendName::Native);
    named.retain(|name| *name != HOST_TOOLS);
    if !named.is_empty() {
        let known = native(paths, config, None).await?.templates().await;
        let known = known.map_err(|error| no_sandbox(&error))?;
        // What was made for a project is its own.
        let is_known =
            |name: &str| !is_of_project(name) && known.iter().any(|template| template.name == name);
        if let Some(name) = named.into_iter().find(|name| !is_known(name)) {
            let text = format!("`{name}`: there is no template of that name");
            return Err(Failure::new(Kind::Usage, text)
                .hint(format!("`outrigger sandbox templates ls` lists them. An image of a registry is named with its tag: `{name}:latest`.")));
        }
    }
    let named = of(BackendName::Docker);
    if !named.is_empty() {
        let docker = docker(paths, config).await?;
        for name in named {
            docker.has_template(name).await.map_err(|error| no_sandbox(&error))?;
        }
    }
    Ok(())
}

/// An engine with everything that it needs. Wrong rules are an error before anything is done, and
/// so are backends that isolate less than the configuration demands.
pub(crate) fn engine(
    paths: &Paths,
    config: &Config,
    store: &Store,
    opened: &OpenedModel,
    backends: &Backends,
    servers: Servers,
) -> Outcome<Engine> {
    backends.isolate(config)?;
    let site = |sandbox: &Sandbox| {
        let backend = Arc::clone(backends.get(sandbox.backend)?);
        let served = MOUNTS.map(str::to_owned).to_vec();
        let spec = CreateSpec { served, ..sandbox.spec.clone() };
        let site = SandboxConfig { backend, spec, retention: sandbox.retention() };
        Some((sandbox.name.clone(), site))
    };
    let memory = MemoryService {
        entries: Arc::clone(&store.entries),
        reviews: Arc::clone(&store.reviews),
        people: rules::directory(paths, config)?,
        served: store.served.clone(),
    };
    let engine = Engine::new(Parts {
        journal: Arc::clone(&store.journal),
        blobs: Arc::clone(&store.blobs),
        model: Arc::clone(&opened.model),
        sandboxes: config.sandboxes.iter().filter_map(site).collect(),
        outside: servers,
        egress: Some(Arc::new(egress(paths, store, backends.networks.clone())?)),
        memory: Some(memory),
        rules: store.rules(paths)?,
        clock: Arc::new(SystemClock),
        feed: Feed::default(),
    });
    Ok(engine.with_accounts(config.usual()))
}

/// The way out of the sandboxes of these backends.
pub(crate) fn egress(
    paths: &Paths,
    store: &Store,
    networks: BackendNetworks,
) -> Outcome<GateEgress> {
    let mirrors = network::mirrors();
    let secrets = Arc::clone(&store.database) as _;
    Ok(GateEgress::new(network::caller::gate(paths)?, networks, mirrors, secrets))
}

/// How the spawner of native sandboxes is started.
pub(crate) fn spawner() -> Launch {
    // Also where the file was replaced since, as an upgrade does.
    Launch { program: PathBuf::from("/proc/self/exe"), args: vec![OsString::from(SPAWNER_MODE)] }
}

/// An engine that asks no model and calls no server, and reaches the sandboxes.
pub(crate) async fn caretaker(paths: &Paths, config: &Config, store: &Store) -> Outcome<Engine> {
    let backends = backends(paths, config, Some(&store.served)).await?;
    engine(paths, config, store, &models::unasked()?, &backends, Servers::new())
}

/// An engine that only reads and writes journals: no model, no sandbox, no server.
pub(crate) fn clerk(paths: &Paths, config: &Config, store: &Store) -> Outcome<Engine> {
    engine(paths, config, store, &models::unasked()?, &Backends::default(), Servers::new())
}
