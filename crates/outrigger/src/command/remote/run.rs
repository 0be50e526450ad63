//! `outrigger run` at a server: the directory is sent, and what the agent changed comes back.

use outrigger_agent::{Seq, SessionId};
use outrigger_api::{
    AttachedText, CreateSession, SendMessage, SentWorkspace, ServerInfo, SessionInfo,
    SessionLimits, TrustedContent,
};
use outrigger_repository::DirectoryArchive;
use std::path::{Path, PathBuf};

use super::changes::drive;
use super::connection::{Remote, named, not_there, persist, source_of};
use crate::command::detach;
use crate::command::run::{Run, STDIN, no_session, task_and_context};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Limits, Model};
use crate::project_file::ProjectFile;
use crate::show::{self, Screen, Tone, amounts::size};
use crate::trust::{self, Standing};
use crate::{picture, workspace};

pub(super) async fn run(remote: &Remote, run: Run) -> Outcome<u8> {
    can_be_sent(&run)?;
    let mut screen = Screen::new(run.output);
    let dir = std::fs::canonicalize(&run.dir).map_err(|error| {
        Failure::new(Kind::NotFound, format!("{}: {error}", run.dir.display()))
            .hint("Name a directory that is there with --dir.")
    })?;
    let pictures = picture::attached(&run.shown.picture)?;
    let (text, context) = task_and_context(run.task.as_deref(), &mut screen).await?;
    let data = context.map(|text| AttachedText { name: STDIN.to_owned(), text });
    let data = data.into_iter().collect();
    if run.goes_on {
        let session = last_of(remote, &dir).await?;
        let before = remote.head(&session).await?;
        say(remote, &session, SendMessage { data, pictures, ..SendMessage::new(text) }).await?;
        return Box::pin(drive(remote, &session, before, run.apply, &mut screen)).await;
    }
    let config = Config::of_files(remote.paths.configs())?;
    let words = run.net.words()?;
    let asked = CreateSession {
        text,
        agent: run.agent,
        network: words.map(|words| words.all().to_vec()).unwrap_or_default(),
        model: run.model.model,
        image: run.image,
        data,
        pictures,
        limits: session_limits(run.limits),
        ..CreateSession::default()
    };
    let session = Box::pin(open(remote, &config, &dir, asked, &mut screen)).await?;
    if run.detach {
        return detach::told(&session, "at the server", run.output);
    }
    Box::pin(drive(remote, &session, Seq::default(), run.apply, &mut screen)).await
}

/// Sends a directory, and opens a session that begins with it.
pub(super) async fn open(
    remote: &Remote,
    config: &Config,
    dir: &Path,
    asked: CreateSession,
    screen: &mut Screen,
) -> Outcome<SessionId> {
    // Nothing is packed and sent for whoever may begin nothing.
    let ServerInfo { rights, .. } = remote.client.get("/v1/server").await?;
    if !rights.start {
        let text = "you may not begin sessions at this server";
        return Err(Failure::new(Kind::Denied, text)
            .hint("Roles are groups of `policy.people`: ask who runs it."));
    }
    let (workspace, top) = Box::pin(send(remote, config, dir, screen)).await?;
    let request = CreateSession { workspace: Some(workspace), ..asked };
    let once = uuid::Uuid::new_v4().to_string();
    let opening = persist(async || remote.client.post_once("/v1/sessions", &request, &once).await);
    let info: SessionInfo = screen.during("opening the session", opening).await?;
    let session = named(&info.id)?;
    remote.remember(&session, &top)?;
    let server = remote.client.server();
    screen.note(Tone::Detail, format!("session {session}: {server}/sessions/{session}"));
    Ok(session)
}

/// An error for what is of this machine alone.
fn can_be_sent(run: &Run) -> Outcome {
    let Model { script, .. } = &run.model;
    let said = [
        ("--include", !run.include.is_empty()),
        ("--name", run.name.is_some()),
        ("--script", script.is_some()),
    ];
    match said.into_iter().find(|(_, is_said)| *is_said) {
        Some((flag, _)) => Err(not_there(flag)),
        None => Ok(()),
    }
}

pub(super) fn session_limits(limits: Limits) -> SessionLimits {
    let budget = limits.budget();
    SessionLimits {
        steps_max: limits.max_steps,
        tokens_max: budget.tokens,
        money_nanos_max: budget.money_nanos,
        wall_ms_max: budget.wall_ms,
        cpu_ms_max: budget.cpu_ms,
        egress_bytes_max: budget.egress_bytes,
    }
}

/// Packs a directory and sends it: as it is named there, and the top of what was sent.
async fn send(
    remote: &Remote,
    config: &Config,
    dir: &Path,
    screen: &mut Screen,
) -> Outcome<(SentWorkspace, PathBuf)> {
    let tree = workspace::tree(dir)?;
    let guides = ProjectFile::guides(&tree);
    let judged = trust::settle(&remote.paths, &tree.top, guides, screen).await?;
    let trusted = judged.iter().filter(|it| it.standing == Standing::Trusted);
    let trusted = trusted.map(|it| TrustedContent {
        path: it.file.name.clone(),
        sha256: it.file.digest.as_str().to_owned(),
    });
    let trusted = trusted.collect();
    let mut notes = Vec::new();
    let packing = workspace::copied_with_history(&remote.paths, config, tree, &mut notes);
    let (tree, packed) = screen.during("packing the directory", packing).await?;
    notes.into_iter().for_each(|(tone, text)| screen.note(tone, text));
    let DirectoryArchive { archive, files, bytes, left_out, dependencies, .. } = packed;
    for text in show::not_copied(&left_out) {
        screen.note(Tone::Warning, text);
    }
    if !dependencies.is_empty() {
        let names: Vec<String> =
            dependencies.iter().flatten().take(3).map(|it| it.display().to_string()).collect();
        let more = if dependencies.len() > names.len() { ", …" } else { "" };
        let text = format!("  what it depends on is not sent: {}{more}", names.join(", "));
        screen.note(Tone::Detail, text);
    }
    let whole = archive.metadata().map_or(bytes, |about| about.len());
    let what = format!("sending {}, {}", show::count(files, "file"), size(whole));
    let uploaded = screen.during(&what, remote.client.upload(archive)).await?;
    let top = tree.top.display();
    let (files, size) = (show::count(files, "file"), size(bytes));
    screen.note(Tone::Detail, format!("{files}, {size} sent from {top}"));
    let (source, prefix) = (source_of(&tree.top), tree.prefix.display().to_string());
    Ok((SentWorkspace { id: uploaded.id, source, prefix, trusted }, tree.top))
}

/// Says something to a session.
pub(super) async fn say(remote: &Remote, session: &SessionId, message: SendMessage) -> Outcome {
    Ok(remote.client.command(&format!("/v1/sessions/{session}/messages"), &message).await?)
}

/// The newest session of a directory of this machine.
async fn last_of(remote: &Remote, dir: &Path) -> Outcome<SessionId> {
    match last_in(remote, dir).await? {
        Some(info) => remote.find(&info.id).await,
        None => Err(no_session(dir)),
    }
}

/// The newest session of a directory of this machine in which the person may speak, if there
/// is one.
pub(super) async fn last_in(remote: &Remote, dir: &Path) -> Outcome<Option<SessionInfo>> {
    remote.newest_in(dir, |info| info.rights.speak && !info.cancelled).await
}
