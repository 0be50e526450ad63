//! `outrigger sandbox`, as it is typed.

use clap::{Args, Subcommand, value_parser};
use std::path::PathBuf;

use super::Output;

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
    /// List sandboxes with their state.
    Ls {
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

#[derive(Debug, Subcommand)]
pub(crate) enum Snapshots {
    /// List snapshots.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Forget snapshots. Sandboxes and snapshots that stand on them stay as they are.
    Rm {
        /// The snapshots.
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Templates {
    /// List templates.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Remove templates. Sandboxes that stand on them stay as they are.
    Rm {
        /// The templates.
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What it is called; otherwise a name is made up.
    pub(crate) name: Option<String>,
    /// The root filesystem.
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) template: Option<String>,
    /// Begin with the disk of a snapshot.
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) from: Option<String>,
    /// Memory of all processes together.
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(16..=16_777_216), help_heading = "Limits")]
    pub(crate) memory_mib: Option<u64>,
    /// Processes and threads at once.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(8..=4_194_304), help_heading = "Limits")]
    pub(crate) pids: Option<u32>,
    /// Processor time, in thousandths of a core.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(10..=1_024_000), help_heading = "Limits")]
    pub(crate) cpu_millis: Option<u32>,
    /// What its disk may hold.
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(1..=1_073_741_824), help_heading = "Limits")]
    pub(crate) disk_mib: Option<u64>,
    /// The least isolation that is accepted.
    #[arg(long, value_enum, value_name = "CLASS", help_heading = "Limits")]
    pub(crate) isolation_min: Option<crate::config::Least>,
    /// Suspend it when it was not used for so long.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=315_360_000), help_heading = "Lifetime")]
    pub(crate) idle_seconds: Option<u64>,
    /// Destroy it so long after it was made, whatever runs in it.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=315_360_000), help_heading = "Lifetime")]
    pub(crate) age_seconds: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The sandbox.
    pub(crate) name: String,
    /// Where to run it, absolute or beneath the workspace.
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Variables of its environment.
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Kill it with all its processes after so long. The sandbox has as long to answer at all.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Give it a file, or standard input for `-`, as its standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Its name within the sandbox: one that ran already is not run again, its outcome is shown.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// A line for the sandbox's shell instead of a program and its arguments.
    #[arg(
        long,
        short = 'c',
        value_name = "LINE",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    pub(crate) line: Option<String>,
    /// The program and its arguments, after `--`.
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Sandbox {
    pub(super) fn output(&self) -> Option<Output> {
        match self {
            Self::Create(create) => Some(create.output),
            Self::Exec(exec) => Some(exec.output),
            Self::Shell { .. } => None,
            Self::Ls { output }
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
