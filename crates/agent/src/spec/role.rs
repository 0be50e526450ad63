//! Agents in a session's specification.
//!
//! Owns who started it and whom it may start.

use outrigger_policy::Trigger;
use serde::{Deserialize, Serialize};

use crate::{Limit, Seq, SessionId};

/// Who acts where nobody said so.
pub const DEFAULT_AGENT: &str = "default";

/// Which agent a session is, who started it, and whom it may start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Role {
    /// The agent's name; nothing for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the agent was defined by when the session was opened, if that is kept in versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionRevision>,
    /// What opened it, if neither a person nor an agent did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// The names of the agents above, the nearest first: those that started it, or what it
    /// is a fork of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// Who spoke, beside the person whose it is, in the turn that started it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<String>,
    /// The tool call that started it, if it is a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The agents that it may start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Delegate>,
    /// How many agents deep those that it starts may start others: 1 is no deeper.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deep: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A version of an agent's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRevision {
    /// Its path, for example `/agents/organisation/reviewer.toml`.
    pub path: String,
    /// Counted from 1.
    pub revision: u64,
}

/// The tool call that started a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The session above.
    pub session: SessionId,
    /// The effect in it.
    pub effect: Seq,
}

impl Role {
    /// Whether nothing was said of it.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// The agent, as rules name it: `agent:reviewer`.
    #[must_use]
    pub fn acting(&self) -> String {
        rule_name(self.name())
    }

    /// The agents above it, as rules name them, the nearest first.
    #[must_use]
    pub fn above(&self) -> Vec<String> {
        self.above.iter().map(|name| rule_name(name)).collect()
    }

    /// The agent's name.
    pub(crate) fn name(&self) -> &str {
        self.agent.as_deref().unwrap_or(DEFAULT_AGENT)
    }
}

fn rule_name(name: &str) -> String {
    format!("agent:{name}")
}

/// An agent that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegate {
    /// Its name, of `[a-z0-9-]`.
    pub name: String,
    /// What the model that may start it is told of it.
    pub description: String,
    /// Its system prompt; nothing for that of the session that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Names of the tools that it has, if not all. One that the session that starts it
    /// has not, it has not either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The most that one of them may spend.
    #[serde(default, skip_serializing_if = "Limit::is_none")]
    pub limit: Limit,
}
