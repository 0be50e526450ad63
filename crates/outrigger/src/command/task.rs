//! Opens a session for a task and drives it to its end.

use outrigger_agent::{
    AccountId, Amounts, Limit, Message, Role, SandboxSpec, Seq, SessionId, Spec, ToolSpec,
    TurnLimits, Workspace,
};
use outrigger_engine::{Engine, ensure_shown};
use outrigger_repository::WorkTree;
use outrigger_store::{Lease, LeasePurpose};

use super::detach::{self, Driver};
use super::drive::{Driving, Interrupts, drive};
use super::finish::{Back, Finish};
use crate::agents::{self, Agent, AgentStart};
use crate::compose::{self, HOST_TOOLS, Store};
use crate::config::{Config, ModelChoice, Sandbox};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Apply, Output};
use crate::models::{self, OpenedModel};
use crate::paths::Paths;
use crate::project_content::ProjectContent;
use crate::project_servers::ServerContent;
use crate::show::{Screen, Tone};
use crate::skills::{self, SkillsPrompt};
use crate::workspace::{self, PackedDirectory, SentDirectory};
use crate::{abandoned, image, network, outside, project, project_servers, session};

/// A task, ready to be done.
#[derive(Debug)]
pub(crate) struct Task {
    /// On whose behalf, for example `person:ada`.
    pub(crate) who: String,
    /// What is copied, and where in it the person works.
    pub(crate) tree: WorkTree,
    /// What is the copy, where that was made on another machine.
    pub(crate) sent: Option<SentDirectory>,
    pub(crate) messages: Vec<Message>,
    pub(crate) apply: Apply,
    pub(crate) model: ModelChoice,
    /// What the session is called, if a person said so.
    pub(crate) name: Option<SessionId>,
    /// Of the session of that name, where it was taken already.
    pub(crate) lease: Option<Lease>,
    pub(crate) driver: Driver,
    /// Which agent it is; nothing for the usual one.
    pub(crate) agent: Option<AgentStart>,
}

/// A session that was opened, with what drives it.
#[derive(Debug)]
pub(crate) struct OpenedTask {
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) session: SessionId,
    /// Held while it is driven.
    pub(crate) lease: Option<Lease>,
}

/// Opens a session for a task and drives it to its end.
pub(crate) async fn start(
    paths: &Paths,
    config: &Config,
    task: Task,
    output: Output,
) -> Outcome<u8> {
    let (mut screen, driver) = (Screen::new(output), task.driver);
    let opened = open(paths, config, None, task, &mut screen).await?;
    let OpenedTask { store, engine, session, lease } = opened;
    let back = Back::settle(paths, &session, Apply::default())?;
    if driver == Driver::Detached {
        drop(lease);
        return detach::leave(paths, &store, &session, output).await;
    }
    let mut interrupts = Interrupts::listen()?;
    let driving = Driving { paths, engine: &engine, journal: &*store.journal, session: &session };
    drive(driving, Seq::default(), &mut screen, &mut interrupts).await?;
    let finish = Finish {
        paths,
        store: &store,
        engine: &engine,
        session: &session,
        back,
        retention_ms: config.retention_ms(),
        notify: &config.notify,
    };
    let state = engine.state(&session).await?;
    interrupts.or_left(&session, finish.execute(&state, &mut screen)).await
}

