//! A session that a conversation takes up, and where it stands.

use outrigger_agent::{Author, Item, Seq, SessionId, Spec, State};
use outrigger_store::{Lease, LeasePurpose, load_all};
use std::path::Path;
use std::rc::Rc;

use super::sessions::OwnSessions;
use super::talk::OwnTalk;
use super::work::OwnWork;
use crate::command::converse::source::OpenedTalk;
use crate::command::task;
use crate::compose::Store;
use crate::exit::{Failure, Kind, Outcome};
use crate::show::row::Row;
use crate::show::{self, Screen, Tone, count, inert, markdown_rows, word};
use crate::{limits, session, workspace};

/// Takes up a session, shows where it stands, and lets it go on if it was cut off.
pub(super) async fn go_on(
    sessions: &OwnSessions,
    store: Store,
    named: &SessionId,
) -> Outcome<OpenedTalk> {
    let session = session::root(&*store.journal, named).await?;
    let Some(lease) = store.database.lease(&session, LeasePurpose::Drive).await? else {
        return Err(session::held(&session));
    };
    take_up(sessions, store.under(&lease), session, Some(Rc::new(lease))).await
}

pub(super) async fn take_up(
    sessions: &OwnSessions,
    store: Store,
    session: SessionId,
    lease: Option<Rc<Lease>>,
) -> Outcome<OpenedTalk> {
    let OwnSessions { paths, config, dir, .. } = sessions;
    let mut before = Vec::new();
    load_all(&*store.journal, &session, Seq::default(), |record| before.push(record)).await?;
    let state = before.iter().fold(State::default(), State::apply);
    let spec = state.spec().cloned().ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("session {session} was never opened"))
    })?;
    if state.is_cancelled() {
        return Err(cancelled(&session));
    }
    let screen = Screen::keeping();
    let engine = task::reopen(paths, config, &store, &spec, &screen).await?;
    let mut rows = screen.kept();
    rows.extend(recapitulation(&session, &state));
    rows.extend(elsewhere(dir, &spec));
    let work = OwnWork::new(sessions.clone(), store, engine, session);
    let mut talk = OwnTalk::of(work, lease, state.seq());
    if state.in_turn() {
        talk.drive()?;
    }
    Ok(OpenedTalk { talk: Box::new(talk), before, rows })
}

/// The error for a session that can't go on.
pub(crate) fn cancelled(session: &SessionId) -> Failure {
    Failure::new(Kind::Conflict, format!("session {session} was cancelled"))
}

/// What is told of a session that stands where it stood before.
pub(crate) fn went_back(said: &str) -> Row {
    let text = match said.lines().next() {
        None => "● back at the beginning, before anything was said".to_owned(),
        Some(said) => format!("● back to where this was answered: {}", inert(said)),
    };
    Row::note(Tone::Good, &text)
}

/// What a person is told whose session began in another directory than the one that may be
/// written into from here (`confinement`).
fn elsewhere(dir: &Path, spec: &Spec) -> Option<Row> {
    let begun = spec.workspace.as_ref()?;
    let tree = workspace::tree(dir).ok()?;
    let text = format!(
        "  changes go back with `cd {} && outrigger --continue`: they can't from here",
        word(&begun.begun_in())
    );
    (Path::new(&begun.source) != tree.top).then(|| Row::note(Tone::Warning, &text))
}

/// What was going on.
pub(crate) fn recapitulation(session: &SessionId, state: &State) -> Vec<Row> {
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
