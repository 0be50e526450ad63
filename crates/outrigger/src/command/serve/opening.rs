//! A session that is to be opened, as a task: what was asked for over what is configured.

use outrigger_agent::{Author, Limit, Message, Picture, SessionId, SharedAccess, State};
use outrigger_api::{CreateSession, SessionLimits};
use outrigger_engine::ResumeChange;
use outrigger_policy::Principal;
use outrigger_store::Lease;

use super::context::ServeContext;
use super::uploads::{TakenUpload, Uploads};
use crate::agents::{self, AgentStart};
use crate::command::detach::Driver;
use crate::command::sessions::change;
use crate::command::task::Task;
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Apply;
use crate::network::Words;
use crate::project_file::ProjectFile;
use crate::show::Screen;
use crate::trust::{self, JudgedFile};
use crate::{compose, workspace};

/// A session that is to be opened.
pub(super) struct SessionOpening<'a> {
    /// On whose behalf.
    pub(super) person: &'a str,
    pub(super) session: &'a SessionId,
    pub(super) asked: CreateSession,
    /// What came with the first words, which is stored.
    pub(super) pictures: Vec<Picture>,
    /// Which agent it is, where that is known; else what is asked for is looked up.
    pub(super) start: Option<AgentStart>,
    /// With whom it is shared from the beginning.
    pub(super) share: Option<(Principal, SharedAccess)>,
}

/// What a session is opened with.
pub(super) struct PreparedOpening {
    pub(super) task: Task,
    pub(super) config: Config,
    /// What was sent for it, which goes once it is open.
    pub(super) upload: Option<TakenUpload>,
}

impl SessionOpening<'_> {
    /// Finds out what it is opened with, under the lease of the session.
    pub(super) async fn prepare(
        self,
        context: &ServeContext,
        uploads: &Uploads,
        lease: Lease,
    ) -> Outcome<PreparedOpening> {
        let SessionOpening { person, session, mut asked, pictures, start, share: _ } = self;
        let ServeContext { paths, config, model, dir, .. } = context;
        let start = match (start, &asked.agent) {
            (None, Some(name)) => Some(agent(context, person, name).await?),
            (start, _) => start,
        };
        let mut config = config.clone();
        if let Some(AgentStart { agent, .. }) = &start {
            agent.settle(&mut config);
            asked.text = agent.task(asked.text)?;
            asked.model = asked.model.or(agent.definition.model.clone());
        }
        let own = start.as_ref().and_then(|start| start.agent.definition.image.as_ref());
        let names_image = own.or(asked.image.as_ref()).is_some();
        let (config, model) = chosen(config, model, &asked)?;
        if names_image {
            // What whoever serves did not bring here is not brought by whoever comes.
            compose::templates_are_there(paths, &config).await?;
        }
        let upload = asked.workspace.as_ref();
        let upload = upload.map(|sent| uploads.take(person, &sent.id)).transpose()?;
        let (tree, mut messages, sent) = match (&upload, &asked.workspace) {
            (Some(upload), Some(sent)) => {
                let tree = upload.tree(&sent.prefix)?;
                let messages = TakenUpload::messages(&tree, sent, person);
                (tree, messages, Some(upload.content(&sent.source)?))
            }
            _ => {
                let tree = workspace::tree(dir)?;
                let all = ProjectFile::all(&tree);
                let judged = trust::settle(paths, &tree.top, all, &Screen::keeping()).await?;
                (tree, judged.into_iter().filter_map(JudgedFile::message).collect(), None)
            }
        };
        let data = asked.data.into_iter();
        messages.extend(data.map(|it| Message::new(Author::Untrusted(it.name), it.text)));
        let said = Message::new(Author::Person(person.to_owned()), asked.text);
        messages.push(Message { pictures, ..said });
        let task = Task {
            who: person.to_owned(),
            tree,
            sent,
            messages,
            apply: Apply::default(),
            model,
            name: Some(session.clone()),
            lease: Some(lease),
            driver: Driver::Here,
            agent: start,
        };
        Ok(PreparedOpening { task, config, upload })
    }
}

/// The agent that a person asks for.
async fn agent(context: &ServeContext, person: &str, name: &str) -> Outcome<AgentStart> {
    let ServeContext { config, store, rules, .. } = context;
    let scope = person.parse().ok().and_then(|who| rules.directory().ok()?.authenticate(&who));
    let scope =
        scope.ok_or_else(|| Failure::new(Kind::NotFound, format!("there is no agent `{name}`")))?;
    let agent = agents::named(&*store.entries, &scope, config, name).await?;
    Ok(AgentStart { agent, trigger: None })
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

/// How a session goes on, with what was asked for as far as the configuration lets any have it.
pub(super) fn resumed(config: &Config, state: &State, asked: SessionLimits) -> ResumeChange {
    let most = Limit { tokens: Some(config.tokens_max), ..config.budget.limit };
    let said = limit_of(asked);
    let budget = if said.is_none() { said } else { said.or(state.budget()).and(most) };
    let steps_max = asked.steps_max.map(|it| it.min(config.steps_max));
    change(state, config, (steps_max, budget), (None, None)).unwrap_or_default()
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
    if let Some(image) = &asked.image {
        config.stand_on(image);
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