/// Opens a session for a task. `store`: the one that is open already; otherwise one is opened
/// once nothing that was said is wrong.
pub(crate) async fn open(
    paths: &Paths,
    config: &Config,
    store: Option<Store>,
    task: Task,
    screen: &mut Screen,
) -> Outcome<OpenedTask> {
    let mut opened = models::open(paths, &task.model).await?;
    for message in &task.messages {
        ensure_shown(&opened.spec.name, std::iter::empty(), &message.pictures)?;
    }
    config.read_only_is_there()?;
    let config = &Box::pin(image::settled(paths, config, &task.tree, screen)).await?;
    let config = &project_servers::added(paths, config, &task.tree.top, screen)?;
    let networks = config.sandboxes.iter().map(|it| it.reaches(&task.tree.top));
    let networks = networks.collect::<Outcome<Vec<_>>>()?;
    let store = match store {
        Some(store) => store,
        None => {
            let store = compose::store(paths).await?;
            give_back(paths, config, &store).await?;
            store
        }
    };
    for words in &networks {
        network::secrets_are_there(&*store.database, words).await?;
    }
    compose::templates_are_there(paths, config).await?;
    let session = match task.name {
        Some(name) => unused(&store, name).await?,
        None => session::new_id(),
    };
    price(config, &store, &mut opened, &task.who).await?;
    task.model.reason().into_iter().for_each(|text| screen.note(Tone::Detail, text));
    let packing = workspace::pack(paths, config, &store, (task.tree, task.sent));
    let packed = screen.during("copying the directory", packing).await?;
    let PackedDirectory { tree, mut workspace, dependencies, notes } = packed;
    notes.into_iter().for_each(|(tone, text)| screen.note(tone, text));
    let lease = leased(&store, &session, task.lease).await?;
    let store = store.under(&lease);
    let backends = compose::backends(paths, config, Some(&store.served)).await?;
    let content = ProjectContent { store: &store, tree: &tree, workspace: &workspace };
    let needs = (content, dependencies);
    let project = project::prepare(paths, config, &backends, needs, screen).await?;
    workspace.dependencies.extend(project.dependencies);
    let servers = outside::servers(paths, config).await?;
    let engine = compose::engine(paths, config, &store, &opened, &backends, servers.clone())?;
    let (blobs, template) = (&*store.blobs, project.template.as_deref());
    let content = ServerContent { blobs, workspace: &workspace, template };
    let asking = outside::survey(paths, config, &servers, &backends, Some(content));
    let surveys = screen.during("asking servers for their tools", asking).await?;
    let (outside, notes) = outside::offered(&surveys);
    notes.into_iter().for_each(|(tone, text)| screen.note(tone, text));
    let mut spec = spec(config, &opened, workspace, (outside, networks), &task.who)?;
    for (index, sandbox) in spec.sandboxes.iter_mut().enumerate() {
        if index == 0 || project_servers::is_theirs(config, &sandbox.name) {
            // Whoever resumes it makes the same one, whatever is configured then.
            let chosen = config.sandboxes.first().and_then(Sandbox::template);
            let chosen = chosen.filter(|name| *name != HOST_TOOLS).map(str::to_owned);
            sandbox.template = project.template.clone().or(chosen);
        }
    }
    let who = (task.who.as_str(), task.agent.as_ref().map(|start| &start.agent));
    let SkillsPrompt { text, mut labels, .. } = told_of_skills(paths, config, &store, who).await?;
    spec.system.push_str(&text);
    if let Some(agent) = task.agent {
        labels.extend(agent.shape(&mut spec)?);
    }
    Back::settle(paths, &session, task.apply)?;
    engine.open_labelled(&session, spec, labels, task.messages).await?;
    screen.note(Tone::Detail, format!("session {session}"));
    if backends.values().any(|backend| !backend.capabilities().resource_limits) {
        let text = "! memory and CPU of the sandbox are not limited on this machine: see `outrigger doctor`";
        screen.note(Tone::Warning, text);
    }
    Ok(OpenedTask { store, engine, session, lease: Some(lease) })
}

/// The lease of a session, unless it was taken already.
async fn leased(store: &Store, session: &SessionId, taken: Option<Lease>) -> Outcome<Lease> {
    match taken {
        Some(lease) => Ok(lease),
        None => {
            let lease = store.database.lease(session, LeasePurpose::Drive).await?;
            lease.ok_or_else(|| session::held(session))
        }
    }
}

/// An engine for a session that was opened before, with the model that it has.
pub(crate) async fn reopen(
    paths: &Paths,
    config: &Config,
    store: &Store,
    spec: &Spec,
    screen: &Screen,
) -> Outcome<Engine> {
    let opened = models::reopen(paths, &spec.model, &config.model).await?;
    let config = &project_servers::of_session(paths, config, spec, screen)?;
    let backends = compose::backends(paths, config, Some(&store.served)).await?;
    let servers = outside::servers(paths, config).await?;
    compose::engine(paths, config, store, &opened, &backends, servers)
}

/// A name that no session has, or had.
async fn unused(store: &Store, name: SessionId) -> Outcome<SessionId> {
    if store.journal.head(&name).await? == Seq::default() {
        return Ok(name);
    }
    Err(Failure::new(Kind::Conflict, format!("there is a session `{name}` already"))
        .hint(format!("`outrigger sessions say {name} \"...\"` goes on with it."))
        .hint(format!("`outrigger rm {name}` removes it; or give another --name.")))
}

/// What those that died keep reserved in the accounts would stand in the way of this one.
pub(super) async fn give_back(paths: &Paths, config: &Config, store: &Store) -> Outcome {
    let accounts = store.accounts.accounts().await?;
    if accounts.iter().any(|account| account.reserved != Amounts::default()) {
        let clerk = compose::clerk(paths, config, store)?;
        abandoned::release(store, &clerk).await?;
    }
    Ok(())
}

/// What the session is told of skills.
async fn told_of_skills(
    paths: &Paths,
    config: &Config,
    store: &Store,
    (who, agent): (&str, Option<&Agent>),
) -> Outcome<SkillsPrompt> {
    let named = agent.and_then(|agent| agent.definition.skills.as_ref());
    let told = match compose::scope(paths, config, who)? {
        None => SkillsPrompt::default(),
        Some(scope) => {
            let told = skills::prompt(&*store.entries, &scope, &config.skills, named).await;
            told.map_err(|error| skills::failed(&error))?
        }
    };
    agent.map_or(Ok(()), |agent| agents::known_skills(agent, &told.names))?;
    Ok(told)
}

