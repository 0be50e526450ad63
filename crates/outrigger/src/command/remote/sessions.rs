//! `outrigger sessions` and `attach` at a server.

use outrigger_agent::{Amounts, Seq, SessionId};
use outrigger_api::{
    CancelSession, CheckpointInfo, CheckpointList, ForkSession, ProblemCode, ResumeSession,
    RewindSession, SendMessage, ServerInfo, SessionGroup, SessionInfo, ShareAccess, ShareInfo,
};
use outrigger_client::Error;
use serde_json::json;
use std::ops::ControlFlow;
use std::time::Duration;

use super::changes::drive;
use super::connection::{Remote, cut_off, named, not_there, source_of};
use super::follow::{OnInterrupt, follow};
use super::journal::row;
use super::run::{say, session_limits};
use crate::command::drive::catch_up;
use crate::command::finish::{ending, waits};
use crate::command::sessions::{
    Attach, CheckpointLine, Ls, PruneSessions, RemoveSessions, SessionLine, Sessions, ShareSession,
    Show, StopSessions, did_not_run, did_stop, gone, lines, print_checkpoints, print_sessions,
    print_shares, print_stopped, show_screen, still_runs, summary, tell_dry, tell_pruned,
    tell_removed, tell_watched,
};
use crate::exit::{Kind, Outcome};
use crate::flags::{Json, Output};
use crate::limits;
use crate::session::now_ms;
use crate::show::{self, Screen, Tone, Totals};
use crate::waiting::PendingApproval;
use crate::{picture, session};

pub(super) async fn execute(remote: &Remote, asked: Sessions) -> Outcome<u8> {
    match asked {
        Sessions::Ls(asked) => ls(remote, asked).await,
        Sessions::Show(asked) => show(remote, asked).await,
        Sessions::Logs { session, follow, since, output } => {
            logs(remote, &session, (follow, since), output).await
        }
        Sessions::Say { session, text, net, shown, apply, output } => {
            if net.words()?.is_some() {
                return Err(not_there("--net"));
            }
            let pictures = picture::attached(&shown.picture)?;
            let session = remote.find(&session).await?;
            let before = remote.head(&session).await?;
            let message = SendMessage { pictures, ..SendMessage::new(text) };
            say(remote, &session, message).await?;
            drive(remote, &session, before, apply, &mut Screen::new(output)).await
        }
        Sessions::Resume { session, net, apply, limits, model, output } => {
            if net.words()?.is_some() || !model.is_none() {
                return Err(not_there("to go on with another model or network"));
            }
            let asked = ResumeSession { limits: session_limits(limits) };
            let session = remote.find(&session).await?;
            let before = remote.head(&session).await?;
            remote.client.command(&format!("/v1/sessions/{session}/resume"), &asked).await?;
            drive(remote, &session, before, apply, &mut Screen::new(output)).await
        }
        Sessions::Share(asked) => share(remote, asked).await,
        Sessions::Checkpoints { session, output } => checkpoints(remote, &session, output).await,
        Sessions::Fork { session, at, output } => fork(remote, &session, at, output).await,
        Sessions::Rewind { session, to, output } => rewind(remote, &session, to, output).await,
        Sessions::Cancel { session, output } => cancel(remote, &session, output).await,
        Sessions::Export { .. } | Sessions::Import { .. } => Err(not_there("an archive")),
        Sessions::Rm(asked) => rm(remote, asked).await,
        Sessions::Prune(asked) => prune(remote, asked).await,
        Sessions::Attach(_) | Sessions::Stop(_) | Sessions::Diff(_) | Sessions::Apply(_) => {
            unreachable!("`remote::execute` has them")
        }
    }
}

async fn ls(remote: &Remote, asked: Ls) -> Outcome<u8> {
    let source = asked.dir.as_ref().map(|dir| {
        let real = std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir));
        source_of(&real.unwrap_or_else(|_| dir.clone()))
    });
    let mut listed = Vec::new();
    let look = |info: SessionInfo| {
        if source.is_none() || info.directory == source {
            listed.push(info);
        }
        if listed.len() < asked.limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    remote.walk(look).await?;
    listed.truncate(asked.limit);
    let lines: Vec<_> = listed.into_iter().map(line).collect::<Outcome<_>>()?;
    print_sessions(&lines, &asked)
}

fn line(info: SessionInfo) -> Outcome<SessionLine> {
    let usage = info.usage;
    let spent = Amounts {
        steps: usage.steps,
        tokens: usage.tokens,
        money_nanos: usage.money_nanos.unwrap_or_default(),
        wall_ms: usage.wall_ms,
        ..Amounts::default()
    };
    let totals = Totals { spent, is_priced: usage.money_nanos.is_some() };
    Ok(SessionLine { row: row(&info)?, model: Some(info.model), dir: info.directory, totals })
}

