//! The agents that a person can start: those whose definitions are kept in versions beside memory
//! and skills, and those of the configuration.
//!
//! Owns where a definition is kept, how one is found by its name, and what of it holds for a
//! session. Who wrote a definition has a say in what its sessions do: it labels them as memory
//! does.

use outrigger_agent::{DefinitionRevision, Spec, ToolSpec};
use outrigger_engine::path_of;
use outrigger_policy::{MemoryKind, MemoryScope, Principal, Scope, Trigger};
use outrigger_store::entries::{Contents, Entries, EntryAddress, EntryPath, Error, list_all};
use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{self, AgentFile, AgentName, Config};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// What the name of a definition's file ends in.
pub(crate) const SUFFIX: &str = ".toml";

/// A definition as it is kept, whether it can be used or not.
#[derive(Debug)]
pub(crate) struct StoredAgent {
    pub(crate) name: String,
    pub(crate) place: EntryAddress,
    pub(crate) contents: Contents,
}

/// An agent that can be started.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) definition: AgentFile,
    /// Nothing for one of the configuration.
    pub(crate) revision: Option<DefinitionRevision>,
    /// What its text brings into a session.
    labels: BTreeSet<String>,
}

/// An agent of which a session is opened, and by what.
#[derive(Debug)]
pub(crate) struct AgentStart {
    pub(crate) agent: Agent,
    /// Nothing where a person starts it.
    pub(crate) trigger: Option<Trigger>,
}

impl StoredAgent {
    /// What it says, if it can be read.
    pub(crate) fn definition(&self) -> Result<AgentFile, String> {
        let text = std::str::from_utf8(&self.contents.bytes).map_err(|_| "it is no text")?;
        definition(&path_of(&self.place), text).map_err(|failure| failure.message)
    }

    /// As somebody starts it.
    pub(crate) fn agent(&self, person: &Principal) -> Outcome<Agent> {
        let path = path_of(&self.place);
        let version = &self.contents.version;
        let definition = self.definition().map_err(|why| {
            Failure::new(Kind::Usage, format!("the agent {} can't be started: {why}", self.name))
        })?;
        let labels = match version.accepted_by {
            Some(_) => version.by.labels.clone(),
            None => version.labels_for(person),
        };
        let revision = Some(DefinitionRevision { path, revision: version.revision });
        Ok(Agent { name: self.name.clone(), definition, revision, labels })
    }
}

impl Agent {
    /// One of the configuration.
    pub(crate) fn of_configuration(name: &str, definition: &AgentFile) -> Self {
        let (name, definition) = (name.to_owned(), definition.clone());
        Self { name, definition, revision: None, labels: BTreeSet::new() }
    }

    /// What it works in, what its commands may reach, and what it may spend, where nobody says
    /// anything else.
    pub(crate) fn settle(&self, config: &mut Config) {
        let Self { definition, .. } = self;
        if let Some(network) = &definition.network {
            config.sandboxes.iter_mut().take(1).for_each(|first| first.network = network.clone());
        }
        if let Some(image) = &definition.image {
            config.stand_on(image);
        }
        config.narrow(definition.limit());
    }

    /// What it is to do: what was said, else its own task.
    pub(crate) fn task(&self, said: String) -> Outcome<String> {
        let own =
            Some(said).filter(|said| !said.trim().is_empty()).or(self.definition.task.clone());
        own.ok_or_else(|| {
            let text = format!("the agent {} has no task of its own", self.name);
            Failure::new(Kind::Usage, text).hint("Say what it is to do.")
        })
    }
}

impl AgentStart {
    /// What it changes in what a session is opened with; gives what labels the session.
    pub(crate) fn shape(self, spec: &mut Spec) -> Outcome<BTreeSet<String>> {
        let Agent { name, definition, revision, labels } = self.agent;
        if let Some(tools) = &definition.tools {
            known_tools(&name, tools, &spec.tools)?;
            spec.tools.retain(|tool| tools.contains(&tool.name));
        }
        if let Some(instructions) = &definition.instructions {
            spec.system.push_str(&format!("\n{}\n", instructions.trim_end()));
        }
        let role = &mut spec.role;
        (role.agent, role.definition, role.trigger) = (Some(name), revision, self.trigger);
        Ok(labels)
    }
}

