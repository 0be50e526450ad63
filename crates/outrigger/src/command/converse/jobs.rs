//! What takes long in a conversation. Each job has all that it needs, so that keys are heard
//! meanwhile.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use outrigger_agent::{Item, Message, Seq, State};
use outrigger_engine::{EgressQuestion, ResumeChange};
use outrigger_repository::{Accept, Change, Rules};
use outrigger_store::load_all;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

use super::context::Context;
use super::network;
use super::resume::{OpenedTalk, go_on, take_up};
use super::talk::Parts;
use super::work;
use crate::abandoned;
use crate::command::detach::Driver;
use crate::command::finish::{Back, Finish, since};
use crate::command::task::{self, OpenedTask, Task, open};
use crate::compose;
use crate::conversation::{Hazards, Slash};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Apply;
use crate::network::{HostChoice, act};
use crate::project_file::ProjectFile;
use crate::show::row::Row;
use crate::show::{self, Screen, Tone, count, inert};
use crate::trust::{self, JudgedFile};
use crate::{limits, models, own_files, repository, session, workspace};

/// What a job came to.
pub(super) enum JobEnd {
    Rows(Outcome<Vec<Row>>),
    Files(Vec<String>),
    Hosts(Box<HostsSeen>),
    /// What was written back by now, and what is told of it.
    Applied(Outcome<(Vec<Vec<Change>>, Vec<Row>)>),
    Opened(Outcome<Box<OpenedTalk>>),
}

/// The hosts that are asked for.
pub(super) struct HostsSeen {
    pub(super) questions: Vec<EgressQuestion>,
    /// Answers that had been given when it was looked.
    pub(super) answers: u64,
    /// What is told of the last one, if it was acted on here.
    pub(super) answered: Outcome<Vec<Row>>,
}

type Job = LocalBoxFuture<'static, JobEnd>;

