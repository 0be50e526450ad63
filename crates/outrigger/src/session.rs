//! Names of sessions: made, and looked up by their beginning.

mod lookup;

use outrigger_agent::{Author, Message, Record, Seq, SessionId, State};
use outrigger_engine::{Clock, SystemClock};
use outrigger_store::{Before, Journal, SessionRow, load_all};
use std::ops::ControlFlow;

use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

pub(crate) use lookup::{
    LAST, find, here, is_below, is_of, last, last_in, name, named_or_newest, none, opening, root,
    several,
};

/// On whose behalf everything happens on this machine, as long as there is one person.
pub(crate) const WHO: &str = "person:local";

/// What that person says.
pub(crate) fn said(text: String) -> Message {
    Message::new(Author::Person(WHO.to_owned()), text)
}

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemClock.now_ms()
}

/// A new name: twelve characters that are easy to read out, 60 bits of chance.
pub(crate) fn new_id() -> SessionId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bits = uuid::Uuid::new_v4().as_u128() >> 64 ^ uuid::Uuid::new_v4().as_u128();
    let mut name = String::new();
    for _ in 0..12 {
        name.push(char::from(ALPHABET[(bits & 31) as usize]));
        bits >>= 5;
    }
    SessionId::new(name).expect("the alphabet has only plain characters")
}

/// Shows sessions, newest first, until that is enough.
pub(crate) async fn walk(
    journal: &dyn Journal,
    mut each: impl FnMut(SessionRow) -> ControlFlow<()>,
) -> Outcome {
    let mut before: Option<Before> = None;
    let mut searched = 0;
    loop {
        let page = journal.sessions(before.take(), 1_000).await?;
        before = page.last().map(Before::from);
        searched += page.len();
        let enough = page.into_iter().try_for_each(&mut each).is_break();
        if enough || before.is_none() || searched >= limits::SESSIONS_SEARCHED_MAX {
            return Ok(());
        }
    }
}

/// The error for who needs a lease and can't have it.
pub(crate) fn held(session: &SessionId) -> Failure {
    Failure::new(Kind::Conflict, format!("session {session} is in use by another process"))
        .hint(format!("Watch it with `outrigger attach {session}`."))
}

/// The error for who needs a sandbox that another server has.
pub(crate) fn elsewhere(session: &SessionId) -> Failure {
    let text = format!("the sandboxes of session {session} are at another server, which runs");
    Failure::new(Kind::Conflict, text)
        .hint("Look at them there. What is said, answered or stopped here reaches it all the same.")
}

/// The state of a session, from its journal alone.
pub(crate) async fn fold(journal: &dyn Journal, session: &SessionId) -> Outcome<State> {
    let mut state = State::default();
    load_all(journal, session, Seq::default(), |record: Record| {
        state = std::mem::take(&mut state).apply(&record);
    })
    .await?;
    Ok(state)
}

/// A session, and with it the subagents that it waits for, those above first. One that is
/// not opened yet is left out.
pub(crate) async fn tree(
    journal: &dyn Journal,
    session: &SessionId,
) -> Outcome<Vec<(SessionId, State)>> {
    let mut all = vec![(session.clone(), fold(journal, session).await?)];
    let mut place = 0;
    while let Some((above, state)) = all.get(place) {
        let below: Vec<_> = state.subagents(above).collect();
        for session in below {
            match fold(journal, &session).await {
                Err(failure) if failure.kind == Kind::NotFound => {}
                state => all.push((session, state?)),
            }
        }
        place += 1;
    }
    Ok(all)
}
