//! The command line, as it is typed. The arguments of each command stand beside what it does.

use clap::{Args, Parser, Subcommand};
use outrigger_client::ServerClient;
use std::path::PathBuf;

use crate::command::{
    Agents, Approve, Attach, Audit, Backup, Budget, Completions, Context, Converse, Demo, Deny,
    DetachedRun, Doctor, Egress, Gc, Inbox, Init, Keys, Login, Logout, ManPages, Memory, Models,
    Policy, PruneSessions, RemoveSessions, Restore, Run, Sandboxes, Secrets, Serve, Sessions,
    Skills, StopSessions, Store, Tools, Trust,
};
use crate::config::ModelFile;
use crate::confinement::WorkPlace;
use crate::exit::Outcome;
use crate::paths::Paths;
use crate::servers;
use crate::terminal::{self, Ability};

/// Runs AI agents with the harness outside the sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "outrigger",
    version,
    max_term_width = 100,
    after_help = "Alone on a terminal it begins a conversation about the directory that you are in.\nBegin with `outrigger demo`: it needs no key and no network.",
    after_long_help = crate::exit::Kind::help()
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(flatten)]
    pub(crate) converse: Converse,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
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
    /// Keep the store in this database of PostgreSQL, as
    /// `postgres:///outrigger?host=/run/postgresql`, instead of in a file of SQLite.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "OUTRIGGER_DATABASE",
        hide_env_values = true,
        help_heading = "Everywhere",
        display_order = 902
    )]
    pub(crate) database: Option<String>,
    /// Go to this server (`outrigger context ls`), or with `local` to none.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "OUTRIGGER_SERVER",
        hide_env_values = true,
        help_heading = "Everywhere",
        display_order = 903
    )]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let an agent do a task in a copy of a directory, and show what it changed.
    Run(Box<Run>),
    /// Show what `run` does, on a bundled example with a scripted model: no key, no network.
    Demo(Demo),
    /// Say which keys and local servers were found, and write down which model is asked.
    Init(Init),
    /// List the models that providers offer, with what they cost.
    Models(Models),
    /// Serve a page and an API on which people start agents, see what they do, and answer them.
    Serve(Box<Serve>),
    /// Log in to a server, on which sessions are begun from then on.
    Login(Login),
    /// Log out of a server; its key lets nobody in any more.
    Logout(Logout),
    /// List the servers that you are logged in to, or choose where commands go.
    #[command(subcommand)]
    Context(Context),
    /// Make, list and revoke what lets people and programs in there.
    #[command(subcommand)]
    Keys(Keys),
    /// Show a session live, and tell when it ends or waits for a person.
    Attach(Attach),
    /// Stop what sessions do now. They can go on later.
    Stop(StopSessions),
    /// Remove sessions that are over.
    Rm(RemoveSessions),
    /// Remove all sessions that were not touched for some time and in which nothing runs or
    /// waits for a person, interrupted ones among them.
    Prune(PruneSessions),
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
    /// List the agents that can be started, and keep others.
    #[command(subcommand)]
    Agents(Agents),
    /// Make and use sandboxes without an agent.
    Sandbox(Sandboxes),
    /// Look at what commands reached outside, over all sessions.
    #[command(subcommand)]
    Egress(Egress),
    /// Keep tokens and passwords that commands use and never see.
    #[command(subcommand)]
    Secrets(Secrets),
    /// Look at the files by which a repository speaks to agents, and say whether they are
    /// trusted.
    Trust(Trust),
    /// Look at the tools of servers outside, and trust what they say of themselves.
    #[command(subcommand)]
    Tools(Tools),
    /// Check, explain and test the rules that every step is judged by.
    #[command(subcommand)]
    Policy(Policy),
    /// Say what this machine offers and what is missing, and what is kept on it.
    Doctor(Doctor),
    /// Delete what nothing needs any more: contents that no session refers to, old snapshots
    /// of disks, patches of removed sessions, and old sessions if asked.
    Gc(Gc),
    /// Copy all sessions, memory, patches and the audit log into one file, while others work.
    Backup(Backup),
    /// Put what a backup has into an empty data directory, after all of it was verified.
    Restore(Restore),
    /// Bring everything that is kept into another database.
    #[command(subcommand)]
    Store(Store),
    /// Print what a shell needs to complete commands and options.
    Completions(Completions),
    /// Drive a session that `run -d` began.
    #[command(hide = true)]
    Detached(DetachedRun),
    /// Write a page for man(1) of each command, for whoever packages the program.
    #[command(name = "man", hide = true)]
    ManPages(ManPages),
}

impl Cli {
    /// What the command line says of the model, where it is a command that may ask
    /// one, or a server of tools.
    pub(crate) fn model(&self) -> Option<ModelFile> {
        let Some(command) = &self.command else {
            return Some(ModelFile::flags(&self.converse.model));
        };
        match command {
            Command::Run(run) => Some(ModelFile::flags(&run.model)),
            Command::Serve(asked) => Some(ModelFile::flags(&asked.model)),
            Command::Init(asked) => Some(ModelFile::flags(&asked.model)),
            Command::Models(asked) => Some(ModelFile::flags(&asked.model)),
            Command::Sessions(Sessions::Resume { model, .. }) => Some(ModelFile::instead(model)),
            Command::Sessions(_)
            | Command::Attach(_)
            | Command::Approve(_)
            | Command::Deny(_)
            | Command::Detached(_)
            | Command::Doctor(_)
            | Command::Tools(_) => Some(ModelFile::default()),
            _ => None,
        }
    }

