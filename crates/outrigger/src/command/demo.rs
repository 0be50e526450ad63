//! `outrigger demo`: the main job on a bundled example, without key and network.

use outrigger_agent::{Author, Message};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::run::{self, Back, Task};
use crate::cli;
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::repository;

/// What the scripted model says.
pub(crate) const TURNS: &str = include_str!("../../demo/turns.toml");

const TASK: &str = "Two tests of this repository fail. Find out why and repair it.";

macro_rules! bundled {
    ($($mode:literal $path:literal)*) => {
        &[$(($path, $mode, include_str!(concat!("../../demo/repo/", $path)))),*]
    };
}

const FILES: &[(&str, u32, &str)] = bundled! {
    0o644 "AGENTS.md"
    0o644 "README.md"
    0o644 "lib/money.awk"
    0o644 "lib/report.awk"
    0o755 "test.sh"
    0o755 "till.sh"
};

pub(crate) async fn execute(paths: &Paths, demo: cli::Demo) -> Outcome<u8> {
    let mut config = Config::load(paths.configs())?;
    config.model = ModelChoice::Bundled(TURNS);
    let (dir, back) = match &demo.keep {
        Some(dir) => (dir.clone(), Back::Apply),
        None => (paths.data().join("demo"), Back::Patch),
    };
    if demo.keep.is_some() && dir.exists() {
        return Err(Failure::new(Kind::Conflict, format!("{} is there already", dir.display()))
            .hint("Name a new directory with --keep."));
    }
    let dir = unpack(&dir).map_err(|error| {
        Failure::new(Kind::Storage, format!("{}: {error}", dir.display()))
    })?;
    let mut messages = repository::guides(&dir);
    messages.push(Message {
        author: Author::Person("person:local".to_owned()),
        text: TASK.to_owned(),
    });
    run::start(paths, &config, Task { dir, messages, back }, demo.output).await
}

fn unpack(dir: &Path) -> io::Result<PathBuf> {
    for (path, mode, text) in FILES {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
    }
    fs::canonicalize(dir)
}