async fn show(remote: &Remote, asked: Show) -> Outcome<u8> {
    let row = session::find(&remote.journal, &asked.session).await?;
    let state = remote.state(&row.session).await?;
    let mut screen = show_screen(&asked);
    if asked.output.json != Some(Json::Object) {
        let mut shown = Seq::default();
        catch_up(&remote.journal, &row.session, &mut shown, &mut screen).await?;
    }
    for (number, text) in lines(&row, &state, None).into_iter().enumerate() {
        screen.note(if number == 0 { Tone::Strong } else { Tone::Detail }, text);
    }
    screen.result(&outrigger_agent::answer(state.conversation()), &summary(&row, &state, None))?;
    Ok(0)
}

async fn logs(
    remote: &Remote,
    name: &str,
    (follows, since): (bool, u64),
    output: Output,
) -> Outcome<u8> {
    let session = remote.find(name).await?;
    let output = Output { json: output.json.map(|_| Json::Events), ..output };
    let mut screen = Screen::on_stdout(output);
    if follows {
        follow(remote, &session, Seq(since), OnInterrupt::Leave, &mut screen).await?;
    } else {
        catch_up(&remote.journal, &session, &mut Seq(since), &mut screen).await?;
    }
    Ok(0)
}

/// Shows a session until it ends or waits, and ends as a `run` would then. Ctrl-C stops the
/// watching and nothing else.
pub(super) async fn attach(remote: &Remote, asked: Attach) -> Outcome<u8> {
    let session = remote.named_or_newest(asked.session.as_deref()).await?;
    let mut screen = Screen::new(asked.output);
    let watching = follow(remote, &session, Seq::default(), OnInterrupt::Leave, &mut screen);
    let state = Box::pin(watching).await?;
    let row = session::find(&remote.journal, session.as_str()).await?;
    let waiting = PendingApproval::below(&remote.journal, &session).await?;
    let failure = match waits(&waiting) {
        Some(failure) => Some(failure),
        None if state.in_turn() => Some(cut_off(&session)),
        None => ending(&state, &session).err(),
    };
    tell_watched(&screen, (&row, &state), (None, true), failure)
}

pub(super) async fn stop(remote: &Remote, asked: StopSessions) -> Outcome<u8> {
    let mut screen = Screen::new(asked.output);
    let mut stopped = Vec::new();
    for name in &asked.sessions {
        let session = remote.find(name).await?.root();
        if screen.during("stopping", interrupted(remote, &session)).await? {
            screen.note(Tone::Good, did_stop(&session));
            stopped.push(session);
        } else {
            let status = remote.info(&session).await?.status;
            screen.note(Tone::Good, did_not_run(&session, &status));
        }
    }
    print_stopped(&stopped, asked.output)
}

/// Stops one; whether anything ran.
async fn interrupted(remote: &Remote, session: &SessionId) -> Outcome<bool> {
    if remote.info(session).await?.group != SessionGroup::Running {
        return Ok(false);
    }
    let path = format!("/v1/sessions/{session}/interrupt");
    match remote.client.command(&path, &json!({})).await {
        Err(Error::Problem(problem)) if problem.code == ProblemCode::Conflict => {
            return Ok(false);
        }
        done => done?,
    }
    for _ in 0..limits::STOP_MS_MAX / limits::REMOTE_POLL_MS {
        if remote.info(session).await?.group != SessionGroup::Running {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(limits::REMOTE_POLL_MS)).await;
    }
    Err(still_runs(session))
}

async fn share(remote: &Remote, asked: ShareSession) -> Outcome<u8> {
    let session = remote.find(&asked.session).await?.root();
    let access = match (asked.revoke, asked.take_part) {
        (true, _) => ShareAccess::None,
        (false, true) => ShareAccess::TakePart,
        (false, false) => ShareAccess::Read,
    };
    for with in &asked.with {
        let share = ShareInfo { with: with.to_string(), access };
        let path = format!("/v1/sessions/{session}/shares");
        let _: SessionInfo = remote.client.put(&path, &share).await?;
    }
    print_shares(&session, &remote.state(&session).await?, asked.output)
}

