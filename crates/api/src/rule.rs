//! The rules that agents are judged by, and why they say what they say.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

use crate::VerdictKind;

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleInfo {
    /// Its name.
    pub id: String,
    /// What it says.
    pub says: VerdictKind,
    /// Whom it asks; `anyone` for everybody who may speak in the session.
    pub approvers: Vec<String>,
    /// Who may approve too once nobody answered for a time.
    pub escalates: Vec<String>,
    /// Why, in a sentence.
    pub reason: String,
    /// The file that it stands in.
    pub file: String,
    /// The line on which it begins.
    pub line: usize,
    /// The rule, in Cedar.
    pub text: String,
}

/// All rules in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleList {
    /// The name of exactly these rules and people.
    pub rule_set: String,
    /// The rules, by name.
    pub data: Vec<RuleInfo>,
    /// What will hardly be meant so.
    pub warnings: Vec<String>,
}

/// Asks what the rules would say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExplainRules {
    /// What is to be done: `ask_model`, `provision`, `execute`, `read_files`, `write_files`,
    /// `egress`, `use_secret`, `write_shared_memory`, `call_outside_tool`, `start_subagent`,
    /// `approve`.
    #[schema(
        required,
        pattern = "^(ask_model|provision|execute|read_files|write_files|egress|use_secret|write_shared_memory|call_outside_tool|start_subagent|approve)$"
    )]
    pub action: String,
    /// To what: a model, a sandbox, a path, a host, a secret, a memory, a tool as `server/tool`,
    /// an agent.
    pub resource: String,
    /// The person whose session it is; who asks, if absent.
    pub person: Option<String>,
    /// The others who spoke in the turn.
    #[schema(value_type = Vec<String>)]
    pub speakers: BTreeSet<String>,
    /// The agent that acts; `agent:default` if absent.
    pub agent: Option<String>,
    /// Labels of the session, for example `untrusted`.
    #[schema(value_type = Vec<String>)]
    pub labels: BTreeSet<String>,
    /// What set the turn off: `person`, `schedule`, `webhook` or `agent`.
    #[schema(pattern = "^(person|schedule|webhook|agent)$")]
    pub trigger: Option<String>,
    /// The tool by which it is done.
    pub tool: Option<String>,
    /// The host that a secret goes to.
    pub host: Option<String>,
    /// The port of a request.
    pub port: Option<u16>,
    /// The method of a request.
    pub method: Option<String>,
    /// The path of a request.
    pub path: Option<String>,
}

/// What the rules say of something, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesExplanation {
    /// What they say.
    pub ruling: VerdictKind,
    /// Why, in words.
    pub why: String,
    /// Who may approve it, where they ask and name somebody.
    pub approvers: Vec<String>,
    /// The rules that decided.
    pub rules: Vec<RuleInfo>,
    /// Everybody who had to be permitted.
    pub subjects: Vec<RuleSubject>,
    /// The name of the rules and people that were asked.
    pub rule_set: String,
}

/// What the rules say of one of those who had to be permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleSubject {
    /// `person:ada`, `agent:default`, `org:acme`.
    pub who: String,
    /// The rules that permit it; if there are none, it is forbidden.
    pub permitted_by: Vec<String>,
    /// The rules that forbid it or ask.
    pub held_by: Vec<String>,
}

/// Why an effect was permitted, asked about or forbidden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectRules {
    /// What the rules in force now say of it.
    pub now: RulesExplanation,
    /// What was decided when they were last asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<RulesDecision>,
    /// What they were asked.
    pub situation: RulesSituation,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesDecision {
    /// What the rules said.
    pub ruling: VerdictKind,
    /// The rules that decided, by name.
    pub rules: Vec<String>,
    /// The name of the rules and people that were asked.
    pub rule_set: String,
}

/// What rules are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesSituation {
    /// What is to be done.
    pub action: String,
    /// To what.
    pub resource: String,
    /// The person whose session it is.
    pub person: String,
    /// The others who spoke in the turn.
    pub speakers: BTreeSet<String>,
    /// The agent that acts.
    pub agent: String,
    /// The labels of the session.
    pub labels: BTreeSet<String>,
}