    /// Begins to listen, where the command serves: a confined process can't.
    pub(crate) fn listen(&mut self) -> Outcome {
        match &mut self.command {
            Some(Command::Serve(asked)) => asked.listen(),
            _ => Ok(()),
        }
    }

    /// What the harness works in, where the command drives a session or has a program started
    /// that the configuration names: then it is confined to that.
    pub(crate) fn works_in(&self) -> Option<WorkPlace> {
        let Some(command) = &self.command else {
            let converses = terminal::ability() != Ability::None;
            return converses.then(|| WorkPlace::Directory(PathBuf::from(".")));
        };
        Some(match command {
            Command::Run(run) => WorkPlace::Directory(run.dir.clone()),
            Command::Serve(asked) => WorkPlace::Directory(asked.dir.clone()),
            Command::Detached(asked) => WorkPlace::Directory(asked.dir.clone()),
            Command::Sessions(Sessions::Say { session, .. } | Sessions::Resume { session, .. }) => {
                WorkPlace::Session(session.clone())
            }
            Command::Approve(asked) => WorkPlace::Approval(asked.id.clone()),
            Command::Deny(asked) => WorkPlace::Approval(asked.id.clone()),
            Command::Inbox(asked) if asked.remind => WorkPlace::Nowhere,
            _ => return None,
        })
    }
}

/// Where a command is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On this machine, whatever server is chosen.
    Here,
    /// Where sessions are.
    Sessions,
}

impl Cli {
    /// The server that the command goes to; nothing for this machine.
    pub(crate) fn server(&self, paths: &Paths) -> Outcome<Option<ServerClient>> {
        let place = self.command.as_ref().map_or(Place::Sessions, Command::place);
        match place {
            Place::Here => Ok(None),
            Place::Sessions => servers::chosen(paths, self.global.server.as_deref()),
        }
    }
}

impl Command {
    fn place(&self) -> Place {
        match self {
            Self::Run(_)
            | Self::Attach(_)
            | Self::Stop(_)
            | Self::Rm(_)
            | Self::Prune(_)
            | Self::Sessions(_)
            | Self::Inbox(_)
            | Self::Approve(_)
            | Self::Deny(_)
            | Self::Budget(_)
            | Self::Audit(_)
            | Self::Memory(_)
            | Self::Skills(_)
            | Self::Agents(_)
            | Self::Egress(_)
            | Self::Sandbox(_)
            | Self::Secrets(_) => Place::Sessions,
            Self::Demo(_)
            | Self::Init(_)
            | Self::Models(_)
            | Self::Serve(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Context(_)
            | Self::Keys(_)
            | Self::Trust(_)
            | Self::Tools(_)
            | Self::Policy(_)
            | Self::Doctor(_)
            | Self::Gc(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Store(_)
            | Self::Completions(_)
            | Self::Detached(_)
            | Self::ManPages(_) => Place::Here,
        }
    }

    /// Whether errors are told as JSON as well.
    pub(crate) fn wants_json(&self) -> bool {
        let output = match self {
            Self::Sandbox(asked) => {
                return asked.verb.output().is_some_and(|output| output.json.is_some());
            }
            Self::Audit(asked) => asked.output(),
            Self::Budget(asked) => asked.output(),
            Self::Egress(asked) => asked.output(),
            Self::Keys(asked) => asked.output(),
            Self::Login(asked) => asked.output,
            Self::Logout(asked) => asked.output,
            Self::Context(asked) => asked.output(),
            Self::Secrets(asked) => asked.output(),
            Self::Tools(asked) => asked.output(),
            Self::Trust(asked) => asked.output(),
            Self::Memory(asked) => asked.output(),
            Self::Skills(asked) => asked.output(),
            Self::Agents(asked) => asked.output(),
            Self::Run(run) => run.output,
            Self::Serve(asked) => asked.output,
            Self::Attach(asked) => asked.output,
            Self::Stop(asked) => asked.output,
            Self::Rm(asked) => asked.output,
            Self::Prune(asked) => asked.output,
            Self::Policy(asked) => asked.output(),
            Self::Demo(demo) => demo.output,
            Self::Doctor(doctor) => doctor.output,
            Self::Init(asked) => asked.output,
            Self::Models(asked) => asked.output,
            Self::Gc(gc) => gc.output,
            Self::Backup(asked) => asked.output,
            Self::Restore(asked) => asked.output,
            Self::Store(asked) => asked.output(),
            Self::Inbox(inbox) => inbox.output,
            Self::Approve(approve) => approve.output,
            Self::Deny(deny) => deny.output,
            Self::Sessions(asked) => asked.output(),
            Self::Completions(_) | Self::Detached(_) | Self::ManPages(_) => return false,
        };
        output.json.is_some()
    }
}
