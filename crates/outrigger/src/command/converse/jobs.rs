//! What takes long in a conversation. Each job has all that it needs, so that keys are heard
//! meanwhile.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use outrigger_agent::{Item, Message};
use outrigger_engine::EgressQuestion;
use outrigger_repository::{Accept, Change};
use std::path::Path;
use std::rc::Rc;
use tokio::task::JoinSet;

use super::context::{AppliedChanges, Context};
use super::source::{ListedSession, Listing, OpenedTalk, SessionWork, WorkspaceDiff};
use super::work;
use crate::conversation::{Hazards, Slash};
use crate::exit::{Failure, Kind, Outcome};
use crate::network::HostChoice;
use crate::show::row::Row;
use crate::show::{self, Tone, count, inert};
use crate::{limits, own_files, repository, workspace};

/// What a job came to.
pub(super) enum JobEnd {
    Rows(Outcome<Vec<Row>>),
    Files(Vec<String>),
    Hosts(Box<HostsSeen>),
    Opened(Outcome<OpenedTalk>),
}

/// The hosts that are asked for.
pub(super) struct HostsSeen {
    pub(super) questions: Vec<EgressQuestion>,
    /// Answers that had been given when it was looked.
    pub(super) answers: u64,
    /// What is told of the last one, if it was acted on here.
    pub(super) answered: Outcome<Vec<Row>>,
}

/// A session, as jobs have it.
pub(super) type Work = Rc<dyn SessionWork>;

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
    let work = async move { context.sessions.begin(message).await };
    work.map(JobEnd::Opened).boxed_local()
}

/// Goes on with the last session of the directory.
pub(super) fn go_on_with_last(context: Context) -> Job {
    let work = async move {
        let last = context.sessions.list(Listing::LastHere).await?;
        let Some(last) = last.first() else {
            return Err(Failure::new(Kind::NotFound, "no session began in this directory")
                .hint("Say something: that begins one."));
        };
        let going_on = context.sessions.go_on(last.session.as_str()).await;
        going_on.map_err(|failure| failure.hint("What you write now begins another session."))
    };
    work.map(JobEnd::Opened).boxed_local()
}

/// Says how one goes on with the last session of the directory, if it is not over.
pub(super) fn look_for_last(context: Context) -> Job {
    let work = async move {
        let last = context.sessions.list(Listing::LastHere).await?;
        let Some(ListedSession { session, standing, title, last_at_ms, is_held }) =
            last.into_iter().next()
        else {
            return Ok(Vec::new());
        };
        let title = inert(&title).replace(['\n', '\t'], " ");
        let text = match standing.as_str() {
            "answered" | "done" => return Ok(Vec::new()),
            _ if is_held => format!("  session {session} is driven by another process: {title}"),
            standing => {
                let when = show::when(last_at_ms);
                format!("  session {session} ({standing}, {when}): {title}")
            }
        };
        let hint = format!("  /sessions {session} goes on with it, as does `outrigger --continue`");
        Ok(vec![Row::note(Tone::Warning, &text), Row::note(Tone::Detail, &hint)])
    };
    work.map(JobEnd::Rows).boxed_local()
}

/// The files of the directory.
pub(super) fn files(context: Context) -> Job {
    let (dir, max, rules) = (context.dir, context.files_max, workspace::rules(&context.paths));
    let work = async move {
        let listing =
            tokio::task::spawn_blocking(move || outrigger_repository::files(&dir, &rules, max));
        // Where it can't be read, the first message says why.
        listing.await.ok().and_then(Result::ok).unwrap_or_default()
    };
    work.map(JobEnd::Files).boxed_local()
}

/// Looks what hosts the sandboxes of a session ask for.
pub(super) fn hosts(work: Work, answers: u64) -> Job {
    let job = async move {
        let questions = work.hosts().await;
        Box::new(HostsSeen { questions, answers, answered: Ok(Vec::new()) })
    };
    job.map(JobEnd::Hosts).boxed_local()
}

/// Acts on what a person said to one of them, and looks again.
pub(super) fn answer_host(
    work: Work,
    answers: u64,
    (question, choice): (EgressQuestion, HostChoice),
) -> Job {
    let job = async move {
        let answered = work.answer_host(&question, choice).await;
        let answered = answered.map(|text| vec![Row::note(Tone::Detail, &text)]);
        Box::new(HostsSeen { questions: work.hosts().await, answers, answered })
    };
    job.map(JobEnd::Hosts).boxed_local()
}

/// A session that waits: what it changed is kept as a patch, its disks are kept, and it rests.
pub(super) fn after_turn(work: Work) -> Job {
    let job = async move {
        let (files, mut rows) = work.rest().await?;
        if files > 0 {
            rows.push(work::changed(files));
        }
        Ok(rows)
    };
    job.map(JobEnd::Rows).boxed_local()
}

/// Does a command.
pub(super) fn command(context: Context, work: Option<Work>, command: Slash) -> Job {
    match command {
        Slash::Apply(hazards) => apply(context, work, hazards).map(JobEnd::Rows).boxed_local(),
        Slash::Undo => undo(context, work).map(JobEnd::Rows).boxed_local(),
        Slash::Fork | Slash::Model(Some(_)) | Slash::Sessions(Some(_)) | Slash::Rewind(_) => {
            other_session(context, work, command).map(JobEnd::Opened).boxed_local()
        }
        command => shows(context, work, command).map(JobEnd::Rows).boxed_local(),
    }
}

