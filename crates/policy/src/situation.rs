//! A situation as data: in tests of rules, and where somebody asks what would be.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::{Action, Facts, Left, OutgoingRequest, OutsideFacts, ShellFacts, Trigger};

/// Facts that own what they speak of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Situation {
    /// See [`Facts::principal`].
    #[serde(default = "Situation::person")]
    pub person: String,
    /// See [`Facts::speakers`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub speakers: BTreeSet<String>,
    /// See [`Facts::agent`].
    #[serde(default = "Situation::agent")]
    pub agent: String,
    /// See [`Facts::above`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// See [`Facts::organisation`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub organisation: String,
    /// See [`Facts::action`].
    pub action: Action,
    /// See [`Facts::resource`].
    #[serde(default)]
    pub resource: String,
    /// See [`Facts::sandbox`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// See [`Facts::tool`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// See [`OutgoingRequest::host`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// See [`OutgoingRequest::port`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// See [`OutgoingRequest::method`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// See [`OutgoingRequest::path`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// See [`Facts::labels`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// See [`Facts::trigger`].
    #[serde(default)]
    pub trigger: Trigger,
    /// See [`Facts::at_ms`].
    #[serde(default)]
    pub at_ms: u64,
    /// See [`Facts::left`].
    #[serde(default)]
    pub left: Left,
    /// See [`Facts::shell`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellFacts>,
    /// See [`Facts::outside`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideFacts>,
}

impl Situation {
    /// The default agent does something for the person of this machine.
    #[must_use]
    pub fn new(action: Action, resource: &str) -> Self {
        Self {
            person: Self::person(),
            speakers: BTreeSet::new(),
            agent: Self::agent(),
            above: Vec::new(),
            organisation: String::new(),
            action,
            resource: resource.to_owned(),
            sandbox: None,
            tool: None,
            host: None,
            port: None,
            method: None,
            path: None,
            labels: BTreeSet::new(),
            trigger: Trigger::default(),
            at_ms: 0,
            left: Left::default(),
            shell: None,
            outside: None,
        }
    }

    fn person() -> String {
        "person:local".to_owned()
    }

    fn agent() -> String {
        "agent:default".to_owned()
    }

    /// The situation as the facts that the rules judge.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            principal: &self.person,
            speakers: &self.speakers,
            agent: &self.agent,
            above: &self.above,
            organisation: &self.organisation,
            action: self.action,
            resource: &self.resource,
            sandbox: self.sandbox.as_deref(),
            tool: self.tool.as_deref(),
            outgoing: OutgoingRequest {
                host: self.host.as_deref(),
                port: self.port,
                method: self.method.as_deref(),
                path: self.path.as_deref(),
            },
            labels: &self.labels,
            trigger: self.trigger,
            at_ms: self.at_ms,
            left: self.left,
            shell: self.shell.as_ref(),
            outside: self.outside,
        }
    }
}

impl From<&Facts<'_>> for Situation {
    fn from(facts: &Facts<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            person: facts.principal.to_owned(),
            speakers: facts.speakers.clone(),
            agent: facts.agent.to_owned(),
            above: facts.above.to_vec(),
            organisation: facts.organisation.to_owned(),
            action: facts.action,
            resource: facts.resource.to_owned(),
            sandbox: owned(facts.sandbox),
            tool: owned(facts.tool),
            host: owned(facts.outgoing.host),
            port: facts.outgoing.port,
            method: owned(facts.outgoing.method),
            path: owned(facts.outgoing.path),
            labels: facts.labels.clone(),
            trigger: facts.trigger,
            at_ms: facts.at_ms,
            left: facts.left,
            shell: facts.shell.cloned(),
            outside: facts.outside,
        }
    }
}
