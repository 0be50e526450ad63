//! Starts agents by themselves: at the times of their schedules, and for messages to their
//! webhooks.
//!
//! Owns on whose behalf that is done: of whoever wrote the definition as it is, as long as they
//! may start sessions. A session is named after what started it, so that it is started once,
//! also where the server dies right before or after; nothing else is kept.

mod signature;

use outrigger_agent::{Seq, SessionId, SharedAccess};
use outrigger_api::{AttachedText, CreateSession, ProblemCode};
use outrigger_policy::{
    AccessAction, Directory, MemoryKind, MemoryScope, Owner, Principal, Scope, Trigger,
};
use outrigger_server::{RequestError, WebhookMessage, account_stop, session_name};
use outrigger_store::Keys as _;
use outrigger_store::entries::Error as EntryError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::context::ServeContext;
use super::failure::told;
use super::host::Host;
use super::opening::SessionOpening;
use crate::agents::{self, Agent, AgentStart, StoredAgent};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::network::SecretKeeper;
use crate::session::{self, now_ms};
use signature::SignedMessage;

/// Where an agent is defined, as its webhook's address says it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TriggerOwner {
    /// In a memory scope.
    Scope(Owner),
    /// In the configuration.
    Configuration,
}

impl fmt::Display for TriggerOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration => f.write_str("configuration"),
            Self::Scope(Owner::Organisation(_)) => f.write_str("organisation"),
            Self::Scope(owner) => write!(f, "{}", Principal::from(owner)),
        }
    }
}

/// An agent that starts by itself.
#[derive(Debug)]
struct TriggeredAgent {
    owner: TriggerOwner,
    agent: Agent,
    /// On whose behalf.
    person: String,
    /// Since when it is as it is.
    since_ms: u64,
}

impl TriggeredAgent {
    fn of(stored: &StoredAgent) -> Outcome<Self> {
        let version = &stored.contents.version;
        Ok(Self {
            owner: TriggerOwner::Scope(version.place.memory_scope.owner.clone()),
            agent: stored.agent(&version.author)?,
            person: version.author.to_string(),
            since_ms: version.by.at_ms,
        })
    }

    /// By which it is known, whatever becomes of its definition.
    fn key(&self) -> String {
        format!("{}/{}", self.owner, self.agent.name)
    }

    /// With whom what it does is shared, beside whoever wrote it.
    fn share(&self) -> Option<(Principal, SharedAccess)> {
        match &self.owner {
            TriggerOwner::Configuration | TriggerOwner::Scope(Owner::Person(_)) => None,
            TriggerOwner::Scope(owner @ Owner::Group(_)) => {
                Some((owner.into(), SharedAccess::TakePart))
            }
            TriggerOwner::Scope(owner @ Owner::Organisation(_)) => {
                Some((owner.into(), SharedAccess::Read))
            }
        }
    }
}

/// Starts agents by themselves.
#[derive(Debug, Clone)]
pub(super) struct Triggers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: Arc<ServeContext>,
    host: Host,
    began_ms: u64,
    /// The session that a schedule began last.
    last: Mutex<BTreeMap<String, SessionId>>,
    /// What could not be done last, so that it is said once.
    failed: Mutex<BTreeMap<String, String>>,
}

