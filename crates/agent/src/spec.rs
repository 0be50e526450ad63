//! What a session is opened with.

mod outside;
mod role;
mod when_busy;

use outrigger_policy::is_within;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use std::collections::BTreeSet;

use crate::{Approvals, Digest, Limit, Price, Raw, SandboxSpec};

pub use outside::OutsideTool;
pub use role::{DEFAULT_AGENT, DefinitionRevision, Delegate, Parent, Role};
pub use when_busy::WhenBusy;

/// Everything that the turn machine needs to know of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The principal on whose behalf the session runs, for example `person:local`.
    pub principal: String,
    /// The model.
    pub model: ModelSpec,
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// What the session may spend.
    pub budget: Limit,
    /// From where on a person is asked whether it may go on to that.
    #[serde(default, skip_serializing_if = "Limit::is_none")]
    pub soft: Limit,
    /// Limits of one turn.
    pub turn: TurnLimits,
    /// How people are asked.
    #[serde(default, skip_serializing_if = "Approvals::is_usual")]
    pub approvals: Approvals,
    /// What becomes of what people say while a turn runs, where they say nothing else.
    #[serde(default, skip_serializing_if = "WhenBusy::is_usual")]
    pub when_busy: WhenBusy,
    /// The sandbox's starting content, if there is any.
    pub workspace: Option<Workspace>,
    /// The sandboxes that its tools may act in. One that is not here has the
    /// workspace, is the session's alone, and is as the engine makes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<SandboxSpec>,
    /// Which agent it is, who started it, and whom it may start.
    #[serde(default, skip_serializing_if = "Role::is_usual")]
    pub role: Role,
}

impl Spec {
    /// How a sandbox was asked for.
    #[must_use]
    pub fn sandbox(&self, name: &str) -> Option<&SandboxSpec> {
        self.sandboxes.iter().find(|sandbox| sandbox.name == name)
    }

    /// What the first sandbox may reach, in the words of `--net`.
    #[must_use]
    pub fn network(&self) -> &[String] {
        self.sandboxes.first().map_or(&[], |first| &first.network)
    }

    /// The names of all sandboxes of the session, whether they were made or not.
    #[must_use]
    pub fn sandbox_names(&self) -> BTreeSet<&str> {
        let asked = self.sandboxes.iter().map(|sandbox| sandbox.name.as_str());
        asked.chain(self.tools.iter().filter_map(|tool| tool.sandbox.as_deref())).collect()
    }

    /// The starting content of a sandbox.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<&Workspace> {
        let filled = self.sandbox(name).is_none_or(|sandbox| sandbox.workspace);
        self.workspace.as_ref().filter(|_| filled)
    }
}

/// What every request carries beside the conversation: system prompt and tools.
pub(crate) fn fixed_bytes<'a>(system: &str, tools: impl Iterator<Item = &'a ToolSpec>) -> u64 {
    let tools = tools.map(|tool| tool.description.len() + tool.schema.as_str().len());
    (system.len() + tools.sum::<usize>()) as u64
}

/// The model of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// Its name, as its provider knows it.
    pub name: String,
    /// How it is spoken to: a wire, or `script`.
    pub provider: String,
    /// Where it is, if not at its provider's own address; the file of a script.
    pub address: Option<String>,
    /// Tokens that its context holds, input and output together.
    pub context_tokens: u64,
    /// Tokens of output that one call may ask for.
    pub output_tokens_max: u64,
    /// Whether its replies come from a script and not from a model.
    pub scripted: bool,
    /// What its tokens cost, if anybody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// A tool on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Raw,
    /// What it does to the world.
    pub kind: ToolKind,
    /// Whether it may run beside other calls of the same reply.
    pub concurrency: Concurrency,
    /// What a crash in its middle means.
    pub recovery: Recovery,
    /// The sandbox in which it acts, by name; `None` if it needs none.
    pub sandbox: Option<String>,
    /// Which of its calls need none all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<ServedPaths>,
    /// Which built-in tool it is, if that one has another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,
    /// Where its relative paths begin and its commands start, if that is not the top of the
    /// sandbox's workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// How long a call of it may take, if it is killed after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Where it is, if it is no tool of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideTool>,
}

/// How long a call may take until it is killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The argument in which the model says it, in milliseconds; empty if none does.
    pub argument: String,
    /// What holds where it says nothing, in milliseconds.
    pub usual_ms: u64,
    /// The most that holds, in milliseconds.
    pub most_ms: u64,
    /// What it may take of processors meanwhile, in thousandths of one.
    pub cpu_millis: u32,
}

