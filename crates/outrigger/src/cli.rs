//! The command line, as it is typed.

mod audit;
mod budget;
mod memory;
mod policy;
mod sandbox;
mod sessions;
mod skills;
mod tools;
mod upkeep;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use outrigger_agent::Limit;
use std::path::PathBuf;

pub(crate) use audit::{Audit, Verify};
pub(crate) use budget::{Budget, Set as BudgetSet};
pub(crate) use memory::{Derived, Memory, Proposals, Shelf};
pub(crate) use policy::{Explain, Policy};
pub(crate) use sandbox::{Create, Exec, Sandbox, Sandboxes, Snapshots, Templates};
pub(crate) use sessions::Sessions;
pub(crate) use skills::Skills;
pub(crate) use tools::Tools;
pub(crate) use upkeep::{Age, Backup, Gc, Restore};

/// Runs AI agents with the harness outside the sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "outrigger",
    version,
    max_term_width = 100,
    after_help = "Begin with `outrigger demo`: it needs no key and no network.",
    after_long_help = crate::exit::Kind::help()
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Read this configuration instead of the user's and the system's.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "OUTRIGGER_CONFIG",
        hide_env_values = true,
        help_heading = "Everywhere",
        display_order = 900
    )]
    pub(crate) config: Option<PathBuf>,
    /// Keep sessions there instead of in `$XDG_DATA_HOME/outrigger`.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "OUTRIGGER_DATA_DIR",
        hide_env_values = true,
        help_heading = "Everywhere",
        display_order = 901
    )]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let an agent do a task in a copy of a directory, and show what it changed.
    Run(Run),
    /// Show what `run` does, on a bundled example with a scripted model: no key, no network.
    Demo(Demo),
    /// Look at sessions, go on with them, or end them.
    #[command(subcommand)]
    Sessions(Sessions),
    /// Show what waits for a person, with its exact arguments and what it would change.
    Inbox(Inbox),
    /// Let something be done that the rules ask about, once, and go on with its session.
    Approve(Approve),
    /// Refuse something that the rules ask about; the model is told why.
    Deny(Deny),
    /// Say and show what users and the organisation may spend, and stop them.
    #[command(subcommand)]
    Budget(Budget),
    /// Check that what is stored is what was written, and prove it to others.
    #[command(subcommand)]
    Audit(Audit),
    /// Read, search and change what agents and people wrote down, with its history.
    #[command(subcommand)]
    Memory(Memory),
    /// Take in, give out and look at what agents can learn to do.
    #[command(subcommand)]
    Skills(Skills),
    /// Make and use sandboxes without an agent.
    Sandbox(Sandboxes),
    /// Look at the tools of servers outside, and trust what they say of themselves.
    #[command(subcommand)]
    Tools(Tools),
    /// Check, explain and test the rules that every step is judged by.
    #[command(subcommand)]
    Policy(Policy),
    /// Say what this machine offers and what is missing, and what is kept on it.
    Doctor(Doctor),
    /// Let go of what nothing needs any more: contents that no session names, what is kept
    /// of disks for too long, patches of sessions that are gone, and old sessions if asked.
    Gc(Gc),
    /// Copy all sessions, memory, patches and the audit log into one file, while others work.
    Backup(Backup),
    /// Put what a backup has into an empty data directory, after all of it was verified.
    Restore(Restore),
}

/// What a program can be told in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Json {
    /// One object at the end.
    Object,
    /// One event a line as it happens, then the object.
    Events,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON on standard output: one object at the end, or each event as well.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "object", value_name = "FORM", help_heading = "Output")]
    pub(crate) json: Option<Json>,
    /// Show neither steps nor progress, only the result.
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// What is written back without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accepted {
    /// What programs run or obey by themselves is asked about on a terminal, and is
    /// refused elsewhere.
    Usual,
    /// Those are accepted. What git would take for a repository, and links that lead out, are
    /// refused all the same.
    All,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Apply {
    /// Write the changes back at the end, unless the files changed meanwhile.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "usual", value_name = "WHICH")]
    pub(crate) apply: Option<Accepted>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to do, or `-` to read it from standard input. Piped standard input is
    /// otherwise added as context, which the model is told to treat as data.
    pub(crate) task: String,
    /// The directory to work on. Its tracked, changed and not ignored files are copied;
    /// nothing in it changes unless `--apply` is given.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) apply: Apply,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Default, Clone, Copy, Args)]
pub(crate) struct Limits {
    /// Stop the turn after so many model calls and tool calls.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_steps: Option<u64>,
    /// Stop before the session takes more tokens, input and output together.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_tokens: Option<u64>,
    /// Stop before the session costs more than so many US dollars.
    #[arg(long, value_name = "AMOUNT", value_parser = budget::dollars, help_heading = "Limits")]
    pub(crate) max_dollars: Option<crate::config::Dollars>,
    /// Stop before the session's model calls and tool calls take more seconds.
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(1..=1 << 50), help_heading = "Limits")]
    pub(crate) max_seconds: Option<u64>,
    /// Stop before its commands take more seconds of processor time.
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(1..=1 << 50), help_heading = "Limits")]
    pub(crate) max_cpu_seconds: Option<u64>,
    /// Stop before it sends more bytes to tools outside.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_egress_bytes: Option<u64>,
}