async fn checkpoints(remote: &Remote, name: &str, output: Output) -> Outcome<u8> {
    let session = remote.find(name).await?;
    let path = format!("/v1/sessions/{session}/checkpoints");
    let list: CheckpointList = remote.client.get(&path).await?;
    let all = list.data.into_iter().map(|it| CheckpointLine {
        object: json!({
            "at": it.at,
            "at_ms": it.at_ms,
            "status": it.status,
            "said": it.said,
            "kept": it.kept,
        }),
        at: it.at,
        at_ms: it.at_ms,
        status: it.status,
        said: it.said,
        kept: it.kept,
    });
    print_checkpoints(&session, &all.collect::<Vec<_>>(), output)
}

async fn fork(remote: &Remote, name: &str, at: Option<u64>, output: Output) -> Outcome<u8> {
    let session = remote.find(name).await?;
    let (path, once) = (format!("/v1/sessions/{session}/fork"), uuid::Uuid::new_v4().to_string());
    let (asked, mut screen) = (ForkSession { at }, Screen::new(output));
    let forking = remote.client.post_once::<SessionInfo>(&path, &asked, &once);
    let fork = screen.during("copying the session's disks", forking).await?.id;
    remote.remember_fork(&session, &named(&fork)?)?;
    screen.note(Tone::Good, format!("● session {fork} begins where {session} stood"));
    screen.note(Tone::Detail, format!("go on with: outrigger sessions say {fork} \"...\""));
    if output.json.is_some() {
        show::line(&json!({ "type": "forked", "session": fork, "from": session.as_str() }))?;
    }
    Ok(0)
}

async fn rewind(remote: &Remote, name: &str, to: Option<u64>, output: Output) -> Outcome<u8> {
    let session = remote.find(name).await?;
    let path = format!("/v1/sessions/{session}/rewind");
    let CheckpointInfo { at, .. } = remote.client.post(&path, &RewindSession { to }).await?;
    let text = format!("● session {session} stands where it stood at {at}");
    Screen::new(output).note(Tone::Good, text);
    if output.json.is_some() {
        show::line(&json!({ "type": "rewound", "session": session.as_str(), "to": at }))?;
    }
    Ok(0)
}

pub(super) async fn rm(remote: &Remote, asked: RemoveSessions) -> Outcome<u8> {
    let RemoveSessions { sessions: names, output } = asked;
    // A name that is wrong takes none of the others with it.
    let mut sessions = Vec::new();
    for name in &names {
        sessions.push(remote.find(name).await?);
    }
    for session in &sessions {
        remove(remote, session).await?;
    }
    tell_removed(&sessions, None, output)
}

async fn remove(remote: &Remote, session: &SessionId) -> Outcome {
    remote.client.delete(&format!("/v1/sessions/{session}")).await?;
    gone(&remote.kept.patch(session.as_str()))?;
    gone(&remote.kept.written(session.as_str()))?;
    gone(&remote.kept.apply(session.as_str()))
}

/// Removes the person's own sessions that are old: an administrator may remove those of others,
/// and has to name them.
pub(super) async fn prune(remote: &Remote, asked: PruneSessions) -> Outcome<u8> {
    let before_ms = now_ms().saturating_sub(asked.older_than.ms());
    let source = asked
        .dir
        .as_ref()
        .map(|dir| source_of(&std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone())));
    let ServerInfo { person, .. } = remote.client.get("/v1/server").await?;
    let mut sessions: Vec<(SessionId, String)> = Vec::new();
    let look = |info: SessionInfo| {
        let is_busy = info.group == SessionGroup::Running || info.approvals > 0;
        let is_meant = info.person == person && (source.is_none() || info.directory == source);
        let is_old = !is_busy && info.last_at_ms <= before_ms;
        if is_old
            && is_meant
            && let Some(id) = SessionId::new(&info.id)
        {
            sessions.push((id, info.title));
        }
        ControlFlow::Continue(())
    };
    remote.walk(look).await?;
    let mut removed = Vec::new();
    for (session, title) in sessions {
        if asked.dry_run {
            tell_dry(&session, &title, asked.output);
        } else if let Err(failure) = remove(remote, &session).await {
            // One that somebody came back to is left for the next time.
            if failure.kind != Kind::Conflict {
                return Err(failure);
            }
            continue;
        }
        removed.push(session);
    }
    tell_pruned(&removed, None, &asked)
}

async fn cancel(remote: &Remote, name: &str, output: Output) -> Outcome<u8> {
    let session = remote.find(name).await?;
    let asked = CancelSession { reason: "outrigger sessions cancel".to_owned() };
    remote.client.command(&format!("/v1/sessions/{session}/cancel"), &asked).await?;
    let text = format!("● session {session} is cancelled; its sandbox is deleted");
    Screen::new(output).note(Tone::Good, text);
    if output.json.is_some() {
        show::line(&json!({ "type": "cancelled", "session": session.as_str() }))?;
    }
    Ok(0)
}
