//! `outrigger demo`: the main job on a bundled example, without key and network.

use clap::Args;
use outrigger_repository::WorkTree;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::detach::Driver;
use super::task::{Task, start};
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{AcceptPolicy, Apply, Output};
use crate::models::DEMO_TURNS;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::session;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the repaired example in this new directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

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

pub(crate) async fn execute(paths: &Paths, demo: Demo) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let model = ModelChoice::Bundled(DEMO_TURNS);
    let (dir, apply) = match &demo.keep {
        Some(dir) => (dir.clone(), Apply { apply: Some(AcceptPolicy::Usual), branch: false }),
        None => (paths.harness().join("demo"), Apply::default()),
    };
    if demo.keep.is_some() && dir.exists() {
        return Err(Failure::new(Kind::Conflict, format!("{} is there already", dir.display()))
            .hint("Name a new directory with --keep."));
    }
    paths.prepare()?;
    let dir = unpack(&dir)
        .map_err(|error| Failure::new(Kind::Storage, format!("{}: {error}", dir.display())))?;
    let tree = WorkTree::alone(&dir);
    let guides = ProjectFile::guides(&tree);
    let mut messages: Vec<_> = guides.into_iter().map(ProjectFile::untrusted).collect();
    messages.push(session::said(TASK.to_owned()));
    let who = session::WHO.to_owned();
    let task = Task {
        who,
        tree,
        sent: None,
        messages,
        apply,
        model,
        name: None,
        lease: None,
        driver: Driver::Here,
        agent: None,
    };
    start(paths, &config, task, demo.output).await
}

/// Another demo may be reading the same files: one that is right stays untouched,
/// and one that is not is replaced whole.
fn unpack(dir: &Path) -> io::Result<PathBuf> {
    let beside = dir.with_extension(format!("{}.tmp", std::process::id()));
    for (path, mode, text) in FILES {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        if !is_right(&path, *mode, text) {
            fs::write(&beside, text)?;
            fs::set_permissions(&beside, fs::Permissions::from_mode(*mode))?;
            fs::rename(&beside, &path)?;
        }
    }
    fs::canonicalize(dir)
}

fn is_right(path: &Path, mode: u32, text: &str) -> bool {
    let found = fs::symlink_metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o777 == mode)
        && fs::read(path).is_ok_and(|found| found == text.as_bytes())
}