fn spec(
    config: &Config,
    opened: &OpenedModel,
    workspace: Workspace,
    (outside, networks): (Vec<ToolSpec>, Vec<Vec<String>>),
    who: &str,
) -> Outcome<Spec> {
    let mut tools = tools(config, &workspace.prefix, outside);
    let role = role(config, &tools)?;
    if role.deep > 0 {
        tools.push(outrigger_tools::subagent::spec(&role.agents));
    }
    let sandboxes = config.sandboxes.iter().enumerate();
    let records = sandboxes.zip(&networks).map(|((index, sandbox), network)| SandboxSpec {
        network: network.clone(),
        ..sandbox.record(index == 0)
    });
    let records: Vec<_> = records.collect();
    Ok(Spec {
        principal: who.to_owned(),
        model: opened.spec.clone(),
        system: system(&workspace.prefix, networks.first().map_or(&[], Vec::as_slice)),
        tools,
        budget: Limit { tokens: Some(config.tokens_max), ..config.budget.limit },
        soft: config.budget.soft,
        turn: TurnLimits { steps_max: config.steps_max, wall_ms_max: config.turn_ms_max },
        approvals: config.approvals,
        when_busy: config.when_busy,
        workspace: Some(workspace),
        sandboxes: records,
        role,
    })
}

/// Whom the session may start.
fn role(config: &Config, tools: &[ToolSpec]) -> Outcome<Role> {
    let deep = u32::try_from(config.subagents_deep).unwrap_or(u32::MAX);
    let agents = if deep > 0 { config.agents.specs() } else { Vec::new() };
    for agent in &agents {
        let named = agent.tools.iter().flatten().cloned().collect();
        agents::known_tools(&agent.name, &named, tools)?;
    }
    Ok(Role { agents, deep, ..Role::default() })
}

/// Finds out what the model costs. Where money is limited, not to know is an error.
pub(super) async fn price(
    config: &Config,
    store: &Store,
    opened: &mut OpenedModel,
    who: &str,
) -> Outcome {
    let spec = &mut opened.spec;
    if spec.price.is_none() && !spec.scripted {
        let elsewhere = spec.address.is_some();
        spec.price = config.budget.price(&spec.provider, &spec.name, elsewhere)?;
    }
    let usual = config.usual();
    let of_session = [config.budget.limit, config.budget.soft];
    let ours = [AccountId::organisation(), AccountId::user(who)];
    let accounts = store.accounts.accounts().await?;
    let set = |id: &AccountId| accounts.iter().find(|account| account.account == *id);
    let terms = ours
        .iter()
        .map(|id| set(id).map_or(usual.of(id).clone(), |account| account.terms.or(usual.of(id))));
    let mut limits = of_session.into_iter().chain(terms.flat_map(|it| [it.limit, it.soft]));
    if spec.price.is_some() || limits.all(|limit| limit.money_nanos.is_none()) {
        return Ok(());
    }
    let (provider, name) = (&spec.provider, &spec.name);
    let text = format!("money is limited, and nobody said what the model `{name}` costs");
    let failure = Failure::new(Kind::Usage, text);
    Err(if spec.scripted {
        failure.hint("Add `price = { input = 1.0, output = 1.0 }` to the script.")
    } else {
        failure
            .hint(format!("Write a file with `[[price]]`, `provider = \"{provider}\"`, `model = \"{name}\"`, `input` and `output` in dollars for a million tokens, and `as_of` with the day, and name it with budget.prices in the configuration."))
            .hint("docs/how-to/budgets.md shows one.")
    })
}

/// What the model is told before all else. `network`: what the first sandbox may reach.
fn system(prefix: &str, network: &[String]) -> String {
    let mut text = include_str!("../prompt.md").to_owned();
    text.push_str(&network::told(network));
    if !prefix.is_empty() {
        text.push_str(&format!("- The person works in /workspace/{prefix}, a part of the repository: commands start there and relative paths begin there. Keep to it unless the task needs more.\n"));
    }
    text
}

/// The first sandbox has the tools by their plain names, which begin where the person works. What
/// runs in a sandbox may take its processors as long as it lasts.
pub(crate) fn tools(config: &Config, prefix: &str, outside: Vec<ToolSpec>) -> Vec<ToolSpec> {
    let mut names = config.working().map(|sandbox| sandbox.name.as_str());
    let mut tools = names.next().map(outrigger_tools::specs).unwrap_or_default();
    if !prefix.is_empty() {
        outrigger_tools::begin_in(&mut tools, &format!("/workspace/{prefix}"));
    }
    tools.extend(names.flat_map(outrigger_tools::specs_of_further));
    outrigger_tools::serve(&mut tools);
    tools.extend(outside);
    for tool in &mut tools {
        let sandbox = config.sandboxes.iter().find(|it| Some(&it.name) == tool.sandbox.as_ref());
        if let (Some(deadline), Some(sandbox)) = (&mut tool.deadline, sandbox) {
            deadline.cpu_millis = sandbox.spec.cpu_millis_max;
        }
    }
    tools
}
