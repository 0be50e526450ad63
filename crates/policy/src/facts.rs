//! What a rule may look at.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What somebody is about to do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Send the conversation to a model provider.
    AskModel,
    /// Make the session's sandbox.
    Provision,
    /// Run a command inside the sandbox.
    Execute,
    /// Read files inside the sandbox.
    ReadFiles,
    /// Change files inside the sandbox.
    WriteFiles,
    /// Send a request to a host.
    Egress,
    /// Have a secret put into a request.
    UseSecret,
    /// Change memory or skills that others read.
    WriteSharedMemory,
    /// Call a tool that is neither ours nor in a sandbox.
    CallOutsideTool,
    /// Start another agent.
    StartSubagent,
    /// Answer for something that asks.
    Approve,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::AskModel,
        Self::Provision,
        Self::Execute,
        Self::ReadFiles,
        Self::WriteFiles,
        Self::Egress,
        Self::UseSecret,
        Self::WriteSharedMemory,
        Self::CallOutsideTool,
        Self::StartSubagent,
        Self::Approve,
    ];

    /// The name that rules use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AskModel => "ask_model",
            Self::Provision => "provision",
            Self::Execute => "execute",
            Self::ReadFiles => "read_files",
            Self::WriteFiles => "write_files",
            Self::Egress => "egress",
            Self::UseSecret => "use_secret",
            Self::WriteSharedMemory => "write_shared_memory",
            Self::CallOutsideTool => "call_outside_tool",
            Self::StartSubagent => "start_subagent",
            Self::Approve => "approve",
        }
    }
}

/// What set a turn off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A person's message.
    #[default]
    Person,
    /// A time that came.
    Schedule,
    /// A message from another system.
    Webhook,
    /// The agent above.
    Agent,
}

impl Trigger {
    /// The word that rules have for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Schedule => "schedule",
            Self::Webhook => "webhook",
            Self::Agent => "agent",
        }
    }
}

/// What is left of a budget; nothing where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Left {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Model calls and tool calls.
    pub steps: Option<u64>,
    /// Money, in millionths of its unit.
    pub money_micros: Option<u64>,
    /// What may be sent to tools outside, in bytes.
    pub egress_bytes: Option<u64>,
}

/// What a parser made of a shell command: a label, never a boundary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShellFacts {
    /// The programs that it names.
    pub programs: BTreeSet<String>,
    /// The guarded paths that it names.
    pub touches: BTreeSet<String>,
    /// Whether it does what can't be known from its text.
    pub opaque: bool,
}

/// What is known of a tool outside, from our own configuration and never by its own word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutsideFacts {
    /// It changes nothing; what it is asked still tells its server something.
    pub read_only: bool,
    /// Its server describes it otherwise than when a person trusted it.
    pub changed: bool,
    /// Content reached the conversation that neither its person nor its own server wrote.
    pub elsewhere: bool,
}

/// A request to a host, or one that carries a secret there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutgoingRequest<'a> {
    /// To which host a secret goes; what is sent itself names it as its resource.
    pub host: Option<&'a str>,
    /// Of TCP.
    pub port: Option<u16>,
    /// Of HTTP.
    pub method: Option<&'a str>,
    /// Of the URL.
    pub path: Option<&'a str>,
}

/// The label of a session into which content came that nobody vouches for.
pub const UNTRUSTED: &str = "untrusted";

static NONE: BTreeSet<String> = BTreeSet::new();

/// The situation to judge. Everything in it comes from the harness; nothing in
/// it was chosen by the model except `resource` and what `outgoing` and `shell` say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The person whose session it is, for example `person:local`.
    pub principal: &'a str,
    /// The others who spoke in this turn, each of whom must be permitted the same.
    pub speakers: &'a BTreeSet<String>,
    /// The agent that acts, for example `agent:default`.
    pub agent: &'a str,
    /// The agents that started it, each of which must be permitted the same.
    pub above: &'a [String],
    /// The organisation, for example `org:local`; empty for the one of the rules.
    pub organisation: &'a str,
    /// What is to be done.
    pub action: Action,
    /// To what: a model, a sandbox, a path, a host, a secret, a memory, a tool as
    /// `server/tool`, an agent; for [`Action::Approve`] the action that is approved.
    pub resource: &'a str,
    /// The sandbox in which it is done.
    pub sandbox: Option<&'a str>,
    /// The tool by which it is done.
    pub tool: Option<&'a str>,
    /// Of a request to a host.
    pub outgoing: OutgoingRequest<'a>,
    /// What reached the conversation.
    pub labels: &'a BTreeSet<String>,
    /// What set the turn off.
    pub trigger: Trigger,
    /// Now, in milliseconds since 1970.
    pub at_ms: u64,
    /// What is left of the budget.
    pub left: Left,
    /// Of a shell command.
    pub shell: Option<&'a ShellFacts>,
    /// Of a tool outside.
    pub outside: Option<OutsideFacts>,
}

impl<'a> Facts<'a> {
    /// The default agent does something for somebody, and nothing else is known.
    #[must_use]
    pub fn new(principal: &'a str, action: Action, resource: &'a str) -> Self {
        Self {
            principal,
            speakers: &NONE,
            agent: "agent:default",
            above: &[],
            organisation: "",
            action,
            resource,
            sandbox: None,
            tool: None,
            outgoing: OutgoingRequest::default(),
            labels: &NONE,
            trigger: Trigger::default(),
            at_ms: 0,
            left: Left::default(),
            shell: None,
            outside: None,
        }
    }
}
