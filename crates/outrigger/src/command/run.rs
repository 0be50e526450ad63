//! `outrigger run`: an agent does a task in a copy of a directory.

use clap::Args;
use outrigger_agent::{Author, Message, SessionId};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::detach::Driver;
use super::sessions::{GoOn, More, go_on};
use super::task::{self, Task};
use crate::agents::{self, Agent, AgentStart};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Apply, Limits, Model, Net, Output, Pictures};
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::show::Screen;
use crate::trust::{self, JudgedFile};
use crate::{compose, limits, models, picture, session, workspace};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to do, or `-` to read it from standard input. Piped standard input is
    /// otherwise added as context, which the model is told to treat as data. May be left out with
    /// an agent that has a task of its own.
    #[arg(required_unless_present = "agent")]
    pub(crate) task: Option<String>,
    /// Start this agent, of those that `outrigger agents ls` lists.
    #[arg(long, value_name = "NAME", conflicts_with = "goes_on")]
    pub(crate) agent: Option<String>,
    /// The directory to work on. The repository that it is a part of is copied, as far as it
    /// is tracked, changed or not ignored, and commands begin in the directory. Nothing changes
    /// outside of the copy unless `--apply` is given.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Bring a folder of it along as it is, though git ignores it; what changes in it is not
    /// written back. May be given several times.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) include: Vec<PathBuf>,
    /// Work in this image instead of over this machine's tools: a template that is there, a
    /// `devcontainer.json` or a Dockerfile of the directory, or an image of a registry, which is
    /// pulled once. With Docker an image that the engine has.
    #[arg(long, value_name = "IMAGE", conflicts_with = "goes_on")]
    pub(crate) image: Option<String>,
    /// Say it in the newest session of this directory, which goes on with its own model and
    /// limits, instead of in a new one.
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["name", "script", "Limits"])]
    pub(crate) goes_on: bool,
    /// What the session is called, instead of a name that is made up.
    #[arg(long, value_name = "NAME", value_parser = session::name)]
    pub(crate) name: Option<SessionId>,
    /// Leave it to a process of its own, and print the session's name at once: `outrigger
    /// attach` shows what it does, and tells when it ends or waits.
    #[arg(long, short = 'd')]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) net: Net,
    #[command(flatten)]
    pub(crate) shown: Pictures,
    #[command(flatten)]
    pub(crate) apply: Apply,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) async fn execute(paths: &Paths, run: Run) -> Outcome<u8> {
    let mut config = Config::load(paths.configs(), &run.model, run.limits)?;
    let start = match &run.agent {
        Some(name) => Some(AgentStart { agent: agent(paths, &config, name).await?, trigger: None }),
        None => None,
    };
    if let Some(AgentStart { agent, .. }) = &start {
        agent.settle(&mut config);
        let own = agent.definition.model.clone().filter(|_| run.model.model.is_none());
        config.model.name = own.or(config.model.name);
    }
    let model = match run.goes_on {
        true => None,
        false => Some(models::choose(paths, &config.model).await?),
    };
    let driver = if run.detach { Driver::Detached } else { Driver::Here };
    let dir = std::fs::canonicalize(&run.dir).map_err(|error| {
        Failure::new(Kind::NotFound, format!("{}: {error}", run.dir.display()))
            .hint("Name a directory that is there with --dir.")
    })?;
    for folder in run.include {
        let within = dir.join(&folder);
        if !within.is_dir() || folder.is_absolute() {
            let text = format!("{} is no folder of {}", folder.display(), dir.display());
            return Err(Failure::new(Kind::NotFound, text)
                .hint("Name folders by their paths in the directory."));
        }
        config.include.push(folder);
    }
    let mut screen = Screen::new(run.output);
    if let Some(image) = run.image {
        config.stand_on(&image);
    }
    let network = config.reach(&run.net)?;
    let pictures = picture::named(&run.shown.picture)?;
    let tree = workspace::tree(&dir)?;
    let mut messages = Vec::new();
    if model.is_some() {
        let judged = trust::settle(paths, &tree.top, ProjectFile::all(&tree), &screen).await?;
        messages.extend(judged.into_iter().filter_map(JudgedFile::message));
    }
    let (text, context) = task_and_context(run.task.as_deref(), &mut screen).await?;
    let text = match &start {
        Some(start) => start.agent.task(text)?,
        None => text,
    };
    let message = |text| Message::new(Author::Untrusted(STDIN.to_owned()), text);
    messages.extend(context.map(message));
    let pictures = picture::keep(paths, pictures).await?;
    messages.push(Message { pictures, ..session::said(text) });
    let Some(model) = model else {
        let store = compose::store(paths).await?;
        let last = session::last_in(&store, &dir).await?.ok_or_else(|| no_session(&dir))?;
        drop(store);
        let how = GoOn { apply: run.apply, more: More::Said(messages), network, driver };
        return go_on(paths, last.session.as_str(), how, run.output).await;
    };
    let (who, apply, name) = (session::WHO.to_owned(), run.apply, run.name);
    let (sent, lease) = (None, None);
    let task = Task { who, tree, sent, messages, apply, model, name, lease, driver, agent: start };
    task::start(paths, &config, task, run.output).await
}

/// An agent of this installation.
async fn agent(paths: &Paths, config: &Config, name: &str) -> Outcome<Agent> {
    let scope = compose::scope(paths, config, session::WHO)?;
    let scope = scope.expect("the person of this machine is one");
    let store = compose::store(paths).await?;
    agents::named(&*store.entries, &scope, config, name).await
}

/// What piped standard input is called.
pub(crate) const STDIN: &str = "stdin";

/// The task, and what is piped beside it.
pub(crate) async fn task_and_context(
    task: Option<&str>,
    screen: &mut Screen,
) -> Outcome<(String, Option<String>)> {
    let reading = tokio::task::spawn_blocking(piped);
    let read = screen.during("reading standard input to its end", reading).await;
    let read = read.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))??;
    let (text, context) = match task {
        Some("-") => (read.unwrap_or_default(), None),
        task => (task.unwrap_or_default().to_owned(), read),
    };
    if task.is_some() && text.trim().is_empty() {
        return Err(Failure::new(Kind::Usage, "the task is empty")
            .hint("Say what to do: `outrigger run \"Repair the failing test\"`, or `-` and the task on standard input."));
    }
    Ok((text, context))
}

pub(crate) fn no_session(dir: &Path) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no session of {} yet", dir.display()))
        .hint("Without --continue a new one begins; `outrigger sessions ls` lists all of them.")
}

/// Piped standard input.
fn piped() -> Outcome<Option<String>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() || !has_input() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(limits::STDIN_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(Kind::Usage, format!("standard input: {error}")))?;
    if bytes.len() as u64 > limits::STDIN_BYTES_MAX {
        let limit = limits::STDIN_BYTES_MAX >> 20;
        return Err(Failure::new(Kind::Usage, format!("standard input has more than {limit} MiB"))
            .hint("Put it into a file of the directory and name it in the task."));
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Only a pipe, a socket or a file has context in it. It is read to its end, so who
/// inherits a pipe that nobody closes gives `< /dev/null` instead.
fn has_input() -> bool {
    use rustix::fs::{FileType, fstat};
    fstat(std::io::stdin()).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::RegularFile | FileType::Socket
        )
    })
}