/// Commands after which another session, or another state of it, is gone on with.
async fn other_session(
    context: Context,
    work: Option<Work>,
    command: Slash,
) -> Outcome<OpenedTalk> {
    if let Slash::Sessions(Some(name)) = &command {
        if let Some(work) = work.filter(|work| work.session().as_str().starts_with(name.as_str())) {
            return Err(Failure::new(
                Kind::Usage,
                format!("session {} is this one", work.session()),
            ));
        }
        return context.sessions.go_on(name).await;
    }
    let work = work.ok_or_else(Context::not_open)?;
    match command {
        Slash::Rewind(to) => work.rewind(to).await,
        Slash::Model(name) => {
            let mut opened = work.ask_model(&name.unwrap_or_default()).await?;
            let text = format!("● from now on {} is asked", context.sessions.name());
            opened.rows.push(Row::note(Tone::Good, &text));
            Ok(opened)
        }
        _ => {
            let (from, into) = (work.session().clone(), work.fork().await?);
            let mut opened = context.sessions.go_on(into.as_str()).await?;
            let text =
                format!("● session {into} goes on where {from} stands; that one stays as it is");
            opened.rows = vec![Row::note(Tone::Good, &text)];
            Ok(opened)
        }
    }
}

/// Commands that only show something, or say it.
async fn shows(context: Context, work: Option<Work>, command: Slash) -> Outcome<Vec<Row>> {
    match (command, work) {
        (Slash::Model(_), work) => {
            let state = match work {
                Some(work) => Some(work.state().await?),
                None => None,
            };
            let asked = state.as_ref().and_then(|state| state.spec());
            let name = asked.map_or_else(|| context.sessions.name(), |it| inert(&it.model.name));
            Ok(vec![Row::note(Tone::Plain, &format!("  {name}; /model NAME asks another"))])
        }
        (Slash::Net(_), None) => Ok(vec![work::network(&context.sessions.network())]),
        (Slash::Sessions(_), _) => sessions(&context).await,
        (_, None) => Err(Context::not_open()),
        (Slash::Diff, Some(work)) => diff(&*work).await,
        (Slash::Branch, Some(work)) => work.branch().await,
        (Slash::Net(more), Some(work)) => {
            Ok(vec![work::network(&work.reach(more.as_ref()).await?)])
        }
        (Slash::Compact, Some(work)) => {
            let state = work.state().await?;
            if state.conversation().iter().any(|item| matches!(item, Item::Reply(_))) {
                work.compact().await?;
            }
            Ok(work::context(&state))
        }
        (_, Some(work)) => Ok(work::cost(&work.state().await?)),
    }
}

async fn diff(work: &dyn SessionWork) -> Outcome<Vec<Row>> {
    let WorkspaceDiff { patch, warnings } = work.diff().await?;
    if patch.is_empty() && warnings.is_empty() {
        return Ok(vec![Row::note(Tone::Detail, "  nothing changed in the sandbox")]);
    }
    let mut rows = show::diff_rows(&patch, limits::DIFF_LINES_MAX);
    rows.extend(warnings.iter().map(|text| Row::note(Tone::Warning, text)));
    Ok(rows)
}

/// Writes back what changed since it was written back last.
async fn apply(context: Context, work: Option<Work>, hazards: Hazards) -> Outcome<Vec<Row>> {
    let work = work.ok_or_else(Context::not_open)?;
    let dir = work.source().await?;
    if !context.dir.starts_with(&dir) {
        // Where the process may write was settled when it began.
        let session = work.session();
        let text = format!(
            "session {session} began in {}: from here nothing is written there",
            dir.display()
        );
        return Err(Failure::new(Kind::Usage, text).hint(format!(
            "`outrigger sessions apply {session}` writes it back, outside of this conversation."
        )));
    }
    let changes = work.changes().await?;
    let mut written = work.written()?;
    let changes = outrigger_repository::since(&dir, &written.changes(), changes);
    if changes.is_empty() {
        let text = "  there is nothing that was not written back";
        return Ok(vec![Row::note(Tone::Detail, text)]);
    }
    let accept = if hazards == Hazards::Accepted { Accept::Named } else { Accept::Nothing };
    own_files::stay_untouched(&context.paths, &dir, &changes)?;
    write(&dir, &changes, accept)?;
    let files = count(changes.len() as u64, "file");
    written.add(&changes)?;
    let text = format!("● {files} written back to {}; /undo takes that back", dir.display());
    context.applied.borrow_mut().push(AppliedChanges { dir, changes });
    Ok(vec![Row::note(Tone::Good, &text)])
}

fn write(dir: &Path, changes: &[Change], accept: Accept) -> Outcome {
    outrigger_repository::apply(dir, changes, accept).map(drop).map_err(|error| {
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
async fn undo(context: Context, work: Option<Work>) -> Outcome<Vec<Row>> {
    let Some(AppliedChanges { dir, changes }) = context.applied.borrow().last().cloned() else {
        let text = "nothing was written back in this conversation";
        return Err(Failure::new(Kind::NotFound, text));
    };
    let back: Vec<Change> = changes.into_iter().map(Change::reversed).collect();
    write(&dir, &back, Accept::Named)?;
    if let Some(work) = work {
        work.written()?.add(&back)?;
    }
    context.applied.borrow_mut().pop();
    let files = count(back.len() as u64, "file");
    let text = format!("● {files} as before; the sandbox keeps its changes");
    Ok(vec![Row::note(Tone::Good, &text)])
}

async fn sessions(context: &Context) -> Outcome<Vec<Row>> {
    let listed = context.sessions.list(Listing::Newest(limits::SESSIONS_SHOWN)).await?;
    let row = |it: &ListedSession| {
        let (when, title) = (show::when(it.last_at_ms), inert(&it.title).replace('\n', " "));
        let (session, standing) = (&it.session, &it.standing);
        Row::note(Tone::Plain, &format!("  {session}  {when}  {standing:<18}  {title}"))
    };
    let mut rows: Vec<Row> = listed.iter().map(row).collect();
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
