//! What a server's session changed: shown, and written back on this machine.

use outrigger_agent::{Seq, SessionId, State};
use outrigger_api::{AppliedChanges, ApplyChanges, ProblemCode, ReadObjects};
use outrigger_client::Error;
use outrigger_engine::workspace::Changes;
use outrigger_repository::Change;
use serde_json::json;
use std::path::Path;

use super::connection::{Remote, cut_off};
use super::follow::{OnInterrupt, follow};
use crate::command::finish::{Back, CommittedWork, Delivery, make_branch, next, waits, write};
use crate::command::sessions::{Diff, WriteBack, print_patch};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Apply;
use crate::show::{self, Screen, Tone, Totals};
use crate::waiting::PendingApproval;
use crate::{repository, session};

/// Prints the patch.
pub(super) async fn diff(remote: &Remote, asked: Diff) -> Outcome<u8> {
    let session = remote.named_or_newest(asked.session.as_deref()).await?;
    print_patch(&session, &patch(remote, &session).await?, None, asked.output)
}

/// Writes the changes back into the directory that the session began with, here or at the server.
pub(super) async fn apply(remote: &Remote, asked: WriteBack) -> Outcome<u8> {
    let session = remote.named_or_newest(asked.session.as_deref()).await?.root();
    let state = remote.state(&session).await?;
    let mut screen = Screen::new(asked.output);
    if let Some(dir) = remote.source(&session) {
        let back = asked.back();
        return finish(remote, &session, &state, (back, Some(&dir)), &mut screen).await;
    }
    if asked.branch {
        let text = format!("session {session} began with no directory that was sent from here");
        return Err(Failure::new(Kind::Usage, text)
            .hint("A branch is made in the repository that was sent."));
    }
    let path = format!("/v1/sessions/{session}/apply");
    let accepted = ApplyChanges { accept_hazards: asked.all };
    let writing = remote.client.post::<AppliedChanges>(&path, &accepted);
    let AppliedChanges { files, directory } =
        screen.during("writing the changes back", writing).await?;
    let files_told = show::count(files, "file");
    screen.note(Tone::Good, format!("● {files_told} written back to {directory} of the server"));
    if asked.output.json.is_some() {
        show::line(&json!({ "type": "applied", "session": session, "files": files }))?;
    }
    Ok(0)
}

async fn patch(remote: &Remote, session: &SessionId) -> Outcome<Vec<u8>> {
    Ok(remote.client.get_bytes(&format!("/v1/sessions/{session}/changes.patch")).await?)
}

/// The end of a command that followed a session: its changes are fetched, kept as a patch,
/// shown, and written back if that was asked for.
pub(super) async fn finish(
    remote: &Remote,
    session: &SessionId,
    state: &State,
    (back, source): (Back, Option<&Path>),
    screen: &mut Screen,
) -> Outcome<u8> {
    let waiting = PendingApproval::below(&remote.journal, session).await?;
    if state.in_turn() && waiting.is_empty() {
        return Err(cut_off(session));
    }
    let delivery = Delivery { paths: &remote.kept, session, back, source };
    let done = match waits(&waiting) {
        Some(failure) => delivery.tell_waiting(state, &waiting, failure, screen),
        None => {
            let changes = screen.during("fetching the changes", changes(remote, session)).await?;
            let screen = &*screen;
            let commits = async |changes: &[Change]| match source {
                Some(dir) => branch(remote, session, (dir, changes), screen).await,
                None => Ok(None),
            };
            delivery.deliver(state, changes, commits, screen).await
        }
    };
    let next = next(state, session, &waiting)
        .unwrap_or_else(|| format!("outrigger sessions say {session} \"...\""));
    screen.note(Tone::Detail, Totals::of(state).line(session, &next));
    done
}

/// Makes what was committed at the server a branch of the repository that was sent.
pub(super) async fn branch(
    remote: &Remote,
    session: &SessionId,
    back: (&Path, &[Change]),
    screen: &Screen,
) -> Outcome<Option<CommittedWork>> {
    let path = format!("/v1/sessions/{session}/objects");
    let ask = async |asked: ReadObjects| Ok(remote.client.post_bytes(&path, &asked).await?);
    make_branch(session, ask, back, screen).await
}

/// The changes; nothing if there is no sandbox any more that could have any. Then the patch
/// is fetched that was kept of them.
pub(super) async fn changes(remote: &Remote, session: &SessionId) -> Outcome<Option<Changes>> {
    let path = format!("/v1/sessions/{session}/changes.tar");
    let archive = match remote.client.get_bytes(&path).await {
        Ok(archive) => archive,
        Err(Error::Problem(problem)) if problem.code == ProblemCode::Conflict => {
            let patch = patch(remote, session).await?;
            let path = remote.kept.patch(session.as_str());
            write(&path, &patch).map_err(|error| {
                Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
            })?;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let changed = outrigger_repository::read_changes(archive.as_slice());
    let changed = changed.map_err(|it| repository::failed(Path::new("the changes"), &it))?;
    Ok(Some(Changes { changed, special: Vec::new() }))
}

/// Follows a session to where it waits or ends, and ends as a `run` would then.
pub(super) async fn drive(
    remote: &Remote,
    session: &SessionId,
    after: Seq,
    apply: Apply,
    screen: &mut Screen,
) -> Outcome<u8> {
    let back = Back::settle(&remote.kept, session, apply)?;
    let watching = follow(remote, session, after, OnInterrupt::StopTurn, screen);
    let state = Box::pin(watching).await?;
    let root = session::root(&remote.journal, session).await?;
    let source = remote.source(&root);
    finish(remote, &root, &state, (back, source.as_deref()), screen).await
}
