//! `[agents.NAME]`: the agents that a person or a session may start, and what each may do and
//! spend; a definition that is kept beside memory has the same keys.
//!
//! A stronger file's table of a name takes the place of the weaker one's whole.

use outrigger_agent::{DEFAULT_AGENT, Delegate, Limit};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::{BTreeMap, BTreeSet};

use super::Dollars;
use super::budget::{Count, limit, plain};
use super::schedule::Schedule;
use crate::limits;
use crate::network::Words;

/// A name of an agent, as rules write it: `Agent::"reviewer"`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("pattern" = "^[a-z0-9][a-z0-9-]*$")))]
pub(crate) struct AgentName(String);

impl AgentName {
    /// Takes a name.
    pub(crate) fn parse(name: String) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let max = limits::AGENT_NAME_CHARS_MAX;
        if !(1..=max).contains(&name.len()) || !name.bytes().all(plain) || name.starts_with('-') {
            return Err(format!(
                "invalid name `{}`, expected 1 to {max} characters of a-z 0-9 -",
                name.escape_debug().take(60).collect::<String>()
            ));
        }
        Ok(Self(name))
    }

    pub(crate) fn into_inner(self) -> String {
        self.0
    }
}

impl<'de> Deserialize<'de> for AgentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// An agent that a person may start (`docs/how-to/agents.md`), or a session as a subagent, by its
/// name: 1 to 32 characters of a-z 0-9 -; any number of such tables. The agent `default` is always
/// there for sessions; its table changes it (`docs/how-to/subagents.md`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentFile {
    /// What the model that may start the agent is told of it; if absent, its name.
    #[cfg_attr(test, schemars(example = &"reads a change and says what is wrong with it"))]
    pub(crate) description: Option<String>,
    /// What is added to the agent's system prompt.
    #[cfg_attr(test, schemars(example = &"You review changes. Do not change files."))]
    pub(crate) instructions: Option<String>,
    /// What it does where whoever starts it says nothing. A subagent is always told.
    #[cfg_attr(test, schemars(example = &"Review the newest commit."))]
    pub(crate) task: Option<String>,
    /// Its model, by the name that the provider in use has for it; if absent, the one in use. A
    /// subagent has the model of the session that starts it.
    #[cfg_attr(test, schemars(example = &"qwen3-coder"))]
    pub(crate) model: Option<String>,
    /// What its commands may reach, in the words of `--net`; if absent, what the first sandbox
    /// may. A subagent's are those of the session that starts it.
    #[cfg_attr(test, schemars(with = "Vec<String>", example = ["packages"]))]
    pub(crate) network: Option<Words>,
    /// What its first sandbox stands on, as `outrigger run --image` takes it; on a server a template
    /// that is there. If absent, what is configured. A subagent works in the sandboxes of the
    /// session that starts it.
    #[cfg_attr(test, schemars(example = &"python:3.13"))]
    pub(crate) image: Option<String>,
    /// The skills that it is told of, by name; if absent, all that are offered. A subagent is told
    /// of those of the session that starts it.
    #[cfg_attr(test, schemars(example = ["release-notes"]))]
    pub(crate) skills: Option<BTreeSet<String>>,
    /// When a server starts it by itself, to do its `task`.
    #[cfg_attr(test, schemars(example = serde_json::json!(
        {"cron": "30 7 * * MON-FRI", "time_zone": "Europe/Zurich"})))]
    pub(crate) schedule: Option<Schedule>,
    /// A server starts it for each message that another system sends to its address, signed with
    /// a secret (`docs/how-to/agents.md`).
    #[cfg_attr(test, schemars(example = serde_json::json!({"secret": "ISSUES_HOOK"})))]
    pub(crate) webhook: Option<Webhook>,
    /// The tools that the agent has, of those of the session that starts it; if absent, all.
    #[cfg_attr(test, schemars(example = ["read_file", "ls", "glob", "grep", "execute"]))]
    pub(crate) tools: Option<BTreeSet<String>>,
    /// The most model calls and tool calls of one of these agents.
    #[cfg_attr(test, schemars(example = 50))]
    steps: Option<Count>,
    /// The most tokens of one of these agents, input and output together.
    #[cfg_attr(test, schemars(example = 200_000))]
    tokens: Option<Count>,
    /// The most money of one of these agents, in US dollars.
    #[cfg_attr(test, schemars(example = 0.5))]
    dollars: Option<Dollars>,
    /// The most seconds that the agent's effects may take, those beside each other counted each.
    #[cfg_attr(test, schemars(example = 1_800))]
    seconds: Option<Count>,
    /// The most seconds of processors that the agent's commands may take.
    #[cfg_attr(test, schemars(example = 600))]
    cpu_seconds: Option<Count>,
    /// The most bytes that the agent may send to tools outside.
    #[cfg_attr(test, schemars(example = 1_048_576))]
    egress_bytes: Option<Count>,
}