/// Paths that the harness has itself: a call about one of them needs no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedPaths {
    /// The arguments that say which path a call is about; the first absolute one does.
    pub arguments: Vec<String>,
    /// The folders in which such paths are, for example `/memory`.
    pub mounts: Vec<String>,
}

impl ServedPaths {
    /// Whether a call with these arguments is about such a path for certain. One that is
    /// spelled in a roundabout way is not: it is answered all the same, from its sandbox.
    fn cover(&self, arguments: &str) -> bool {
        let Ok(Value::Object(given)) = serde_json::from_str(arguments) else { return false };
        let mut texts = self.arguments.iter().filter_map(|name| given.get(name)?.as_str());
        let Some(path) = texts.find(|text| text.starts_with('/')) else { return false };
        let straight = path.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
        straight && self.mounts.iter().any(|mount| is_within(path, mount))
    }
}

impl ToolSpec {
    /// The sandbox that a call with these arguments needs.
    #[must_use]
    pub fn sandbox_for(&self, arguments: &str) -> Option<&str> {
        let served = self.served.as_ref().is_some_and(|served| served.cover(arguments));
        self.sandbox.as_deref().filter(|_| !served)
    }

    /// The name of the built-in tool that it is.
    #[must_use]
    pub fn built_in(&self) -> &str {
        self.built_in.as_deref().unwrap_or(&self.name)
    }

    /// Whether what it is called with leaves this machine's sandboxes.
    #[must_use]
    pub fn leaves(&self) -> bool {
        self.outside.is_some() && self.sandbox.is_none()
    }
}

/// What a tool does to the world: the policy's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Runs a command.
    Execute,
    /// Reads files.
    ReadFiles,
    /// Changes files.
    WriteFiles,
    /// Whatever a server of somebody else does.
    Outside,
    /// Starts a subagent.
    Subagent,
}

/// Whether a tool may run beside other calls of the same reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// Beside other shared ones.
    Shared,
    /// Alone, in call order.
    Exclusive,
}

/// What is done with a call that was started and not settled when the harness died.
/// Declared by our registry, never by the tool's own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// It only reads: do it again.
    Repeat,
    /// It is known to the sandbox by its exec id: ask for it again in the same
    /// generation; in another one its outcome is unknown. A subagent is known by its
    /// session, and driven on.
    Reattach,
    /// Nobody can be asked whether it was done: its outcome is unknown.
    Unknown,
}

/// Limits of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnLimits {
    /// Model calls and tool calls together.
    pub steps_max: u64,
    /// Wall time, while something runs.
    pub wall_ms_max: u64,
}

/// The starting content of the workspace: a tar archive in the blob store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Digest of the archive.
    pub archive: Digest,
    /// Size of the archive.
    pub bytes: u64,
    /// Files and links in it.
    pub files: u64,
    /// The directory that it was copied from, for people; the model is not told.
    pub source: String,
    /// Directories of it that are not in the archive and come with the sandbox's template,
    /// by their paths in it: what the project depends on. Nothing that changes in them is a
    /// change of the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Where in it the person worked who began the session, by its path; empty at the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

impl Workspace {
    /// The directory in which the person worked who began the session, for people.
    #[must_use]
    pub fn begun_in(&self) -> String {
        match self.prefix.as_str() {
            "" => self.source.clone(),
            prefix => format!("{}/{prefix}", self.source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ServedPaths;

    #[test]
    fn what_is_covered_is_within_a_mount_for_certain() {
        let served = ServedPaths {
            arguments: vec!["pattern".to_owned(), "path".to_owned()],
            mounts: vec!["/memory".to_owned(), "/skills".to_owned()],
        };
        for (arguments, covered) in [
            (r#"{"path": "/memory"}"#, true),
            (r#"{"path": "/skills/user/a b.md"}"#, true),
            (r#"{"pattern": "*.md", "path": "/memory/user"}"#, true),
            (r#"{"pattern": "/memory/**/*.md"}"#, true),
            (r#"{"pattern": "/src/*.rs", "path": "/memory"}"#, false),
            (r#"{"pattern": "/memory*/x"}"#, false),
            (r#"{"path": "/memory2"}"#, false),
            (r#"{"path": "/Memory/user"}"#, false),
            (r#"{"path": "memory/user"}"#, false),
            (r#"{"path": "/memory/../workspace"}"#, false),
            (r#"{"path": "/memory/{a,../../workspace}"}"#, false),
            (r#"{"path": "/memory//user"}"#, false),
            (r#"{"path": "/memory/./user"}"#, false),
            (r#"{"path": 7}"#, false),
            (r#"{"other": "/memory"}"#, false),
            ("[]", false),
            ("{", false),
        ] {
            assert_eq!(served.cover(arguments), covered, "{arguments}");
        }
    }
}
