//! `outrigger run`: an agent does a task in a copy of a directory.

use outrigger_agent::{
    Amounts, Author, Message, Seq, SessionId, Spec, TurnLimits, Workspace,
};
use outrigger_engine::Engine;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::drive::drive;
use super::finish::{Finish, SANDBOX};
use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::models::{self, Opened};
use crate::paths::Paths;
use crate::show::{Screen, Tone};
use crate::{cli, limits, repository, session};

/// What becomes of the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back {
    /// They are left as a patch.
    Patch,
    /// They are written back as well.
    Apply,
}

impl Back {
    pub(crate) fn from_flag(apply: bool) -> Self {
        if apply { Self::Apply } else { Self::Patch }
    }
}

/// A task, ready to be done.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) dir: PathBuf,
    pub(crate) messages: Vec<Message>,
    pub(crate) back: Back,
}

pub(crate) async fn execute(paths: &Paths, run: cli::Run) -> Outcome<u8> {
    let mut config = Config::load(paths.configs())?;
    config.flags(&run.model, run.limits)?;
    let dir = std::fs::canonicalize(&run.dir).map_err(|error| {
        Failure::new(Kind::NotFound, format!("{}: {error}", run.dir.display()))
            .hint("Name a directory that is there with --dir.")
    })?;
    let mut messages = repository::guides(&dir);
    messages.extend(piped()?);
    messages.push(Message { author: Author::Person("person:local".to_owned()), text: run.task });
    let task = Task { dir, messages, back: Back::from_flag(run.apply) };
    start(paths, &config, task, run.output).await
}

/// Opens a session for a task and drives it to its end.
pub(crate) async fn start(
    paths: &Paths,
    config: &Config,
    task: Task,
    output: cli::Output,
) -> Outcome<u8> {
    let opened = models::open(&config.model)?;
    let store = compose::store(paths).await?;
    let mut screen = Screen::new(output);
    let workspace = pack(paths, config, &store, &task.dir, &screen).await?;
    let session = session::new_id();
    let _lock = session::lock(&paths.lock(session.as_str()))?;
    let backend = compose::backend(paths, config).await?;
    let engine = compose::engine(config, &store, &opened, backend.clone());
    engine.open(&session, spec(config, &opened, workspace), task.messages).await?;
    screen.note(Tone::Detail, format!("session {session}"));
    drive(&engine, &*store.journal, &session, Seq::default(), &mut screen).await?;
    let finish = Finish {
        paths,
        store: &store,
        backend: &*backend,
        sandbox: &config.sandbox,
        session: &session,
        back: task.back,
    };
    finish.execute(&state(&engine, &session).await?, &screen).await
}

pub(crate) async fn state(
    engine: &Engine,
    session: &SessionId,
) -> Outcome<outrigger_agent::State> {
    Ok(engine.state(session).await?)
}

fn spec(config: &Config, opened: &Opened, workspace: Workspace) -> Spec {
    Spec {
        principal: "person:local".to_owned(),
        model: opened.spec.clone(),
        system: include_str!("../prompt.md").to_owned(),
        tools: outrigger_tools::specs(SANDBOX),
        budget: Amounts { steps: u64::MAX, tokens: config.tokens_max },
        turn: TurnLimits { steps_max: config.steps_max, wall_ms_max: config.turn_ms_max },
        workspace: Some(workspace),
    }
}

/// The directory's state becomes a blob, from which a workspace is filled as often
/// as it takes, whatever happens to the directory meanwhile.
async fn pack(
    paths: &Paths,
    config: &Config,
    store: &Store,
    dir: &Path,
    screen: &Screen,
) -> Outcome<Workspace> {
    let packed = {
        let (dir, scratch, config) = (dir.to_owned(), paths.data().join("scratch"), config.clone());
        let packing = tokio::task::spawn_blocking(move || repository::pack(&dir, &scratch, &config));
        packing.await.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))??
    };
    for left_out in &packed.left_out {
        screen.note(Tone::Warning, format!("! not copied: {left_out}"));
    }
    let (files, bytes) = (packed.files, packed.bytes);
    screen.note(Tone::Detail, format!("{files} files, {} KiB copied from {}", bytes.div_ceil(1_024), dir.display()));
    let stored = store.blobs.put_from(Box::new(packed.archive)).await?;
    let source = dir.display().to_string();
    Ok(Workspace { archive: stored.digest, bytes: stored.bytes, files, source })
}

/// Piped standard input, as context that nobody vouches for.
fn piped() -> Outcome<Option<Message>> {
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
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(Message { author: Author::Untrusted("stdin".to_owned()), text }))
}

/// Only a pipe, a socket or a file is read: an inherited terminal-less descriptor
/// that nobody ever closes must not make us wait.
fn has_input() -> bool {
    use rustix::fs::{FileType, fstat};
    fstat(std::io::stdin()).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::RegularFile | FileType::Socket
        )
    })
}
