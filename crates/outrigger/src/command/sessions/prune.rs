//! `outrigger prune`: sessions that are over and old go, all at once.

use clap::Args;
use outrigger_agent::{SessionId, State};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::remove::{BLOBS_STAY, Remover, told};
use crate::command::gc::{Age, age};
use crate::compose;
use crate::config::Config;
use crate::exit::{Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session::{self, now_ms};
use crate::show::{self, Screen, Tone, count, inert};

#[derive(Debug, Args)]
pub(crate) struct PruneSessions {
    /// Those that nobody touched for so long, for example `12h`, `30d` or `0d`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Age,
    /// Only those of this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Only show which would go.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) async fn prune(paths: &Paths, asked: PruneSessions) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let dir = asked.dir.as_ref().map(|dir| std::fs::canonicalize(dir).unwrap_or(dir.clone()));
    let before_ms = now_ms().saturating_sub(asked.older_than.ms());
    let mut rows = Vec::new();
    session::walk(&*store.journal, |row| {
        let is_busy = row.status == "running" || row.status == State::WAITS;
        if !is_busy && !session::is_below(&row.session) && row.last_at_ms <= before_ms {
            rows.push(row);
        }
        ControlFlow::Continue(())
    })
    .await?;
    let mut remover = Remover::new(paths, &config, &store);
    let mut removed: Vec<SessionId> = Vec::new();
    for row in rows {
        if let Some(dir) = &dir {
            let spec = session::opening(&store, &row.session).await?;
            if !spec.is_some_and(|spec| session::is_of(&spec, dir)) {
                continue;
            }
        }
        if asked.dry_run {
            tell_dry(&row.session, &row.title, asked.output);
            removed.push(row.session);
            continue;
        }
        // One that somebody came back to is left for the next time.
        match remover.remove(&row.session).await {
            Err(failure) if failure.kind != Kind::Conflict => return Err(failure),
            Err(_) => {}
            Ok(gone) => removed.extend(gone),
        }
    }
    tell_pruned(&removed, Some(BLOBS_STAY), &asked)
}

/// Says what would be removed.
pub(crate) fn tell_dry(session: &SessionId, title: &str, output: Output) {
    Screen::new(output).note(Tone::Detail, format!("would remove {session}  {}", inert(title)));
}

/// Says which sessions are gone, or would be. `detail`: what is said of those that are.
pub(crate) fn tell_pruned(
    removed: &[SessionId],
    detail: Option<&str>,
    asked: &PruneSessions,
) -> Outcome<u8> {
    if !asked.dry_run {
        return told(removed, detail, asked.output);
    }
    let sessions = count(removed.len() as u64, "session");
    Screen::new(asked.output).note(Tone::Good, format!("● {sessions} would be removed"));
    if asked.output.json.is_some() {
        let removed: Vec<_> = removed.iter().map(SessionId::as_str).collect();
        show::line(&json!({ "type": "removed", "sessions": removed, "dry_run": true }))?;
    }
    Ok(0)
}
