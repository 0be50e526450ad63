//! `outrigger attach`: a session that another process drives, shown as if it were driven here.

use clap::Args;
use outrigger_agent::{Seq, SessionId, State};
use outrigger_store::SessionRow;
use std::path::Path;
use std::time::Duration;

use super::follow::{Until, follow};
use super::show::{lines, summary};
use crate::command::detach;
use crate::command::drive::resume_hint;
use crate::command::finish::{ending, waits};
use crate::compose::{self, Store};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::{Screen, Tone};
use crate::waiting::PendingApproval;
use crate::{abandoned, limits, session};

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The session, or the beginning of its name; without one, the newest of this directory, or
    /// where there is none the newest of all.
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Shows a session until it ends or waits, and ends as a `run` would then. Ctrl-C stops the
/// watching and nothing else.
pub(crate) async fn attach(paths: &Paths, asked: Attach) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let journal = &*store.journal;
    let session = session::named_or_newest(&store, asked.session.as_deref()).await?;
    let mut screen = Screen::new(asked.output);
    let mut shown = Seq::default();
    follow(&store, &session, Until::Parked, &mut shown, &mut screen).await?;
    let_go(&store, &session.root(), &mut screen).await?;
    let mut row = session::find(journal, session.as_str()).await?;
    row.status = abandoned::standing(&store, &row).await?;
    let state = session::fold(journal, &session).await?;
    let waiting = PendingApproval::below(journal, &session).await?;
    let failure = match waits(&waiting) {
        Some(failure) => Some(failure),
        None if state.in_turn() => Some(gone(paths, &session)),
        None => ending(&state, &session).err(),
    };
    let patch = Some(paths.patch(session.as_str())).filter(|path| path.exists());
    let shows_changes = patch.is_some();
    tell(&screen, (&row, &state), (patch.as_deref(), shows_changes), failure)
}

/// Tells how a session stands that was watched, and ends as a `run` would. `patch`: what is kept of
/// its changes; and whether there is something to look at.
pub(crate) fn tell(
    screen: &Screen,
    (row, state): (&SessionRow, &State),
    (patch, shows_changes): (Option<&Path>, bool),
    failure: Option<Failure>,
) -> Outcome<u8> {
    for text in lines(row, state, patch) {
        screen.note(Tone::Detail, text);
    }
    if shows_changes {
        let hint = format!("outrigger sessions diff {} shows what it changed", row.session);
        screen.note(Tone::Detail, hint);
    }
    let mut object = summary(row, state, patch);
    match failure {
        None => {
            screen.result(&outrigger_agent::answer(state.conversation()), &object)?;
            Ok(0)
        }
        Some(failure) if screen.is_json() => {
            object["error"] = failure.object();
            screen.result("", &object)?;
            Err(failure.told())
        }
        Some(failure) => Err(failure),
    }
}

/// Until the process that drove it has taken its changes out and ends, or has no more time.
async fn let_go(store: &Store, session: &SessionId, screen: &mut Screen) -> Outcome {
    let waiting = async {
        for _ in 0..limits::HANDOVER_MS_MAX / limits::FOLLOW_POLL_MS {
            if !store.database.is_leased(session).await? {
                break;
            }
            tokio::time::sleep(Duration::from_millis(limits::FOLLOW_POLL_MS)).await;
        }
        Ok(())
    };
    screen.during("waiting for its changes", waiting).await
}

/// The error of a session whose process ended in the middle.
fn gone(paths: &Paths, session: &SessionId) -> Failure {
    let text = "the process that ran the session is gone";
    let text = match detach::last_error(paths, session) {
        Some(error) => format!("{text}: {error}"),
        None => text.to_owned(),
    };
    Failure::new(Kind::Interrupted, text).hint(resume_hint(session))
}