/// An agent that names a skill that is not offered is an error, as with tools.
pub(crate) fn known_skills(agent: &Agent, offered: &BTreeSet<String>) -> Outcome {
    let named = agent.definition.skills.iter().flatten();
    let Some(unknown) = named.into_iter().find(|name| !offered.contains(*name)) else {
        return Ok(());
    };
    let text = format!("the agent {} names the skill `{unknown}`, and none is offered", agent.name);
    Err(Failure::new(Kind::Usage, text)
        .hint("`outrigger skills ls` lists those that there are, and how each stands."))
}

/// An agent that names a tool of ours that is not there is an error: it would have fewer than was
/// meant. What servers outside have is known when they are asked.
pub(crate) fn known_tools(agent: &str, named: &BTreeSet<String>, tools: &[ToolSpec]) -> Outcome {
    let unknown = named.iter().find(|name| {
        !tools.iter().any(|tool| tool.name == **name)
            && !name.starts_with("mcp__")
            && **name != outrigger_tools::subagent::NAME
    });
    let Some(unknown) = unknown else { return Ok(()) };
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let text = format!("the agent {agent} names the tool `{unknown}`, and there is none");
    Err(Failure::new(Kind::Usage, text).hint(format!("The tools are {}.", names.join(", "))))
}

/// Reads a definition. Its errors name the line and the keys that there are.
pub(crate) fn definition(path: &str, text: &str) -> Outcome<AgentFile> {
    let hint = "docs/how-to/agents.md shows what a definition says.";
    let definition: AgentFile = config::parse(text, Path::new(path), hint)?;
    let by_itself = definition.schedule.is_some() || definition.webhook.is_some();
    if definition.task.is_none() && by_itself {
        let text = format!("{path}: it begins by itself, and has no `task` to do then");
        return Err(Failure::new(Kind::Usage, text).hint(hint));
    }
    Ok(definition)
}

/// Where the definition of an agent is kept.
pub(crate) fn place(memory_scope: MemoryScope, name: &str) -> Outcome<EntryAddress> {
    let usage = |why: String| Failure::new(Kind::Usage, why);
    let name = AgentName::parse(name.to_owned()).map_err(usage)?.into_inner();
    let path = EntryPath::parse(&format!("{name}{SUFFIX}"));
    let path = path.map_err(|why| usage(format!("{name}: {why}")))?;
    Ok(EntryAddress { memory_scope, path })
}

/// Every definition in a memory scope.
pub(crate) async fn stored(
    entries: &dyn Entries,
    scope: &Scope,
    memory_scope: &MemoryScope,
) -> Result<Vec<StoredAgent>, Error> {
    let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
    let mut found = Vec::new();
    for (path, node) in list_all(entries, scope, &root, false).await? {
        let name = path.as_str().strip_suffix(SUFFIX).map(str::to_owned);
        let name = name.and_then(|name| AgentName::parse(name).ok());
        let (Some(name), false) = (name, node.folder || node.redacted) else { continue };
        if found.len() >= limits::AGENTS_MAX {
            break;
        }
        let place = EntryAddress { path, ..root.clone() };
        match entries.read(scope, &place, None).await {
            // It was there a moment ago.
            Err(Error::Absent | Error::Redacted(_) | Error::Folder) => {}
            read => found.push(StoredAgent { name: name.into_inner(), place, contents: read? }),
        }
    }
    Ok(found)
}

/// An agent by its name: a person's own, else one of their groups, of the organisation, of the
/// configuration.
pub(crate) async fn named(
    entries: &dyn Entries,
    scope: &Scope,
    config: &Config,
    name: &str,
) -> Outcome<Agent> {
    for memory_scope in scope.memory_scopes(MemoryKind::Agents) {
        let place = place(memory_scope, name)?;
        match entries.read(scope, &place, None).await {
            Err(Error::Absent | Error::Redacted(_) | Error::Folder) => {}
            read => {
                let contents = read.map_err(|error| failed(&error))?;
                let stored = StoredAgent { name: name.to_owned(), place, contents };
                return stored.agent(&scope.person());
            }
        }
    }
    let definition = config.agents.all().get(name).ok_or_else(|| {
        let text = format!("there is no agent `{name}`");
        Failure::new(Kind::NotFound, text).hint("`outrigger agents ls` lists those that there are.")
    })?;
    Ok(Agent::of_configuration(name, definition))
}

pub(crate) fn failed(error: &Error) -> Failure {
    Failure::new(Kind::Storage, format!("agents: {error}"))
}