/// A job that goes on by itself once it was looked at, also while something else is awaited: that
/// may wait for what the job holds, such as a connection to the journal. It ends when it is dropped.
pub(super) fn as_task(job: Job) -> Job {
    let work = async move {
        let mut task = JoinSet::new();
        task.spawn_local(job);
        match task.join_next().await.expect("it was just begun") {
            Ok(end) => end,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    };
    work.boxed_local()
}

/// Begins a session with what is said.
pub(super) fn begin(context: Context, message: Message) -> Job {
    let work = async move {
        let mut screen = Screen::keeping();
        // Whoever sits there was asked before the first prompt.
        let tree = workspace::tree(&context.dir)?;
        let files = ProjectFile::all(&tree);
        let judged = trust::settle(&context.paths, &tree.top, files, &screen).await?;
        let mut messages: Vec<_> = judged.into_iter().filter_map(JudgedFile::message).collect();
        messages.push(message);
        let task = Task {
            who: session::WHO.to_owned(),
            tree,
            sent: None,
            messages,
            apply: Apply::default(),
            model: context.model.clone(),
            name: None,
            driver: Driver::Here,
            agent: None,
        };
        let task = open(&context.paths, &context.config, None, task, &mut screen).await?;
        Ok(Box::new(OpenedTalk { task, before: Vec::new(), rows: screen.kept(), drive: true }))
    };
    work.map(JobEnd::Opened).boxed_local()
}

/// Goes on with the last session of the directory.
pub(super) fn go_on_with_last(context: Context) -> Job {
    let work = async move {
        let store = compose::store(&context.paths).await?;
        let Some(row) = session::last_in(&store, &context.dir).await? else {
            return Err(Failure::new(Kind::NotFound, "no session began in this directory")
                .hint("Say something: that begins one."));
        };
        go_on(&context, store, &row.session).await
    };
    work.map(JobEnd::Opened).boxed_local()
}

/// Says how one goes on with the last session of the directory, if it is not over.
pub(super) fn look_for_last(context: Context) -> Job {
    let work = async move {
        let paths = &context.paths;
        if paths.database().is_sqlite() && !paths.harness().join("journal.db").exists() {
            return Ok(Vec::new());
        }
        let store = compose::store(&context.paths).await?;
        let Some(row) = session::last_in(&store, &context.dir).await? else {
            return Ok(Vec::new());
        };
        let standing = abandoned::standing(&context.paths, &*store.journal, &row).await?;
        let title = inert(&row.title).replace(['\n', '\t'], " ");
        let (session, when) = (&row.session, show::when(row.last_at_ms));
        let text = match standing.as_str() {
            "answered" | "done" => return Ok(Vec::new()),
            "running" => format!("  session {session} is driven by another process: {title}"),
            standing => format!("  session {session} ({standing}, {when}): {title}"),
        };
        let hint = format!("  /sessions {session} goes on with it, as does `outrigger --continue`");
        Ok(vec![Row::note(Tone::Warning, &text), Row::note(Tone::Detail, &hint)])
    };
    work.map(JobEnd::Rows).boxed_local()
}

/// The files of the directory.
pub(super) fn files(context: Context) -> Job {
    let work = async move {
        let listing = tokio::task::spawn_blocking(move || {
            let max = context.config.workspace_files_max;
            outrigger_repository::files(&context.dir, &Rules::of_user(), max)
        });
        // Where it can't be read, the first message says why.
        listing.await.ok().and_then(Result::ok).unwrap_or_default()
    };
    work.map(JobEnd::Files).boxed_local()
}

/// Looks what hosts the sandboxes of a session ask for.
pub(super) fn hosts(parts: Parts, answers: u64) -> Job {
    seen(parts, answers, Ok(Vec::new())).map(JobEnd::Hosts).boxed_local()
}

/// Acts on what a person said to one of them, and looks again.
pub(super) fn answer_host(
    context: Context,
    parts: Parts,
    answers: u64,
    (question, choice): (EgressQuestion, HostChoice),
) -> Job {
    let work = async move {
        let answered = match parts.engine.egress() {
            Some(egress) => act(&**egress, &context.paths, &question, choice).await,
            None => Err(Context::not_open()),
        };
        let answered = answered.map(|text| vec![Row::note(Tone::Detail, &text)]);
        seen(parts, answers, answered).await
    };
    work.map(JobEnd::Hosts).boxed_local()
}

async fn seen(parts: Parts, answers: u64, answered: Outcome<Vec<Row>>) -> Box<HostsSeen> {
    let questions = match parts.engine.egress() {
        Some(egress) => egress.questions().await,
        None => Vec::new(),
    };
    Box::new(HostsSeen { questions, answers, answered })
}

/// A session that waits: what it changed is kept as a patch, its disks are kept, and it rests.
pub(super) fn after_turn(context: Context, parts: Parts) -> Job {
    let work = async move {
        let _alone = parts.sandboxes.lock().await;
        let state = parts.engine.state(&parts.session).await?;
        let screen = Screen::keeping();
        let finish = finish(&context, &parts);
        let (changes, _) = taken(&finish, &state).await?;
        let hazards = outrigger_repository::hazards(None, &changes);
        finish.keep(&outrigger_repository::patch(&changes, &hazards))?;
        finish.tidy(&screen).await;
        let mut rows = screen.kept();
        if !changes.is_empty() {
            rows.push(work::changed(changes.len()));
        }
        Ok(rows)
    };
    work.map(JobEnd::Rows).boxed_local()
}

fn finish<'a>(context: &'a Context, parts: &'a Parts) -> Finish<'a> {
    Finish {
        paths: &context.paths,
        store: &parts.store,
        engine: &parts.engine,
        session: &parts.session,
        back: Back::Patch,
        retention_ms: context.config.retention_ms(),
        notify: &context.config.notify,
    }
}

/// What a session changed, and what of it is no file.
async fn taken(finish: &Finish<'_>, state: &State) -> Outcome<(Vec<Change>, Vec<String>)> {
    let changes = finish.changes(state).await?;
    Ok(changes.map(|changes| (changes.changed, changes.special)).unwrap_or_default())
}

/// Does a command.
pub(super) fn command(context: Context, parts: Option<Parts>, command: Slash) -> Job {
    match command {
        Slash::Apply(hazards) => apply(context, parts, hazards).map(JobEnd::Applied).boxed_local(),
        Slash::Branch => branch(context, parts).map(JobEnd::Rows).boxed_local(),
        Slash::Undo => undo(context, parts).map(JobEnd::Applied).boxed_local(),
        Slash::Fork => fork(context, parts).map(JobEnd::Opened).boxed_local(),
        Slash::Model(Some(_)) => change_model(context, parts).map(JobEnd::Opened).boxed_local(),
        Slash::Net(Some(words)) => network::widen(parts, words).map(JobEnd::Rows).boxed_local(),
        Slash::Sessions(Some(name)) => {
            let work = async move {
                let store = compose::store(&context.paths).await?;
                let row = session::find(&*store.journal, &name).await?;
                if parts.is_some_and(|parts| parts.session == row.session) {
                    let text = format!("session {} is this one", row.session);
                    return Err(Failure::new(Kind::Usage, text));
                }
                go_on(&context, store, &row.session).await
            };
            work.map(JobEnd::Opened).boxed_local()
        }
        Slash::Rewind(to) => {
            rewind(parts, to.map(|to| Seq(to.get()))).map(JobEnd::Opened).boxed_local()
        }
        command => shows(context, parts, command).map(JobEnd::Rows).boxed_local(),
    }
}

/// Commands that only show something.
async fn shows(context: Context, parts: Option<Parts>, command: Slash) -> Outcome<Vec<Row>> {
    match (command, parts) {
        (Slash::Model(_), _) => {
            let text = format!("  {}; /model NAME asks another", context.model_name());
            Ok(vec![Row::note(Tone::Plain, &text)])
        }
        (Slash::Net(_), None) => Ok(vec![network::row(&context.network())]),
        (Slash::Sessions(_), _) => sessions(&context).await,
        (_, None) => Err(Context::not_open()),
        (command, Some(parts)) => {
            let state = parts.engine.state(&parts.session).await?;
            match command {
                Slash::Cost => Ok(work::cost(&state)),
                Slash::Net(_) => {
                    let words = state.spec().map_or(&[][..], |spec| spec.network());
                    Ok(vec![network::row(&crate::network::shown(words))])
                }
                Slash::Compact => {
                    let is_reply = |item: &Item| matches!(item, Item::Reply(_));
                    if state.conversation().iter().any(is_reply) {
                        parts.engine.compact(&parts.session, session::WHO).await?;
                    }
                    Ok(work::context(&state))
                }
                _ => diff(&context, &parts, &state).await,
            }
        }
    }
}

async fn diff(context: &Context, parts: &Parts, state: &State) -> Outcome<Vec<Row>> {
    let _alone = parts.sandboxes.lock().await;
    let (changes, special) = taken(&finish(context, parts), state).await?;
    if changes.is_empty() && special.is_empty() {
        return Ok(vec![Row::note(Tone::Detail, "  nothing changed in the sandbox")]);
    }
    let hazards = outrigger_repository::hazards(None, &changes);
    let patch = outrigger_repository::patch(&changes, &hazards);
    let mut rows = show::diff_rows(&String::from_utf8_lossy(&patch), limits::DIFF_LINES_MAX);
    rows.extend(special.iter().map(|path| {
        Row::note(Tone::Warning, &format!("! not copied: {path}: a FIFO, device or socket"))
    }));
    rows.extend(show::warnings("", &hazards).iter().map(|text| Row::note(Tone::Warning, text)));
    Ok(rows)
}

/// Writes back what changed since it was written back last.
async fn apply(
    context: Context,
    parts: Option<Parts>,
    hazards: Hazards,
) -> Outcome<(Vec<Vec<Change>>, Vec<Row>)> {
    let parts = parts.ok_or_else(Context::not_open)?;
    let _alone = parts.sandboxes.lock().await;
    let state = parts.engine.state(&parts.session).await?;
    let dir = source(&state)?;
    let (changes, _) = taken(&finish(&context, &parts), &state).await?;
    let changes = since(&context.applied, changes);
    let mut applied = context.applied;
    if changes.is_empty() {
        let text = "  there is nothing that was not written back";
        return Ok((applied, vec![Row::note(Tone::Detail, text)]));
    }
    let accept = if hazards == Hazards::Accepted { Accept::Named } else { Accept::Nothing };
    own_files::stay_untouched(&context.paths, &dir, &changes)?;
    write(&dir, &changes, accept)?;
    let files = count(changes.len() as u64, "file");
    applied.push(changes);
    let text = format!("● {files} written back to {}; /undo takes that back", dir.display());
    Ok((applied, vec![Row::note(Tone::Good, &text)]))
}

/// Makes a branch of what was committed.
async fn branch(context: Context, parts: Option<Parts>) -> Outcome<Vec<Row>> {
    let parts = parts.ok_or_else(Context::not_open)?;
    let _alone = parts.sandboxes.lock().await;
    let state = parts.engine.state(&parts.session).await?;
    let finish = finish(&context, &parts);
    let (changes, _) = taken(&finish, &state).await?;
    let screen = Screen::keeping();
    finish.branch(&state, &changes, &screen).await?;
    Ok(screen.kept())
}

/// The directory that a session began with.
fn source(state: &State) -> Outcome<PathBuf> {
    let source = state.spec().and_then(|spec| spec.workspace.as_ref());
    source.map(|it| PathBuf::from(&it.source)).ok_or_else(Context::not_open)
}

fn write(dir: &Path, changes: &[Change], accept: Accept) -> Outcome {
    outrigger_repository::apply(dir, changes, accept).map_err(|error| {
        let failure = repository::failed(dir, &error);
        match error {
            outrigger_repository::Error::Hazards(_) if accept == Accept::Nothing => {
                failure.hint("`/apply all` accepts what can be accepted.")
            }
            _ => failure,
        }
    })
}

/// Takes back what was written last.
async fn undo(context: Context, parts: Option<Parts>) -> Outcome<(Vec<Vec<Change>>, Vec<Row>)> {
    let parts = parts.ok_or_else(Context::not_open)?;
    let dir = source(&parts.engine.state(&parts.session).await?)?;
    let mut applied = context.applied;
    let Some(last) = applied.pop() else {
        let text = "nothing was written back in this conversation";
        return Err(Failure::new(Kind::NotFound, text));
    };
    let back: Vec<Change> = last
        .into_iter()
        .map(|Change { path, before, after }| Change { path, before: after, after: before })
        .collect();
    write(&dir, &back, Accept::Named)?;
    let files = count(back.len() as u64, "file");
    let text = format!("● {files} as before; the sandbox keeps its changes");
    Ok((applied, vec![Row::note(Tone::Good, &text)]))
}

/// Goes on in a copy of the session.
async fn fork(context: Context, parts: Option<Parts>) -> Outcome<Box<OpenedTalk>> {
    let Parts { store, engine, session, .. } = parts.ok_or_else(Context::not_open)?;
    let into = session::new_id();
    Box::pin(engine.fork(&session, None, &into, session::WHO)).await?;
    let mut opened = go_on(&context, store, &into).await?;
    let text = format!("● session {into} goes on where {session} stands; that one stays as it is");
    opened.rows = vec![Row::note(Tone::Good, &text)];
    Ok(opened)
}

/// Goes on with the model that was chosen.
async fn change_model(context: Context, parts: Option<Parts>) -> Outcome<Box<OpenedTalk>> {
    let Parts { store, engine, session, .. } = parts.ok_or_else(Context::not_open)?;
    let mut model = models::open(&context.paths, &context.model).await?;
    task::price(&context.config, &store, &mut model, session::WHO).await?;
    let change = ResumeChange { model: Some(model.spec), ..ResumeChange::default() };
    engine.resume(&session, session::WHO, change).await?;
    // The lock is held by who goes on with it: the same conversation.
    let mut opened = take_up(&context, store, session, None).await?;
    let text = format!("● from now on {} is asked", context.model_name());
    opened.rows = vec![Row::note(Tone::Good, &text)];
    Ok(opened)
}

/// Goes back to where the session stood before.
async fn rewind(parts: Option<Parts>, to: Option<Seq>) -> Outcome<Box<OpenedTalk>> {
    let Parts { store, engine, session, sandboxes } = parts.ok_or_else(Context::not_open)?;
    let _alone = sandboxes.lock().await;
    outrigger_engine::suspend(&engine, &session).await?;
    let (moment, warnings) = engine.rewind(&session, to, session::WHO).await?;
    let explained = warnings.iter().map(|warning| {
        Row::note(Tone::Warning, &format!("! {}", outrigger_engine::workspace::explain(warning)))
    });
    let mut rows: Vec<Row> = explained.collect();
    let text = match moment.said.lines().next() {
        None => "● back at the beginning, before anything was said".to_owned(),
        Some(said) => format!("● back to where this was answered: {}", inert(said)),
    };
    rows.push(Row::note(Tone::Good, &text));
    let mut before = Vec::new();
    load_all(&*store.journal, &session, Seq::default(), |record| before.push(record)).await?;
    // The lock is held by who goes on with it: the same conversation.
    let task = OpenedTask { store, engine, session, lock: None };
    Ok(Box::new(OpenedTalk { task, before, rows, drive: false }))
}

async fn sessions(context: &Context) -> Outcome<Vec<Row>> {
    let store = compose::store(&context.paths).await?;
    let mut listed = Vec::new();
    session::walk(&*store.journal, |row| {
        if !session::is_below(&row.session) {
            listed.push(row);
        }
        match listed.len() < limits::SESSIONS_SHOWN {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .await?;
    let mut rows = Vec::new();
    for row in &listed {
        let standing = abandoned::standing(&context.paths, &*store.journal, row).await?;
        let (when, title) = (show::when(row.last_at_ms), inert(&row.title).replace('\n', " "));
        rows.push(Row::note(
            Tone::Plain,
            &format!("  {}  {when}  {standing:<18}  {title}", row.session),
        ));
    }
    let text =
        if rows.is_empty() { "  no sessions yet" } else { "  /sessions NAME goes on with one" };
    rows.push(Row::note(Tone::Detail, text));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use std::time::Duration;
    use tokio::sync::Mutex;

    /// As where a message is sent while what follows a turn reads the journal.
    #[tokio::test]
    async fn a_job_lets_go_of_what_is_waited_for_elsewhere() {
        let conversation = async {
            let connection = Rc::new(Mutex::new(()));
            let of_job = Rc::clone(&connection);
            let (begins, begun) = tokio::sync::oneshot::channel();
            let work = async move {
                let _held = of_job.lock().await;
                begins.send(()).unwrap();
                tokio::task::yield_now().await;
                JobEnd::Files(Vec::new())
            };
            let mut job = as_task(work.boxed_local());
            assert!((&mut job).now_or_never().is_none(), "it is looked at once");
            begun.await.unwrap();
            let lets_go = tokio::time::timeout(Duration::from_secs(30), connection.lock());
            assert!(lets_go.await.is_ok(), "it goes on meanwhile");
            assert!(matches!(job.await, JobEnd::Files(_)));
        };
        tokio::task::LocalSet::new().run_until(conversation).await;
    }
}
