//! A session's journal as a driver reads and appends it.
//!
//! Owns the fold of it, which is kept, and what listings say of the session. Beside it only
//! `accounts` (what is charged) and `memory::labels` (what was touched) append.

use outrigger_agent::{Author, Event, FOLD, Item, Message, Record, Seq, SessionId, State};
use outrigger_store::{Cover, Error as StoreError, SessionSummary};
use std::sync::Arc;

use crate::{Engine, Error, Notice, accounts, limits};

/// The state of a session, and the place up to which its fold is kept.
pub(crate) async fn fold(engine: &Engine, session: &SessionId) -> Result<(State, Seq), Error> {
    let journal = &engine.parts.journal;
    let failed = |source| Error::journal(session, source);
    let cached = journal.snapshot(session, FOLD).await.map_err(failed)?;
    let kept = cached.usable().and_then(|snapshot| {
        // It is only a cache: one that can't be read is folded anew.
        serde_json::from_slice::<State>(&snapshot.state).ok()
    });
    let mut state = kept.unwrap_or_default();
    let from = state.seq();
    catch_up(engine, session, &mut state, |_| ()).await?;
    Ok((state, from))
}

pub(super) async fn catch_up(
    engine: &Engine,
    session: &SessionId,
    state: &mut State,
    mut each: impl FnMut(Record) + Send,
) -> Result<(), Error> {
    let after = state.seq();
    let mut folded = std::mem::take(state);
    let read = outrigger_store::load_all(&*engine.parts.journal, session, after, |record| {
        folded = std::mem::take(&mut folded).apply(&record);
        each(record);
    });
    let read = read.await;
    *state = folded;
    match read {
        Ok(()) => Ok(()),
        Err(StoreError::NotFound { .. }) => Err(Error::NotFound(session.clone())),
        Err(error) => Err(Error::journal(session, error)),
    }
}

/// Appends and tells. `state` is the one that the events lead to.
pub(crate) async fn append(
    engine: &Engine,
    session: &SessionId,
    after: Seq,
    at_ms: u64,
    events: Vec<Event>,
    state: &State,
) -> Result<(), Error> {
    // What rests may rest for days, and this process may end.
    let cover = if state.status() == "running" { Cover::Soon } else { Cover::Now };
    let status = Some(state.status().to_owned());
    let charge = accounts::charge(engine, &events, state);
    let title = title(&events);
    let summary = SessionSummary { title, status, cover, charge };
    let appended = engine.parts.journal.append(session, after, at_ms, &events, summary).await;
    appended.map_err(|source| Error::journal(session, source))?;
    let told = if engine.feed().is_heard() { events } else { Vec::new() };
    for (offset, event) in (1..).zip(told) {
        let seq = Seq(after.0 + offset);
        let record = Record { seq, at_ms, event };
        engine.feed().tell(session, || Notice::Appended(Arc::new(record)));
    }
    Ok(())
}

/// In listings the session stands as its subagents do: its own journal does not say.
pub(crate) async fn record_status(
    engine: &Engine,
    session: &SessionId,
    seq: Seq,
    status: &str,
) -> Result<(), Error> {
    let status = Some(status.to_owned());
    let summary = SessionSummary { status, cover: Cover::Now, ..SessionSummary::default() };
    let at_ms = engine.parts.clock.now_ms();
    let told = engine.parts.journal.append(session, seq, at_ms, &[], summary).await;
    match told {
        // Somebody else says how it stands.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(Error::journal(session, error)),
    }
}

/// What a session is about: the first thing that a person says when it is opened, or
/// what was said last in the one that it is a fork of.
fn title(events: &[Event]) -> Option<String> {
    let opened = matches!(events.first(), Some(Event::Opened(_)));
    let said = |event: &Event| match event {
        Event::Said(message) => headline(message),
        Event::Forked { cut, .. } => {
            last_said(&cut.conversation).map(|said| format!("{said} (fork)"))
        }
        _ => None,
    };
    if opened { events.iter().find_map(said) } else { None }
}

/// What a person said last, as a title.
pub(crate) fn last_said(conversation: &[Item]) -> Option<String> {
    conversation.iter().rev().find_map(|item| match item {
        Item::Message(message) => headline(message),
        Item::Reply(_) | Item::Result(_) | Item::Summary(_) | Item::Notice(_) => None,
    })
}

/// The first line of what a person or the agent above said.
fn headline(message: &Message) -> Option<String> {
    if let Author::Untrusted(_) | Author::Trusted(_) = message.author {
        return None;
    }
    let line = message.text.lines().next().unwrap_or_default();
    Some(line.chars().take(limits::TITLE_CHARS_MAX).collect())
}
