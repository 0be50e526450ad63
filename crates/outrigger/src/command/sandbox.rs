//! `outrigger sandbox`: sandboxes without an agent.
//!
//! Owns what each verb does, over the port: the same for every backend. What comes
//! out of a sandbox is hostile, and made harmless before a terminal sees it.

pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod exec;
pub(crate) mod listing;
mod network;
pub(crate) mod raw_terminal;
mod shell;
pub(crate) mod snapshot;
pub(crate) mod templates;

use clap::{Args, Subcommand};
use outrigger_sandbox::Suspend;
use outrigger_sandbox_native::{Registry, Transport};
use serde_json::json;
use std::path::PathBuf;

use crate::config::Config;
use crate::exit::Outcome;
use crate::flags::Output;
use crate::paths::Paths;
use crate::sandbox::failed;
use crate::show::{self, Screen};
use context::{SandboxContext, removed, sandbox_id};
use create::Create;
use exec::Exec;
use listing::Which;
use snapshot::Snapshots;
use templates::Templates;

/// Sandboxes that no agent drives.
#[derive(Debug, Args)]
pub(crate) struct Sandboxes {
    /// As the configuration has it for the sandbox of that name: its backend, its
    /// template, its limits. Otherwise for the first.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) like: Option<String>,
    #[command(subcommand)]
    pub(crate) verb: Sandbox,
}

