//! A session that a conversation takes up, and where it stands.

use outrigger_agent::{Author, Item, Record, Seq, SessionId, Spec, State};
use outrigger_store::load_all;
use std::path::Path;

use super::context::Context;
use crate::command::task::{self, OpenedTask};
use crate::compose::Store;
use crate::exit::{Failure, Kind, Outcome};
use crate::session::Lock;
use crate::show::row::Row;
use crate::show::{self, Screen, Tone, count, markdown_rows, word};
use crate::{limits, session, workspace};

/// A session that is gone on with.
pub(super) struct OpenedTalk {
    pub(super) task: OpenedTask,
    /// What happened in it before.
    pub(super) before: Vec<Record>,
    pub(super) rows: Vec<Row>,
    /// Whether it goes on at once.
    pub(super) drive: bool,
}

/// Takes up a session, shows where it stands, and lets it go on if it was cut off.
pub(super) async fn go_on(
    context: &Context,
    store: Store,
    named: &SessionId,
) -> Outcome<Box<OpenedTalk>> {
    let session = session::root(&*store.journal, named).await?;
    let Some(lock) = session::lock(&context.paths.lock(session.as_str()))? else {
        return Err(session::held(&session));
    };
    take_up(context, store, session, Some(lock)).await
}

pub(super) async fn take_up(
    context: &Context,
    store: Store,
    session: SessionId,
    lock: Option<Lock>,
) -> Outcome<Box<OpenedTalk>> {
    let (paths, config) = (&context.paths, &context.config);
    let mut before = Vec::new();
    load_all(&*store.journal, &session, Seq::default(), |record| before.push(record)).await?;
    let state = before.iter().fold(State::default(), State::apply);
    let spec = state.spec().cloned().ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("session {session} was never opened"))
    })?;
    if state.is_cancelled() {
        return Err(Failure::new(Kind::Conflict, format!("session {session} was cancelled")));
    }
    let screen = Screen::keeping();
    let engine = task::reopen(paths, config, &store, &spec, &screen).await?;
    let mut rows = screen.kept();
    rows.extend(recapitulation(&session, &state));
    rows.extend(elsewhere(context, &spec));
    let drive = state.in_turn();
    let task = OpenedTask { store, engine, session, lock };
    Ok(Box::new(OpenedTalk { task, before, rows, drive }))
}

/// What a person is told whose session began in another directory than the one that may be
/// written into from here (`confinement`).
fn elsewhere(context: &Context, spec: &Spec) -> Option<Row> {
    let begun = spec.workspace.as_ref()?;
    let tree = workspace::tree(&context.dir).ok()?;
    let text = format!(
        "  changes go back with `cd {} && outrigger --continue`: they can't from here",
        word(&begun.begun_in())
    );
    (Path::new(&begun.source) != tree.top).then(|| Row::note(Tone::Warning, &text))
}

/// What was going on.
fn recapitulation(session: &SessionId, state: &State) -> Vec<Row> {
    let said = state.conversation().iter().rev().find_map(|item| match item {
        Item::Message(message) if matches!(message.author, Author::Person(_)) => Some(message),
        _ => None,
    });
    let mut rows =
        vec![Row::note(Tone::Strong, &format!("● session {session}: {}", state.status()))];
    if let Some(said) = said {
        let lines = said.text.lines().take(limits::RECAP_ROWS_MAX);
        rows.extend(lines.map(|line| Row::note(Tone::Strong, &format!("› {line}"))));
        rows.extend(said.pictures.iter().map(|it| Row::note(Tone::Detail, &show::picture(it))));
    }
    let answer = markdown_rows(&outrigger_agent::answer(state.conversation()));
    let above = answer.len().saturating_sub(limits::RECAP_ROWS_MAX);
    if above > 0 {
        let text = format!("  … {} before", count(above as u64, "line"));
        rows.push(Row::note(Tone::Detail, &text));
    }
    rows.extend(answer.into_iter().skip(above));
    rows.push(Row::default());
    rows
}
