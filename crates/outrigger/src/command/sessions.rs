//! `outrigger sessions`: look at sessions, go on with them, end them.

mod cancel;
mod fork;
mod remove;
mod resume;

use clap::Subcommand;
use outrigger_agent::{Seq, SessionId};
use outrigger_store::{Journal, SessionRow};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use super::backup;
use super::drive::{catch_up, resume_hint};
use super::finish::Back;
use crate::exit::Outcome;
use crate::flags::{Apply, Json, Limits, NewModel, Output};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, inert};
use crate::{abandoned, compose, limits, session};

pub(super) use cancel::wind_down;
pub(super) use remove::{Remover, gone};
pub(super) use resume::{More, go_on};

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, newest first.
    Ls {
        /// At most so many.
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Also the subagents that sessions started.
        #[arg(long, short = 'a')]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Show a session: its steps, its answer, what it spent.
    Show {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        output: Output,
    },
    /// Print a session's events.
    Logs {
        /// The session, or the beginning of its name.
        session: String,
        /// Go on as they happen, until the session waits or ends.
        #[arg(long, short)]
        follow: bool,
        /// Only events after this one.
        #[arg(long, default_value_t = 0, value_name = "SEQ")]
        since: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Say something in a session that waits, and let it go on with that.
    Say {
        /// The session, or the beginning of its name.
        session: String,
        /// What to say.
        text: String,
        #[command(flatten)]
        apply: Apply,
        #[command(flatten)]
        output: Output,
    },
    /// Go on with a session that was killed, stopped or reached a limit.
    Resume {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        apply: Apply,
        #[command(flatten)]
        limits: Limits,
        #[command(flatten)]
        model: Box<NewModel>,
        #[command(flatten)]
        output: Output,
    },
    /// List the moments of a session that it can be forked at or taken back to.
    Moments {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        output: Output,
    },
    /// Begin another session where this one stood: its conversation, its files, what it
    /// spent and what waits for a person.
    Fork {
        /// The session, or the beginning of its name.
        session: String,
        /// The moment, as `moments` names it; without, the last one.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Take a session back to where it stood before; what it spent stays spent. Files
    /// that were written back to the directory stay as they are.
    Rewind {
        /// The session, or the beginning of its name.
        session: String,
        /// The moment, as `moments` names it; without, the one before.
        #[arg(long, value_name = "SEQ")]
        to: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Write a session and its subagents into one file: events with their chain, and the
    /// contents that they name. The disks of its sandboxes are not in it.
    Export {
        /// The session, or the beginning of its name.
        session: String,
        /// Where it is written; a file that is there is left as it is.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Take in sessions from a file, if all of it verifies and none of them is here. Whoever
    /// made the file can have made them up: the chain says only that they are whole.
    Import {
        /// What `outrigger sessions export` wrote.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Remove sessions that are over, with their subagents, patches and what is kept of
    /// their disks. The audit log says that they were removed; what they wrote to memory
    /// and what they spent stays.
    Rm {
        /// The sessions, or the beginnings of their names.
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// End a session for good: running commands are killed, its sandbox is deleted.
    Cancel {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Sessions {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output, .. }
            | Self::Show { output, .. }
            | Self::Logs { output, .. }
            | Self::Say { output, .. }
            | Self::Resume { output, .. }
            | Self::Moments { output, .. }
            | Self::Fork { output, .. }
            | Self::Rewind { output, .. }
            | Self::Export { output, .. }
            | Self::Import { output, .. }
            | Self::Rm { output, .. }
            | Self::Cancel { output, .. } => *output,
        }
    }
}

/// Does what the command line says.
pub(crate) async fn execute(paths: &Paths, asked: Sessions) -> Outcome<u8> {
    match asked {
        Sessions::Ls { limit, all, output } => {
            let below = if all { Below::Shown } else { Below::Hidden };
            ls(paths, limit, below, output).await
        }
        Sessions::Show { session, output } => self::show(paths, &session, output).await,
        Sessions::Logs { session, follow, since, output } => {
            let follow = if follow { Until::Parked } else { Until::Now };
            logs(paths, &session, follow, since, output).await
        }
        Sessions::Say { session, text, apply, output } => {
            let (back, more) = (Back::from_flag(apply), More::Said(text));
            go_on(paths, &session, back, more, output).await
        }
        Sessions::Resume { session, apply, limits, model, output } => {
            let (back, more) = (Back::from_flag(apply), More::Otherwise(limits, model));
            go_on(paths, &session, back, more, output).await
        }
        Sessions::Moments { session, output } => fork::moments(paths, &session, output).await,
        Sessions::Fork { session, at, output } => fork::fork(paths, &session, at, output).await,
        Sessions::Rewind { session, to, output } => fork::rewind(paths, &session, to, output).await,
        Sessions::Export { session, file, output } => {
            backup::export(paths, &session, &file, output).await
        }
        Sessions::Import { file, output } => backup::import(paths, &file, output).await,
        Sessions::Rm { sessions, output } => remove::execute(paths, &sessions, output).await,
        Sessions::Cancel { session, output } => cancel::cancel(paths, &session, output).await,
    }
}

/// Whether subagents are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    Shown,
    Hidden,
}

/// How long events are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// To the last one that is there.
    Now,
    /// Until the session waits or ends.
    Parked,
}

pub(crate) async fn ls(paths: &Paths, limit: usize, below: Below, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let mut rows = Vec::new();
    session::walk(&*store.journal, |row| {
        if below == Below::Shown || !session::is_below(&row.session) {
            rows.push(row);
        }
        if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .await?;
    rows.truncate(limit);
    for row in &mut rows {
        row.status = abandoned::standing(paths, &*store.journal, row).await?;
    }
    if output.json.is_some() {
        let rows: Vec<_> = rows.iter().map(object).collect();
        show::line(&json!({ "type": "sessions", "sessions": rows }))?;
        return Ok(0);
    }
    for row in &rows {
        let (when, title) =
            (show::when(row.last_at_ms), inert(&row.title).replace(['\n', '\t'], " "));
        show::row(&format!("{}  {when}  {:<16}  {title}", row.session, row.status))?;
    }
    if rows.is_empty() {
        Screen::new(output).note(Tone::Detail, "no sessions yet");
    }
    Ok(0)
}

fn object(row: &SessionRow) -> serde_json::Value {
    json!({
        "session": row.session.as_str(),
        "status": row.status,
        "title": row.title,
        "events": row.head.0,
        "created_at_ms": row.created_at_ms,
        "last_at_ms": row.last_at_ms,
    })
}

pub(crate) async fn show(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let mut row = session::find(&*store.journal, name).await?;
    row.status = abandoned::standing(paths, &*store.journal, &row).await?;
    let state = session::fold(&*store.journal, &row.session).await?;
    let patch = Some(paths.patch(row.session.as_str())).filter(|path| path.exists());
    let answer = outrigger_agent::answer(state.conversation());
    let mut screen = Screen::new(output);
    if output.json != Some(Json::Object) {
        catch_up(&*store.journal, &row.session, &mut Seq::default(), &mut screen).await?;
    }
    let mut summary = object(&row);
    summary["type"] = json!("session");
    summary["answer"] = json!(answer);
    summary["labels"] = json!(state.labels());
    summary["agent"] = json!(state.spec().map(|spec| spec.role.acting()));
    summary["parent"] =
        json!(state.spec().and_then(|spec| spec.parent()).map(|parent| &parent.session));
    summary["steps"] = json!(state.spent().steps);
    summary["tokens"] = json!(state.spent().tokens);
    summary["spent"] = json!(state.spent());
    summary["scripted"] = json!(state.spec().is_some_and(|spec| spec.model.scripted));
    summary["patch"] = json!(patch.as_ref().map(|path| path.display().to_string()));
    let (status, spent) = (&row.status, state.spent());
    let text =
        format!("{} · {status} · {} steps · {} tokens", row.session, spent.steps, spent.tokens);
    screen.note(Tone::Strong, text);
    if !state.labels().is_empty() {
        let labels: Vec<_> = state.labels().iter().map(|label| inert(label)).collect();
        screen.note(Tone::Detail, format!("labels: {}", labels.join(", ")));
    }
    if let Some(path) = &patch {
        screen.note(Tone::Detail, format!("patch: {}", path.display()));
    }
    screen.result(&answer, &summary)?;
    Ok(0)
}

pub(crate) async fn logs(
    paths: &Paths,
    name: &str,
    until: Until,
    since: u64,
    output: Output,
) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let row = session::find(&*store.journal, name).await?;
    // Lines for people go to standard output here: they are what was asked for.
    let output = Output { json: output.json.map(|_| Json::Events), ..output };
    let mut screen = Screen::on_stdout(output);
    let mut shown = Seq(since);
    loop {
        // Asked before it is read, so that its last events are not missed.
        let running = is_running(paths, &*store.journal, &row.session).await;
        let last = until == Until::Now || !running?;
        catch_up(&*store.journal, &row.session, &mut shown, &mut screen).await?;
        if last {
            let standing = abandoned::standing(paths, &*store.journal, &row).await?;
            if until == Until::Parked && standing == abandoned::INTERRUPTED {
                screen.note(Tone::Warning, "! the process that drove the session is gone");
                screen.note(Tone::Detail, resume_hint(&row.session));
            }
            return Ok(0);
        }
        tokio::time::sleep(Duration::from_millis(limits::FOLLOW_POLL_MS)).await;
    }
}

async fn is_running(paths: &Paths, journal: &dyn Journal, session: &SessionId) -> Outcome<bool> {
    let row = session::find(journal, session.as_str()).await?;
    Ok(abandoned::standing(paths, journal, &row).await? == "running")
}
