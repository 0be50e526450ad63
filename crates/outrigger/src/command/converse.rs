//! `outrigger` alone on a terminal: a conversation about the directory that one is in.
//!
//! Owns where its sessions are, and how it begins and ends. Must never do what takes long before
//! there is a prompt.

mod context;
mod face;
mod history;
mod jobs;
mod own;
mod rim;
pub(super) mod source;
mod work;

use clap::Args;
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::config::Config;
use crate::conversation::Slash;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Limits, Model, Net, Output};
use crate::network::Words;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::show::Screen;
use crate::{limits, models, trust, workspace};
use context::Context;
use own::OwnSessions;
use rim::Rim;
use source::SessionSource;

pub(super) use own::{cancelled, recapitulation, went_back};
pub(super) use work::over;

/// How a conversation begins.
#[derive(Debug, Args)]
pub(crate) struct Converse {
    /// Go on with the last session of this directory.
    #[arg(long = "continue")]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) net: Net,
    #[command(flatten)]
    pub(crate) model: Model,
}

/// Converses about sessions of this machine until the person leaves.
pub(crate) async fn execute(paths: &Paths, asked: &Converse) -> Outcome<u8> {
    let mut config = Config::load(paths.configs(), &asked.model, Limits::default())?;
    let network = config.reach(&asked.net)?;
    let model = models::choose(paths, &config.model).await?;
    let (dir, files_max) = (here()?, config.workspace_files_max);
    let sessions = OwnSessions::new(paths, config, model, &dir);
    if !asked.again {
        sessions.has_model()?;
        ask_trust(paths, &dir, ProjectFile::all).await?;
    }
    let (paths, sessions) = (paths.clone(), Rc::new(sessions) as Rc<dyn SessionSource>);
    let context = Context { paths, dir, files_max, sessions, applied: Rc::default() };
    converse(context, asked.again, network).await
}

/// Converses about sessions that are elsewhere until the person leaves. `config` is this
/// machine's.
pub(super) async fn elsewhere(
    paths: &Paths,
    config: &Config,
    dir: PathBuf,
    sessions: Rc<dyn SessionSource>,
    asked: &Converse,
) -> Outcome<u8> {
    if !asked.again {
        ask_trust(paths, &dir, ProjectFile::guides).await?;
    }
    let (paths, files_max) = (paths.clone(), config.workspace_files_max);
    let context = Context { paths, dir, files_max, sessions, applied: Rc::default() };
    converse(context, asked.again, asked.net.words()?).await
}

/// The directory that a conversation is about.
pub(super) fn here() -> Outcome<PathBuf> {
    std::fs::canonicalize(".").map_err(|error| Failure::from_error(Kind::NotFound, &error))
}

/// Asks what files of the directory are trusted, before keys are heard one by one.
async fn ask_trust<F: IntoIterator<Item = ProjectFile>>(
    paths: &Paths,
    dir: &Path,
    files: impl Fn(&outrigger_repository::WorkTree) -> F,
) -> Outcome {
    let screen = Screen::new(Output { json: None, quiet: false });
    let tree = workspace::tree(dir)?;
    trust::ask(paths, &tree.top, files(&tree), &screen).await.map(drop)
}

/// Converses until the person leaves. `network`: what a session that goes on may reach as well.
async fn converse(context: Context, again: bool, network: Option<Words>) -> Outcome<u8> {
    let mut rim = Rim::new(context, again)?;
    if again {
        rim.later.extend(network.map(|words| Slash::Net(Some(words))));
    }
    let whole = async move {
        let ended = rim.run().await;
        let rows = rim.farewell().await;
        let Rim { face, conversation, asides, .. } = rim;
        face.close(&conversation, &rows);
        // The disks of a session that rests are kept; that it rests can wait for the next time.
        let rests = asides.for_each(|_| std::future::ready(()));
        drop(tokio::time::timeout(Duration::from_millis(limits::CLOSE_MS_MAX), rests).await);
        ended
    };
    // The jobs are tasks of it.
    tokio::task::LocalSet::new().run_until(whole).await
}