/// What to do with them.
#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    /// Make a sandbox and print its name. One of that name that is there is attached to, and resumed.
    Create(Create),
    /// List sandboxes with their state: those that were made here by hand.
    Ls {
        /// Also those of sessions.
        #[arg(long, short = 'a')]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Run a command in a sandbox; it ends with the command's own exit code.
    Exec(Exec),
    /// Open a shell on a terminal in a sandbox.
    Shell {
        /// The sandbox.
        name: String,
    },
    /// Copy files into or out of a sandbox: one side is `NAME:PATH`.
    Cp {
        /// What to copy: a file or a directory, or `-` for standard input.
        from: String,
        /// Where to, or `-` for standard output. Into it, if it is a directory that exists or
        /// ends with `/`.
        to: String,
        #[command(flatten)]
        output: Output,
    },
    /// Stop everything in a sandbox until it is next used; its disk is kept.
    Suspend {
        /// The sandbox.
        name: String,
        /// Keep its processes in memory instead of ending them.
        #[arg(long)]
        frozen: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Keep a sandbox's disk as it is now, to restore and fork from.
    Snapshot {
        /// The sandbox.
        name: String,
        /// What the snapshot is called; otherwise a name is made up and printed.
        snapshot: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Look at snapshots and forget them.
    #[command(subcommand)]
    Snapshots(Snapshots),
    /// Make a template of an image: a tar of `docker save`, of an OCI layout, or of a whole
    /// root filesystem.
    Import {
        /// What the template is called.
        template: String,
        /// The archive, or `-` for standard input.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Make a template of an image of a registry. Anonymously; by tag or by digest.
    Pull {
        /// What the template is called.
        template: String,
        /// The image, for example `registry.example.org/team/tools:1.2`.
        image: String,
        /// Speak to the registry without encryption.
        #[arg(long)]
        http: bool,
        /// A host to which the registry may lead although it is not public, or without
        /// encryption: where it keeps blobs, or has tokens given.
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Look at templates and remove them.
    #[command(subcommand)]
    Templates(Templates),
    /// Make another sandbox from the disk of one, as it is now.
    Fork {
        /// The sandbox.
        name: String,
        /// What the new one is called; otherwise a name is made up and printed.
        new: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// End sandboxes and delete their disks. Snapshots of them stay.
    Rm {
        /// The sandboxes.
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
}

impl Sandbox {
    pub(crate) fn output(&self) -> Option<Output> {
        match self {
            Self::Create(create) => Some(create.output),
            Self::Exec(exec) => Some(exec.output),
            Self::Shell { .. } => None,
            Self::Ls { output, .. }
            | Self::Cp { output, .. }
            | Self::Suspend { output, .. }
            | Self::Snapshot { output, .. }
            | Self::Snapshots(Snapshots::Ls { output } | Snapshots::Rm { output, .. })
            | Self::Import { output, .. }
            | Self::Pull { output, .. }
            | Self::Templates(Templates::Ls { output } | Templates::Rm { output, .. })
            | Self::Fork { output, .. }
            | Self::Rm { output, .. } => Some(*output),
        }
    }
}

/// Does what the command line says.
pub(crate) async fn execute(paths: &Paths, asked: Sandboxes) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    paths.prepare()?;
    // Images become templates of the native backend, whatever the first sandbox is.
    match asked.verb {
        Sandbox::Import { template, file, output } => {
            templates::import(paths, &config, &template, &file, output).await
        }
        Sandbox::Pull { template, image, http, host, output } => {
            let transport = if http { Transport::Http } else { Transport::Https };
            let source = Registry { reference: image, transport, hosts: host };
            templates::pull(paths, &config, &template, &source, output).await
        }
        Sandbox::Templates(Templates::Ls { output }) => templates::ls(paths, &config, output).await,
        Sandbox::Templates(Templates::Rm { names, output }) => {
            templates::remove(paths, &config, &names, output).await
        }
        verb => use_sandboxes(paths, config, asked.like.as_deref(), verb).await,
    }
}

async fn use_sandboxes(
    paths: &Paths,
    config: Config,
    like: Option<&str>,
    verb: Sandbox,
) -> Outcome<u8> {
    let sandboxes = SandboxContext::open(paths, config, like).await?;
    match verb {
        Sandbox::Create(create) => create::create(&sandboxes, create).await,
        Sandbox::Ls { all, output } => {
            let which = if all { Which::All } else { Which::Own };
            listing::sandboxes(&sandboxes, which, output).await
        }
        Sandbox::Exec(asked) => exec::execute(&sandboxes, asked).await,
        Sandbox::Shell { name } => shell::open(&sandboxes, &name).await,
        Sandbox::Cp { from, to, output } => copy::execute(&sandboxes, &from, &to, output).await,
        Sandbox::Suspend { name, frozen, output } => {
            suspend(&sandboxes, &name, if frozen { Suspend::Frozen } else { Suspend::Cold }, output)
                .await
        }
        Sandbox::Snapshot { name, snapshot, output } => {
            snapshot::snapshot(&sandboxes, &name, snapshot, output).await
        }
        Sandbox::Snapshots(Snapshots::Ls { output }) => {
            listing::snapshots(&sandboxes, output).await
        }
        Sandbox::Snapshots(Snapshots::Rm { names, output }) => {
            snapshot::forget(&sandboxes, &names, output).await
        }
        Sandbox::Fork { name, new, output } => create::fork(&sandboxes, &name, new, output).await,
        Sandbox::Rm { names, output } => remove(&sandboxes, &names, output).await,
        Sandbox::Import { .. } | Sandbox::Pull { .. } | Sandbox::Templates(_) => {
            unreachable!("templates are no sandboxes, and were taken care of before")
        }
    }
}

async fn suspend(
    sandboxes: &SandboxContext,
    name: &str,
    how: Suspend,
    output: Output,
) -> Outcome<u8> {
    let id = sandbox_id(name)?;
    sandboxes.backend.suspend(&id, how).await.map_err(|error| failed(&error))?;
    network::close(sandboxes, &id).await?;
    if output.json.is_some() {
        show::line(&json!({ "type": "suspended", "sandbox": name, "state": how }))?;
    }
    Ok(0)
}

async fn remove(sandboxes: &SandboxContext, names: &[String], output: Output) -> Outcome<u8> {
    let mut screen = Screen::new(output);
    // A name that is wrong takes none of the others with it.
    let mut ids = Vec::new();
    for name in names {
        let id = sandbox_id(name)?;
        sandboxes.ensure_there(&id).await?;
        ids.push(id);
    }
    for (name, id) in names.iter().zip(ids) {
        let what = format!("deleting {name}");
        let gone = screen.during(&what, sandboxes.backend.destroy(&id)).await;
        gone.map_err(|error| failed(&error))?;
        network::set(sandboxes, &id, &[]).await?;
    }
    removed(names, output)
}
