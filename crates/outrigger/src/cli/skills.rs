//! `outrigger skills`, as it is typed.

use clap::Subcommand;
use std::path::PathBuf;

use super::Output;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    /// List the skills that are yours to see, with their digests, and whether sessions are
    /// told of them.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Take in a folder with a SKILL.md, in the Agent Skills format.
    Import {
        /// The folder. Its name is the skill's.
        folder: PathBuf,
        /// Onto which shelf: `user`, `organisation`, or the name of a group.
        #[arg(long, value_name = "SHELF", default_value = "user")]
        to: String,
        /// Take the place of the skill of that name.
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Write a skill as a folder, which any program that knows the format can use.
    Export {
        /// Its folder, as sessions see it, or its name, if only one has it.
        skill: String,
        /// The folder to make, or one that is there, in which it is made.
        #[arg(default_value = ".")]
        into: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Say whether a folder is a skill as the format demands, and why not.
    Validate {
        /// The folder.
        folder: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

impl Skills {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output }
            | Self::Import { output, .. }
            | Self::Export { output, .. }
            | Self::Validate { output, .. } => *output,
        }
    }
}
