//! `outrigger policy`, as it is typed.

use clap::{Args, Subcommand, ValueEnum, value_parser};
use std::path::PathBuf;

use super::Output;

/// The rules that every step is judged by.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Check rules: whether they can be in force, and mean what they say. Exit code 2 if not.
    Check {
        /// Files of rules to check instead of those that are configured.
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Say what the rules make of a situation, which of them, and why.
    Explain(Box<Explain>),
    /// Try the situations of a file, each with its expected outcome. Exit code 1 if one differs.
    Test {
        /// The file, in TOML; docs/how-to/write-policies.md shows one.
        file: PathBuf,
        /// Files of rules to try instead of those that are configured.
        #[arg(long, value_name = "FILE")]
        rules: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
}

impl Policy {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Check { output, .. } | Self::Test { output, .. } => *output,
            Self::Explain(asked) => asked.output,
        }
    }
}

/// A situation, described or taken out of a session.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// What is to be done.
    #[arg(long, value_enum, required_unless_present = "session", conflicts_with = "session")]
    pub(crate) action: Option<Action>,
    /// To what: a model, a sandbox, a path, a host, a secret, a memory, a tool as SERVER/TOOL, an agent.
    #[arg(long, default_value = "", hide_default_value = true, conflicts_with = "session")]
    pub(crate) resource: String,
    /// The person of the turn.
    #[arg(long, default_value = crate::session::WHO, help_heading = "Who")]
    pub(crate) person: String,
    /// The agent that acts.
    #[arg(long, default_value = "agent:default", help_heading = "Who")]
    pub(crate) agent: String,
    /// An agent that started it; once for each.
    #[arg(long, value_name = "AGENT", help_heading = "Who")]
    pub(crate) above: Vec<String>,
    /// The organisation, instead of the one of the rules.
    #[arg(
        long,
        value_name = "ORG",
        default_value = "",
        hide_default_value = true,
        help_heading = "Who"
    )]
    pub(crate) organisation: String,
    /// A label of the session, for example `untrusted`; once for each.
    #[arg(long, value_name = "LABEL", help_heading = "How")]
    pub(crate) label: Vec<String>,
    /// What set the turn off.
    #[arg(long, value_enum, default_value = "person", help_heading = "How")]
    pub(crate) trigger: Trigger,
    /// The sandbox in which it is done.
    #[arg(long, value_name = "NAME", help_heading = "How")]
    pub(crate) sandbox: Option<String>,
    /// The tool by which it is done.
    #[arg(long, value_name = "NAME", help_heading = "How")]
    pub(crate) tool: Option<String>,
    /// The host that a secret goes to.
    #[arg(long, help_heading = "How")]
    pub(crate) host: Option<String>,
    /// The port of a request.
    #[arg(long, help_heading = "How")]
    pub(crate) port: Option<u16>,
    /// The method of a request.
    #[arg(long, help_heading = "How")]
    pub(crate) method: Option<String>,
    /// The path of a request.
    #[arg(long, help_heading = "How")]
    pub(crate) path: Option<String>,
    /// When, in milliseconds since 1970, instead of now.
    #[arg(long, value_name = "MS", help_heading = "How")]
    pub(crate) at_ms: Option<u64>,
    /// The situation of a session, at the effect that `--effect` names.
    #[arg(long, value_name = "SESSION", requires = "effect", help_heading = "From a session")]
    pub(crate) session: Option<String>,
    /// The effect, as `outrigger sessions logs` numbers it.
    #[arg(
        long,
        value_name = "SEQ",
        requires = "session",
        value_parser = value_parser!(u64).range(1..),
        help_heading = "From a session"
    )]
    pub(crate) effect: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What can be done.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Action {
    AskModel,
    Provision,
    Execute,
    ReadFiles,
    WriteFiles,
    Egress,
    UseSecret,
    WriteSharedMemory,
    CallOutsideTool,
    StartSubagent,
    Approve,
}

impl From<Action> for outrigger_policy::Action {
    fn from(action: Action) -> Self {
        match action {
            Action::AskModel => Self::AskModel,
            Action::Provision => Self::Provision,
            Action::Execute => Self::Execute,
            Action::ReadFiles => Self::ReadFiles,
            Action::WriteFiles => Self::WriteFiles,
            Action::Egress => Self::Egress,
            Action::UseSecret => Self::UseSecret,
            Action::WriteSharedMemory => Self::WriteSharedMemory,
            Action::CallOutsideTool => Self::CallOutsideTool,
            Action::StartSubagent => Self::StartSubagent,
            Action::Approve => Self::Approve,
        }
    }
}

/// What sets a turn off.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Trigger {
    Person,
    Schedule,
    Webhook,
    Agent,
}

impl From<Trigger> for outrigger_policy::Trigger {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::Person => Self::Person,
            Trigger::Schedule => Self::Schedule,
            Trigger::Webhook => Self::Webhook,
            Trigger::Agent => Self::Agent,
        }
    }
}
