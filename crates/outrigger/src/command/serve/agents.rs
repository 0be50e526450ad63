//! The agents of a server: what there is for whom, and what a definition may say.

use async_trait::async_trait;
use futures_util::FutureExt;
use outrigger_agent::SessionId;
use outrigger_api::{AgentDefinition, AgentInfo, AgentSchedule, AgentSource, AgentWebhook};
use outrigger_engine::path_of;
use outrigger_policy::{MemoryKind, Owner};
use outrigger_server::{AgentCatalog, RequestError, WebhookMessage};
use outrigger_store::entries::EntryAddress;
use std::sync::Arc;

use super::context::ServeContext;
use super::failure::{of_server, told};
use super::jobs::Jobs;
use super::triggers::{TriggerOwner, Triggers};
use crate::agents::{self, StoredAgent};
use crate::command::task;
use crate::config::{AgentFile, AgentName, Config};
use crate::exit::{Failure, Kind, Outcome};
use crate::network::{self, KeptSecret};
use crate::session;

/// The agents of this installation.
#[derive(Debug)]
pub(super) struct ServedAgents {
    context: Arc<ServeContext>,
    triggers: Triggers,
    jobs: Jobs,
}

impl ServedAgents {
    pub(super) fn new(context: Arc<ServeContext>, triggers: Triggers, jobs: Jobs) -> Self {
        Self { context, triggers, jobs }
    }

    async fn all(&self, person: &str) -> Outcome<Vec<AgentInfo>> {
        let ServeContext { config, store, rules, .. } = &*self.context;
        let directory = rules.directory()?;
        let scope = person.parse().ok().and_then(|who| directory.authenticate(&who));
        let secrets = network::kept(&*store.database).await?;
        let mut all = Vec::new();
        for scope in scope.iter() {
            for memory_scope in scope.memory_scopes(MemoryKind::Agents) {
                let found = agents::stored(&*store.entries, scope, &memory_scope).await;
                let found = found.map_err(|error| agents::failed(&error))?;
                all.extend(found.iter().map(|stored| of_stored(stored, config, &secrets)));
            }
        }
        let configured = config.agents.all().iter();
        all.extend(configured.map(|(name, file)| of_configuration(name, file, config, &secrets)));
        Ok(all)
    }
}

#[async_trait]
impl AgentCatalog for ServedAgents {
    async fn list(&self, person: &str) -> Result<Vec<AgentInfo>, RequestError> {
        self.all(person).await.map_err(of_server)
    }

    fn text(&self, definition: &AgentDefinition) -> Result<String, RequestError> {
        let text = toml::to_string_pretty(definition);
        text.map_err(|error| told(Failure::from_error(Kind::Usage, &error)))
    }

    fn check(&self, at: &EntryAddress, text: &str) -> Result<(), RequestError> {
        let name = at.path.as_str().strip_suffix(agents::SUFFIX).unwrap_or_default().to_owned();
        let named = AgentName::parse(name).map_err(|why| {
            Failure::new(Kind::Usage, format!("{}: {why}", path_of(at)))
                .hint("The definition of an agent is a file NAME.toml at the top of its folder.")
        });
        named.and_then(|_| agents::definition(&path_of(at), text)).map(drop).map_err(told)
    }

    async fn deliver(&self, message: WebhookMessage) -> Result<SessionId, RequestError> {
        let triggers = self.triggers.clone();
        let job = move || async move { triggers.deliver(message).await }.boxed_local();
        let delivered = self.jobs.run(job).await;
        delivered.unwrap_or_else(|| Err(told(Failure::new(Kind::Storage, "the server ends"))))
    }
}