impl Triggers {
    pub(super) fn new(context: Arc<ServeContext>, host: Host) -> Self {
        let (last, failed) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { context, host, began_ms: now_ms(), last, failed }))
    }

    /// Starts what is due, for ever.
    pub(super) async fn run(&self) {
        loop {
            if let Err(failure) = self.start_due(now_ms()).await {
                self.say("", &failure);
            }
            let of_minute = now_ms() % limits::TRIGGER_LOOK_MS;
            tokio::time::sleep(Duration::from_millis(limits::TRIGGER_LOOK_MS - of_minute)).await;
        }
    }

    async fn start_due(&self, now_ms: u64) -> Outcome {
        for triggered in self.all().await? {
            if let Err(failure) = self.start_scheduled(&triggered, now_ms).await {
                self.say(&triggered.key(), &failure);
            }
        }
        Ok(())
    }

    /// Starts what a schedule wants by now: the newest of the times that were missed.
    async fn start_scheduled(&self, triggered: &TriggeredAgent, now_ms: u64) -> Outcome {
        let Some(schedule) = &triggered.agent.definition.schedule else { return Ok(()) };
        let since_ms = now_ms.saturating_sub(limits::TRIGGER_LATE_MS_MAX).max(triggered.since_ms);
        let times = std::iter::successors(schedule.next_ms(since_ms), |at| schedule.next_ms(*at));
        let Some(at_ms) = times.take_while(|at| *at <= now_ms).last() else { return Ok(()) };
        let key = triggered.key();
        let session = session_name(&[b"schedule", key.as_bytes(), &at_ms.to_le_bytes()]);
        let journal = &self.0.context.store.journal;
        if journal.head(&session).await? > Seq::default() || self.works(&key).await? {
            return Ok(());
        }
        self.start(triggered, Trigger::Schedule, &session, Vec::new()).await?;
        self.0.last.lock().expect("nobody panics while they hold it").insert(key, session);
        Ok(())
    }

    /// Whether what a schedule began last is still in its turn: then nothing is begun beside it.
    async fn works(&self, key: &str) -> Outcome<bool> {
        let last = self.0.last.lock().expect("nobody panics while they hold it").get(key).cloned();
        let Some(last) = last else { return Ok(false) };
        Ok(session::fold(&*self.0.context.store.journal, &last).await?.in_turn())
    }

    async fn start(
        &self,
        triggered: &TriggeredAgent,
        trigger: Trigger,
        session: &SessionId,
        data: Vec<AttachedText>,
    ) -> Outcome {
        let person = triggered.person.as_str();
        let rules = self.0.context.rules.access()?;
        if !rules.rights(person).permit_anywhere(AccessAction::Start) {
            let text =
                format!("{} belongs to {person}, who may not begin sessions", triggered.key());
            return Err(Failure::new(Kind::Denied, text));
        }
        let accounts = self.0.context.store.accounts.accounts().await?;
        if let Some(stop) = account_stop(accounts, person) {
            // Whoever sent a message may send it again.
            let text = format!("{} does not start: {stop}", triggered.key());
            return Err(Failure::new(Kind::BudgetExhausted, text));
        }
        let start = AgentStart { agent: triggered.agent.clone(), trigger: Some(trigger) };
        let opening = SessionOpening {
            person,
            session,
            asked: CreateSession { data, ..CreateSession::default() },
            pictures: Vec::new(),
            start: Some(start),
            share: triggered.share(),
        };
        Box::pin(self.0.host.open(opening)).await?;
        // That it fails again is said again.
        self.failed().remove(&triggered.key());
        Ok(())
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.failed.lock().expect("nobody panics while they hold it")
    }

    /// Takes a message of another system. Whoever can't sign one learns nothing of what there is.
    pub(super) async fn deliver(&self, message: WebhookMessage) -> Result<SessionId, RequestError> {
        let unknown = || {
            let text = "no agent takes this message";
            RequestError::new(ProblemCode::Unauthenticated, text)
                .hint("It is signed as GitHub or Standard Webhooks do it, with the secret that the agent's definition names.")
        };
        let signed = SignedMessage::read(&message.headers, &message.body, now_ms());
        let signed = signed.ok_or_else(unknown)?;
        let found = self.named(&message).await.map_err(told)?.ok_or_else(unknown)?;
        let webhook = found.agent.definition.webhook.as_ref().ok_or_else(unknown)?;
        let ServeContext { paths, store, .. } = &*self.0.context;
        let keeper = SecretKeeper::new(paths, &*store.database, &found.person);
        let mut verified = false;
        for signature in &signed.signatures {
            let right = keeper.verifies(&webhook.secret, &signed.message, signature).await;
            verified |=
                right.inspect_err(|failure| self.say(&found.key(), failure)).unwrap_or(false);
        }
        if !verified {
            return Err(unknown());
        }
        let key = found.key();
        let session = session_name(&[b"webhook", key.as_bytes(), signed.id.as_bytes()]);
        let text = String::from_utf8_lossy(&message.body).into_owned();
        let data = vec![AttachedText { name: "webhook".to_owned(), text }];
        let started = self.start(&found, Trigger::Webhook, &session, data).await;
        started.map(|()| session).map_err(told)
    }

    /// The agent that a message is for.
    async fn named(&self, message: &WebhookMessage) -> Outcome<Option<TriggeredAgent>> {
        let context = &self.0.context;
        if message.owner == TriggerOwner::Configuration.to_string() {
            return Ok(self.configured().find(|it| it.agent.name == message.agent));
        }
        let directory = context.rules.directory()?;
        let owner = match message.owner.parse::<Principal>() {
            Ok(Principal::Person(name)) => Owner::Person(name),
            Ok(Principal::Group(name)) => Owner::Group(name),
            Ok(Principal::Agent(_) | Principal::Organisation(_)) => return Ok(None),
            Err(_) if message.owner == "organisation" => {
                Owner::Organisation(directory.organisation.clone())
            }
            Err(_) => return Ok(None),
        };
        let Some(scope) = scope_of(&directory, &owner) else { return Ok(None) };
        let memory_scope = MemoryScope { kind: MemoryKind::Agents, owner };
        let Ok(place) = agents::place(memory_scope, &message.agent) else { return Ok(None) };
        let name = message.agent.clone();
        match context.store.entries.read(&scope, &place, None).await {
            Err(EntryError::Absent | EntryError::Redacted(_) | EntryError::Folder) => Ok(None),
            read => {
                let contents = read.map_err(|error| agents::failed(&error))?;
                TriggeredAgent::of(&StoredAgent { name, place, contents }).map(Some)
            }
        }
    }

    /// Every agent that there is, whoever it is of. What can't be read is told on its page.
    async fn all(&self) -> Outcome<Vec<TriggeredAgent>> {
        let ServeContext { rules, store, .. } = &*self.0.context;
        let directory = rules.directory()?;
        let keys = store.database.keys(now_ms()).await?;
        let people = directory.groups.values().flatten().map(ToString::to_string);
        let people = people.chain(keys.into_iter().map(|key| key.person));
        let people: BTreeSet<String> = people.chain([session::WHO.to_owned()]).collect();
        let owners = people.iter().filter_map(|who| match Principal::from_str(who) {
            Ok(Principal::Person(name)) => Some(Owner::Person(name)),
            _ => None,
        });
        let owners = owners.chain(directory.groups.keys().cloned().map(Owner::Group));
        let owners = owners.chain([Owner::Organisation(directory.organisation.clone())]);
        let mut all: Vec<_> = self.configured().collect();
        for owner in owners {
            let Some(scope) = scope_of(&directory, &owner) else { continue };
            let memory_scope = MemoryScope { kind: MemoryKind::Agents, owner };
            let found = agents::stored(&*store.entries, &scope, &memory_scope).await;
            let found = found.map_err(|error| agents::failed(&error))?;
            all.extend(found.iter().filter_map(|stored| TriggeredAgent::of(stored).ok()));
        }
        Ok(all)
    }

    fn configured(&self) -> impl Iterator<Item = TriggeredAgent> {
        let of = |(name, definition): (&String, &_)| TriggeredAgent {
            owner: TriggerOwner::Configuration,
            agent: Agent::of_configuration(name, definition),
            person: session::WHO.to_owned(),
            since_ms: self.0.began_ms,
        };
        self.0.context.config.agents.all().iter().map(of)
    }

    /// Tells whoever began the server what could not be done, once.
    fn say(&self, key: &str, failure: &Failure) {
        let said = self.failed().insert(key.to_owned(), failure.message.clone());
        if said.as_ref() != Some(&failure.message) {
            self.0.context.log.failure(failure);
        }
    }
}

/// The scope of somebody who sees what is of an owner.
fn scope_of(directory: &Directory, owner: &Owner) -> Option<Scope> {
    match owner {
        Owner::Person(_) => directory.authenticate(&owner.into()),
        Owner::Organisation(_) => directory.authenticate(&session::WHO.parse().ok()?),
        Owner::Group(name) => {
            let members = directory.groups.values().flatten();
            let mut scopes = members.filter_map(|member| directory.authenticate(member));
            scopes.find(|scope| scope.groups().contains(name))
        }
    }
}