impl Limits {
    /// What they say of the session's budget; `max_steps` is of a turn.
    pub(crate) fn budget(self) -> Limit {
        let Self { max_tokens, max_seconds, max_cpu_seconds, max_egress_bytes, .. } = self;
        let amounts = [None, max_tokens, max_seconds, max_cpu_seconds, max_egress_bytes];
        crate::config::limit(amounts, self.max_dollars)
    }
}

#[derive(Debug, Default, Clone, Args)]
pub(crate) struct Model {
    /// The model, as its provider names it.
    #[arg(
        long,
        value_name = "NAME",
        env = "OUTRIGGER_MODEL",
        hide_env_values = true,
        help_heading = "Model"
    )]
    pub(crate) model: Option<String>,
    /// How the provider is spoken to.
    #[arg(
        long,
        value_enum,
        env = "OUTRIGGER_PROVIDER",
        hide_env_values = true,
        help_heading = "Model"
    )]
    pub(crate) provider: Option<crate::config::Provider>,
    /// Where the provider is, instead of its own address.
    #[arg(
        long,
        value_name = "URL",
        env = "OUTRIGGER_BASE_URL",
        hide_env_values = true,
        help_heading = "Model"
    )]
    pub(crate) base_url: Option<String>,
    /// A file of turns to play instead of asking a model, whatever else names one.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) script: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the repaired example in this new directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Inbox {
    /// Only this one, and what it would make of a file.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Tell those whom `[notify]` names of everything that waits, but for what has yet
    /// to escalate.
    #[arg(long, conflicts_with = "id")]
    pub(crate) remind: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// What waits, as `outrigger inbox` names it; the session may be named by its beginning.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// What `outrigger inbox ID` said of the file that it changes: if the file changed
    /// since, nothing is approved.
    #[arg(long, value_name = "SEEN")]
    pub(crate) seen: Option<String>,
    /// Do it with these arguments instead, a JSON object. The rules are asked about that
    /// anew, and the model is told.
    #[arg(long, value_name = "JSON", conflicts_with = "seen")]
    pub(crate) arguments: Option<String>,
    /// Only answer; `outrigger sessions resume` goes on.
    #[arg(long)]
    pub(crate) later: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// What waits, as `outrigger inbox` names it; the session may be named by its beginning.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Why, for the model.
    #[arg(long, short = 'm', value_name = "TEXT", default_value = "no reason was given")]
    pub(crate) reason: String,
    /// Only answer; `outrigger sessions resume` goes on.
    #[arg(long)]
    pub(crate) later: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Command {
    /// Whether errors are told as JSON as well.
    pub(crate) fn wants_json(&self) -> bool {
        let output = match self {
            Self::Sandbox(asked) => {
                return asked.verb.output().is_some_and(|output| output.json.is_some());
            }
            Self::Audit(asked) => asked.output(),
            Self::Budget(asked) => asked.output(),
            Self::Tools(asked) => asked.output(),
            Self::Memory(asked) => asked.output(),
            Self::Skills(asked) => asked.output(),
            Self::Run(run) => run.output,
            Self::Policy(asked) => asked.output(),
            Self::Demo(demo) => demo.output,
            Self::Doctor(doctor) => doctor.output,
            Self::Gc(gc) => gc.output,
            Self::Backup(asked) => asked.output,
            Self::Restore(asked) => asked.output,
            Self::Inbox(inbox) => inbox.output,
            Self::Approve(approve) => approve.output,
            Self::Deny(deny) => deny.output,
            Self::Sessions(asked) => asked.output(),
        };
        output.json.is_some()
    }
}