fn of_stored(stored: &StoredAgent, config: &Config, secrets: &[KeptSecret]) -> AgentInfo {
    let read = stored.definition();
    let definition = read.as_ref().ok();
    let version = &stored.contents.version;
    let source = match &version.place.memory_scope.owner {
        Owner::Person(_) => AgentSource::User,
        Owner::Group(_) => AgentSource::Group,
        Owner::Organisation(_) => AgentSource::Organisation,
    };
    let owner = TriggerOwner::Scope(version.place.memory_scope.owner.clone());
    AgentInfo {
        path: Some(path_of(&stored.place)),
        revision: Some(version.revision),
        author: Some(version.author.to_string()),
        problem: match &read {
            Ok(file) => problem(&stored.name, file, config, secrets),
            Err(why) => Some(why.clone()),
        },
        ..info(&stored.name, source, &owner, definition)
    }
}

fn of_configuration(
    name: &str,
    file: &AgentFile,
    config: &Config,
    secrets: &[KeptSecret],
) -> AgentInfo {
    let problem = problem(name, file, config, secrets);
    let owner = TriggerOwner::Configuration;
    AgentInfo { problem, ..info(name, AgentSource::Configuration, &owner, Some(file)) }
}

fn info(
    name: &str,
    source: AgentSource,
    owner: &TriggerOwner,
    definition: Option<&AgentFile>,
) -> AgentInfo {
    let schedule = definition.and_then(|it| it.schedule.as_ref());
    let webhook = definition.and_then(|it| it.webhook.as_ref());
    AgentInfo {
        name: name.to_owned(),
        source,
        path: None,
        revision: None,
        author: None,
        definition: definition.map(shown).unwrap_or_default(),
        problem: None,
        next_ms: schedule.and_then(|schedule| schedule.next_ms(session::now_ms())),
        webhook_path: webhook.map(|_| format!("/v1/webhooks/{owner}/{name}")),
    }
}

/// What stands in the way of its start.
fn problem(
    name: &str,
    definition: &AgentFile,
    config: &Config,
    secrets: &[KeptSecret],
) -> Option<String> {
    let unknown = check_tools(name, definition, config).err();
    unknown.map(|failure| failure.message).or_else(|| unsigned(definition, secrets))
}

/// Whether the tools are there that an agent names.
pub(super) fn check_tools(name: &str, definition: &AgentFile, config: &Config) -> Outcome {
    match &definition.tools {
        Some(named) => agents::known_tools(name, named, &task::tools(config, "", Vec::new())),
        None => Ok(()),
    }
}

/// What stands in the way of its webhook.
fn unsigned(definition: &AgentFile, secrets: &[KeptSecret]) -> Option<String> {
    let name = &definition.webhook.as_ref()?.secret;
    let verifies = |secret: &KeptSecret| secret.sealed.terms.verifies;
    match secrets.iter().find(|secret| secret.stored.name == *name) {
        Some(secret) if verifies(secret) => None,
        Some(_) => Some(format!("the secret {name} is sent somewhere, and verifies no webhooks")),
        None => Some(format!("its webhook is signed with the secret {name}, which is not there")),
    }
}

fn shown(file: &AgentFile) -> AgentDefinition {
    let limit = file.limit();
    let seconds = |ms: Option<u64>| ms.map(|ms| ms / 1_000);
    #[expect(clippy::cast_precision_loss, reason = "dollars are far below")]
    let dollars = limit.money_nanos.map(|nanos| nanos as f64 / crate::config::NANOS);
    AgentDefinition {
        description: file.description.clone(),
        task: file.task.clone(),
        instructions: file.instructions.clone(),
        model: file.model.clone(),
        network: file.network.as_ref().map(|words| words.all().to_vec()),
        tools: file.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
        image: file.image.clone(),
        skills: file.skills.as_ref().map(|skills| skills.iter().cloned().collect()),
        steps: limit.steps,
        tokens: limit.tokens,
        dollars,
        seconds: seconds(limit.wall_ms),
        cpu_seconds: seconds(limit.cpu_ms),
        egress_bytes: limit.egress_bytes,
        schedule: file.schedule.as_ref().map(|it| {
            let (cron, time_zone) = it.words();
            AgentSchedule { cron, time_zone }
        }),
        webhook: file.webhook.as_ref().map(|it| AgentWebhook { secret: it.secret.clone() }),
    }
}
