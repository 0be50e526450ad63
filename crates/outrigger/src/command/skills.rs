//! `outrigger skills`: what agents can learn to do, taken in and given out as folders.

pub(super) mod folder;
mod import;
mod list;
mod own;

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::memory::MemoryContext;
use crate::config::Config;
use crate::exit::Outcome;
use crate::flags::Output;
use crate::paths::Paths;
use crate::skills::{self, failed};

pub(super) use import::{SkillHome, import};
pub(super) use list::{named, print_skills};

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
    Import(Import),
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

/// What is taken in.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The folder. Its name is the skill's.
    folder: PathBuf,
    /// Into which memory scope: `user`, `organisation`, or the name of a group.
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    to: String,
    /// Take the place of the skill of that name.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    output: Output,
}

impl Skills {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Import(Import { output, .. })
            | Self::Ls { output }
            | Self::Export { output, .. }
            | Self::Validate { output, .. } => *output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Skills) -> Outcome<u8> {
    if let Skills::Validate { folder: path, output } = asked {
        return folder::validate(&path, output);
    }
    let config = Config::of_files(paths.configs())?.skills;
    let memory = MemoryContext::open(paths, asked.output()).await?;
    if let Skills::Import(asked) = asked {
        let keys: Vec<_> = config.trusted_keys.iter().map(|key| key.0).collect();
        import(&memory, &keys, asked).await?;
        return Ok(0);
    }
    let found = skills::find(&*memory.entries, &memory.scope).await;
    let found = found.map_err(|error| failed(&error))?;
    let infos: Vec<_> = found.iter().map(|it| it.info(&memory.scope, &config)).collect();
    match asked {
        Skills::Ls { output } => print_skills(&infos, output)?,
        Skills::Export { skill, into, output } => {
            let it = named(&infos, &skill)?;
            let folder = found.iter().find(|folder| folder.path == it.path);
            let folder = folder.expect("each is told of from its folder");
            folder::write(it, &folder.files, into, output)?;
        }
        Skills::Import(_) | Skills::Validate { .. } => {}
    }
    Ok(0)
}
