//! Agents: what each is told, has and may spend, in versions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object;

/// What an agent is. A file of it in TOML has the same keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentDefinition {
    /// What it is for, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it does where whoever starts it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What is added to its system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its model, by name; the server's own if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What its commands may reach, in the words of `--net`; what the configuration says if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Vec<String>>,
    /// The tools that it has; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What its first sandbox stands on, by its name among the templates; what is configured if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The skills that it is told of, by name; all that are offered if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The most model calls and tool calls of a session of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The most tokens of a session of it, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The most that a session of it costs, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// The most seconds that the effects of a session of it take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// The most seconds of processors that the commands of a session of it take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// The most bytes that a session of it sends to tools outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_bytes: Option<u64>,
    /// When it begins by itself, to do its task.
    #[serde(deserialize_with = "object::maybe", skip_serializing_if = "Option::is_none")]
    pub schedule: Option<AgentSchedule>,
    /// That messages of another system start it.
    #[serde(deserialize_with = "object::maybe", skip_serializing_if = "Option::is_none")]
    pub webhook: Option<AgentWebhook>,
}

/// When an agent begins by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSchedule {
    /// Minute, hour, day of the month, month and day of the week, as crontab(5) has them.
    #[schema(example = "30 7 * * MON-FRI")]
    pub cron: String,
    /// Where the clock hangs, by a name of the tz database; UTC if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Zurich")]
    pub time_zone: Option<String>,
}

/// Messages of another system that start an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentWebhook {
    /// The secret that they are signed with, by its name.
    #[schema(example = "ISSUES_HOOK")]
    pub secret: String,
}

/// Whose an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentSource {
    /// The person's who asks.
    User,
    /// A group's.
    Group,
    /// The organisation's.
    Organisation,
    /// It stands in the configuration of the server, and is changed there.
    Configuration,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentInfo {
    /// Its name, by which a session is opened with it; the nearest of a name is meant.
    pub name: String,
    /// Whose it is.
    pub source: AgentSource,
    /// Where it is kept: its history, differences and older versions are those of this path, at
    /// `/v1/memory`. Nothing for one of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its version, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Who wrote it as it is, for example `person:ada`: its schedule and its webhook are theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What it is; what can't be read of it is missing.
    pub definition: AgentDefinition,
    /// Why it can't be started, if it can't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When it begins by itself the next time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// Where messages that start it are sent, below the address of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_path: Option<String>,
}

/// The agents that a person can start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// The agents: the person's own first, then those of groups, the organisation and the
    /// configuration.
    pub data: Vec<AgentInfo>,
}

/// What a message to a webhook started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookAccepted {
    /// The session.
    pub session: String,
}