/// Messages of another system that start an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhook {
    /// The secret of `outrigger secrets` that they are signed with.
    #[cfg_attr(test, schemars(example = &"ISSUES_HOOK"))]
    pub(crate) secret: String,
}

/// The agents of all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Agents(BTreeMap<String, AgentFile>);

impl Agents {
    pub(super) fn absorb(&mut self, files: BTreeMap<AgentName, AgentFile>) {
        self.0.extend(files.into_iter().map(|(AgentName(name), file)| (name, file)));
    }

    /// Those that the files name, by name.
    pub(crate) fn all(&self) -> &BTreeMap<String, AgentFile> {
        &self.0
    }

    /// As sessions record them; the default one is always among them.
    pub(crate) fn specs(&self) -> Vec<Delegate> {
        let usual = AgentFile::default();
        let others = self.0.iter().filter(|(name, _)| *name != DEFAULT_AGENT);
        let first = (DEFAULT_AGENT, self.0.get(DEFAULT_AGENT).unwrap_or(&usual));
        let all = std::iter::once(first).chain(others.map(|(name, file)| (name.as_str(), file)));
        all.map(|(name, file)| file.spec(name)).collect()
    }
}

impl AgentFile {
    fn spec(&self, name: &str) -> Delegate {
        let description = self.description.clone().unwrap_or_else(|| match name {
            DEFAULT_AGENT => "for anything; has the tools that you have".to_owned(),
            name => name.to_owned(),
        });
        let mut system = include_str!("../subagent.md").to_owned();
        if let Some(instructions) = &self.instructions {
            system.push('\n');
            system.push_str(instructions);
        }
        Delegate {
            name: name.to_owned(),
            description,
            system: Some(system),
            tools: self.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
            limit: self.limit(),
        }
    }

    /// The most that one of these agents may spend.
    pub(crate) fn limit(&self) -> Limit {
        let Self { steps, tokens, seconds, cpu_seconds, egress_bytes, .. } = *self;
        limit([steps, tokens, seconds, cpu_seconds, egress_bytes].map(plain), self.dollars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Agents, toml::de::Error> {
        let mut agents = Agents::default();
        agents.absorb(toml::from_str(text)?);
        Ok(agents)
    }

    #[test]
    fn the_default_one_is_always_there_and_first() {
        assert_eq!(Agents::default().specs().len(), 1);
        let agents = read(
            "[a]\ntools = [\"ls\"]\ntokens = 7\ninstructions = \"Count.\"\n[default]\nsteps = 3",
        )
        .unwrap();
        let [first, second] = &agents.specs()[..] else { panic!("{agents:?}") };
        assert_eq!((first.name.as_str(), first.limit.steps), ("default", Some(3)));
        assert_eq!(
            (second.tools.as_deref(), second.limit.tokens),
            (Some(&["ls".to_owned()][..]), Some(7))
        );
        assert!(second.system.as_ref().is_some_and(|system| system.ends_with("\nCount.")));
    }

    #[test]
    fn names_are_plain() {
        for name in ["\"a b\"", "A", "\"-a\"", "\"\"", "\"a\\n\"", &"a".repeat(40)] {
            let error = read(&format!("[{name}]")).unwrap_err().to_string();
            assert!(error.contains("expected 1 to 32 characters"), "{error}");
        }
        assert!(read("[a-1]\nbudget = 1").is_err());
    }
}
