//! `outrigger sessions logs`: the events of a session, and those that come.

use outrigger_agent::{Seq, SessionId};
use std::time::Duration;

use crate::command::drive::{catch_up, resume_hint};
use crate::compose::{self, Store};
use crate::exit::Outcome;
use crate::flags::{Json, Output};
use crate::paths::Paths;
use crate::show::{Screen, Tone};
use crate::{abandoned, limits, session};

/// How long events are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// To the last one that is there.
    Now,
    /// Until the session waits or ends.
    Parked,
}

pub(super) async fn logs(
    paths: &Paths,
    name: &str,
    until: Until,
    since: u64,
    output: Output,
) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let session = session::find(&*store.journal, name).await?.session;
    // Lines for people go to standard output here: they are what was asked for.
    let output = Output { json: output.json.map(|_| Json::Events), ..output };
    let mut screen = Screen::on_stdout(output);
    let mut shown = Seq(since);
    let journal = &*store.journal;
    let standing = follow(&store, &session, until, &mut shown, &mut screen).await?;
    let is_over = until == Until::Parked && standing == abandoned::INTERRUPTED;
    // One that a person stopped is called so as well, and its turn is over.
    if is_over && session::fold(journal, &session).await?.in_turn() {
        screen.note(Tone::Warning, "! the process that ran the session is gone");
        screen.note(Tone::Detail, resume_hint(&session));
    }
    Ok(0)
}

/// Shows what the journal has, and what comes. Gives how the session stands then.
pub(super) async fn follow(
    store: &Store,
    session: &SessionId,
    until: Until,
    shown: &mut Seq,
    screen: &mut Screen,
) -> Outcome<String> {
    let journal = &*store.journal;
    loop {
        // Asked before it is read, so that its last events are not missed.
        let row = session::find(journal, session.as_str()).await?;
        let standing = abandoned::standing(store, &row).await?;
        let is_last = until == Until::Now || standing != "running";
        catch_up(journal, session, shown, screen).await?;
        if is_last {
            return Ok(standing);
        }
        tokio::time::sleep(Duration::from_millis(limits::FOLLOW_POLL_MS)).await;
    }
}
