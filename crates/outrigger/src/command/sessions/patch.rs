//! `outrigger sessions diff | apply`: what a session changed, shown or written back when it is
//! over.

use clap::Args;
use outrigger_agent::SessionId;
use outrigger_repository::Accept;
use outrigger_store::LeasePurpose;
use serde_json::json;
use std::fs;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::path::Path;

use crate::command::drive::resume_hint;
use crate::command::finish::{Back, Finish};
use crate::compose;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session;
use crate::show::{self, Screen};

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The session, or the beginning of its name; without one, the newest of this directory, or
    /// where there is none the newest of all.
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct WriteBack {
    /// The session, or the beginning of its name; without one, the newest of this directory, or
    /// where there is none the newest of all.
    pub(crate) session: Option<String>,
    /// Also what programs run or obey by themselves, which is asked about on a terminal and
    /// refused elsewhere.
    #[arg(long)]
    pub(crate) all: bool,
    /// Make what was committed in the sandbox the branch `outrigger/SESSION` instead, and write
    /// no file.
    #[arg(long, conflicts_with = "all")]
    pub(crate) branch: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl WriteBack {
    /// What is done this once, whatever the session remembers.
    pub(crate) fn back(&self) -> Back {
        match self {
            Self { branch: true, .. } => Back::Branch,
            Self { all: true, .. } => Back::Now(Accept::Named),
            Self { .. } => Back::Now(Accept::Nothing),
        }
    }
}

/// Prints the patch as it was kept when the session last waited or ended.
pub(super) async fn diff(paths: &Paths, asked: Diff) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let session = session::named_or_newest(&store, asked.session.as_deref()).await?;
    if let Ok(why) = fs::read_to_string(paths.untaken(session.as_str())) {
        let text = format!("what session {session} changed could not be taken out: {why}");
        return Err(Failure::new(Kind::Conflict, text)
            .hint(format!("`outrigger sessions apply {session}` tries again.")));
    }
    let path = paths.patch(session.as_str());
    let patch = match fs::read(&path) {
        Ok(patch) => patch,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let text = format!("{}: {error}", path.display());
            return Err(Failure::new(Kind::Storage, text));
        }
    };
    let kept = Some(path).filter(|_| !patch.is_empty());
    if kept.is_none() && session::fold(&*store.journal, &session).await?.in_turn() {
        let text = format!("of what session {session} changed nothing is kept before it stops");
        return Err(Failure::new(Kind::Conflict, text)
            .hint(format!("`outrigger attach {session}` shows what it does."))
            .hint(resume_hint(&session)));
    }
    print(&session, &patch, kept.as_deref(), asked.output)
}

/// Prints a patch. `kept`: where it lies.
pub(crate) fn print(
    session: &SessionId,
    patch: &[u8],
    kept: Option<&Path>,
    output: Output,
) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({
            "type": "diff",
            "session": session.as_str(),
            "path": kept.map(|path| path.display().to_string()),
            "patch": String::from_utf8_lossy(patch),
        }))?;
    } else if std::io::stdout().is_terminal() {
        Screen::on_stdout(Output { quiet: false, ..output }).whole_patch(patch);
    } else {
        // Byte for byte, for `git apply` and its like.
        let written = std::io::stdout().write_all(patch);
        if let Err(error) = written.and_then(|()| std::io::stdout().flush())
            && error.kind() != ErrorKind::BrokenPipe
        {
            let text = format!("standard output can't be written: {error}");
            return Err(Failure::new(Kind::Storage, text));
        }
    }
    if patch.is_empty() {
        let text = format!("session {session} changed nothing");
        Screen::new(output).note(show::Tone::Detail, text);
    }
    Ok(0)
}

/// Takes the changes out of the sandbox again and writes them back. Asks no model.
pub(super) async fn apply(paths: &Paths, asked: WriteBack) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let named = session::named_or_newest(&store, asked.session.as_deref()).await?;
    let session = session::root(&*store.journal, &named).await?;
    let Some(_lease) = store.database.lease(&session, LeasePurpose::Look).await? else {
        return Err(session::held(&session));
    };
    let engine = compose::caretaker(paths, &config, &store).await?;
    let state = engine.state(&session).await?;
    let back = asked.back();
    let finish = Finish {
        paths,
        store: &store,
        engine: &engine,
        session: &session,
        back,
        retention_ms: config.retention_ms(),
        notify: &config.notify,
    };
    finish.execute(&state, &mut Screen::new(asked.output)).await
}
