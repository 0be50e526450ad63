//! `outrigger inbox`, `approve` and `deny`: what waits for a person, exactly as it would
//! be done, and the person's answer.

use clap::Args;
use outrigger_agent::{Answer, SessionId};
use outrigger_api::ApprovalInfo;
use outrigger_engine::AnswerRequest;
use serde_json::json;
use std::time::Duration;

use super::detach::Driver;
use super::remind;
use super::sessions::{GoOn, More, go_on};
use crate::change::ProposedChange;
use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Apply, Limits, Output};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};
use crate::waiting::{self, PendingApproval};
use crate::{limits, session};

#[derive(Debug, Args)]
pub(crate) struct Inbox {
    /// Only this one, and what it would make of a file.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Tell those whom `[notify]` names of everything that waits, but for what has yet
    /// to escalate.
    #[arg(long, conflicts_with = "id")]
    pub(crate) remind: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// What waits, as `outrigger inbox` names it; the session may be named by its beginning.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// What `outrigger inbox ID` said of the file that it changes: if the file changed
    /// since, nothing is approved.
    #[arg(long, value_name = "SEEN")]
    pub(crate) seen: Option<String>,
    /// Do it with these arguments instead, a JSON object. The rules are asked about that
    /// anew, and the model is told.
    #[arg(long, value_name = "JSON", conflicts_with = "seen")]
    pub(crate) arguments: Option<String>,
    /// Only answer; `outrigger sessions resume` goes on.
    #[arg(long)]
    pub(crate) later: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// What waits, as `outrigger inbox` names it; the session may be named by its beginning.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Why, for the model.
    #[arg(long, short = 'm', value_name = "TEXT", default_value = "no reason was given")]
    pub(crate) reason: String,
    /// Only answer; `outrigger sessions resume` goes on.
    #[arg(long)]
    pub(crate) later: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) async fn inbox(paths: &Paths, asked: Inbox) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    match asked.id {
        Some(id) => one(paths, &store, &id, asked.output).await,
        None if asked.remind => remind::execute(paths, &store, asked.output).await,
        None => all(&store, asked.output).await,
    }
}

async fn all(store: &Store, output: Output) -> Outcome<u8> {
    let all = PendingApproval::all(&*store.journal).await?;
    show_all(&all.iter().filter_map(PendingApproval::info).collect::<Vec<_>>(), output)
}

/// Shows all that wait.
pub(crate) fn show_all(waiting: &[ApprovalInfo], output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&waiting::list(waiting))?;
        return Ok(0);
    }
    for one in waiting {
        let lines = waiting::lines(one);
        lines.iter().take(limits::INBOX_LINES_MAX).try_for_each(|line| show::counted_row(line))?;
        if let Some(more @ 1..) = lines.len().checked_sub(limits::INBOX_LINES_MAX) {
            show::row(&format!("    … {more} more lines: outrigger inbox {}", one.id))?;
        }
    }
    let screen = Screen::new(output);
    match waiting.first() {
        None => screen.note(Tone::Detail, "nothing waits for an answer"),
        Some(ApprovalInfo { id, .. }) => {
            screen.note(Tone::Detail, format!("look closer: outrigger inbox {id}"));
            screen.note(Tone::Detail, format!("answer: outrigger approve {id}, or deny"));
        }
    }
    Ok(0)
}

/// One, with what it would make of a file.
async fn one(paths: &Paths, store: &Store, id: &str, output: Output) -> Outcome<u8> {
    let waiting = PendingApproval::find(&*store.journal, id).await?;
    let info = waiting.info().ok_or_else(|| over(&waiting))?;
    let change = change(paths, store, &waiting).await?;
    show_one(&info, change.as_ref().map(|it| (it.diff.as_str(), it.name())), output)
}

/// Shows one that waits: `change` is the diff of a file, and by which name that was looked at.
pub(crate) fn show_one(
    info: &ApprovalInfo,
    change: Option<(&str, String)>,
    output: Output,
) -> Outcome<u8> {
    if output.json.is_some() {
        let mut object = waiting::object(info);
        object["type"] = json!("waiting");
        object["diff"] = json!(change.as_ref().map(|(diff, _)| diff));
        object["seen"] = json!(change.as_ref().map(|(_, name)| name));
        show::line(&object)?;
        return Ok(0);
    }
    waiting::lines(info).iter().try_for_each(|line| show::out(&show::inert(line)))?;
    let screen = Screen::new(output);
    let mut answer = format!("outrigger approve {}", info.id);
    if let Some((diff, name)) = change {
        screen.whole_diff(diff);
        answer.push_str(&format!(" --seen {name}"));
    }
    screen.note(Tone::Detail, format!("answer: {answer}"));
    Ok(0)
}

/// What an effect would make of a file, as an engine of its own sees it.
async fn change(
    paths: &Paths,
    store: &Store,
    waiting: &PendingApproval,
) -> Outcome<Option<ProposedChange>> {
    if !waiting.changes_file() {
        return Ok(None);
    }
    let config = Config::of_files(paths.configs())?;
    let engine = compose::caretaker(paths, &config, store).await?;
    let change = ProposedChange::of(&engine, waiting).await;
    // It may have been cold, and goes on waiting.
    drop(outrigger_engine::suspend(&engine, &waiting.session).await);
    change
}

fn over(waiting: &PendingApproval) -> Failure {
    Failure::new(Kind::Conflict, format!("nobody is asked about {} any more", waiting.id()))
        .hint(format!("`outrigger sessions show {}` says what became of it.", waiting.session))
}

pub(crate) async fn approve(paths: &Paths, asked: Approve) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let waiting = PendingApproval::find(&*store.journal, &asked.id).await?;
    let Some((_, question)) = waiting.asked() else { return Err(over(&waiting)) };
    let info = waiting.info();
    let answer = match asked.arguments {
        Some(arguments) => Answer::Amended { arguments },
        None => {
            let rule_set = question.rule_set;
            let change = change(paths, &store, &waiting).await?;
            let screen = Screen::new(asked.output);
            let lines = info.iter().flat_map(waiting::lines);
            lines.for_each(|line| screen.note(Tone::Plain, line));
            let seen = match change {
                None => None,
                Some(change) => {
                    let of = (change.diff.as_str(), change.name());
                    looked_at((of.0, &of.1), asked.seen.as_deref(), &waiting.id(), &screen).await?;
                    Some(change.seen)
                }
            };
            Answer::Approved { rule_set, seen, standing: None }
        }
    };
    let said = if matches!(answer, Answer::Approved { .. }) { "approved" } else { "changed" };
    answered(paths, &store, &waiting, (answer, said), (asked.later, asked.output)).await
}

/// What the person approves is what they saw: they say so, or are shown the diff now.
pub(crate) async fn looked_at(
    (diff, name): (&str, &str),
    seen: Option<&str>,
    id: &str,
    screen: &Screen,
) -> Outcome {
    let look = format!("`outrigger inbox {id}` shows what it would change.");
    match seen {
        Some(seen) if seen == name => Ok(()),
        Some(_) => Err(Failure::new(
            Kind::Conflict,
            "the file is not the one that was looked at: it changed since",
        )
        .hint(look)),
        // A question that nobody is shown is not asked.
        None if screen.can_ask() => {
            screen.whole_diff(diff);
            match screen.ask("Approve this change?").await? {
                true => Ok(()),
                false => Err(Failure::new(Kind::Denied, "not approved; it still waits")),
            }
        }
        None => Err(Failure::new(
            Kind::Usage,
            "this changes a file, and nobody said that they looked at it",
        )
        .hint(look)),
    }
}

pub(crate) async fn deny(paths: &Paths, asked: Deny) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let waiting = PendingApproval::find(&*store.journal, &asked.id).await?;
    let answer = Answer::Denied { reason: asked.reason };
    answered(paths, &store, &waiting, (answer, "denied"), (asked.later, asked.output)).await
}

/// Takes the answer in, and goes on with the session unless somebody else does.
async fn answered(
    paths: &Paths,
    store: &Store,
    waiting: &PendingApproval,
    (answer, said): (Answer, &str),
    (later, output): (bool, Output),
) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let engine = compose::clerk(paths, &config, store)?;
    let given = AnswerRequest {
        effect: waiting.effect,
        by: session::WHO.to_owned(),
        arguments: waiting.arguments(),
        asked: waiting.asked().map(|(_, asked)| asked.clone()),
        answer,
    };
    engine.answer(&waiting.session, given).await?;
    let (id, session) = (waiting.id(), session::root(&*store.journal, &waiting.session).await?);
    let screen = Screen::new(output);
    screen.note(Tone::Good, format!("● {said}: {id}"));
    let driven = !later && goes_on(store, &session, &waiting.session).await?;
    if later || driven {
        if output.json.is_some() {
            show::line(&json!({ "type": "answered", "id": id, "answer": said }))?;
        }
        let hint = format!("`outrigger sessions resume {session}` goes on.");
        let text =
            if driven { "the process that runs the session goes on".to_owned() } else { hint };
        screen.note(Tone::Detail, text);
        return Ok(0);
    }
    // What becomes of the changes, the session remembers.
    let more = More::Otherwise(Limits::default(), Box::default());
    let how = GoOn { apply: Apply::default(), more, network: None, driver: Driver::Here };
    Box::pin(go_on(paths, session.as_str(), how, output)).await
}

/// Whether another process goes on with the session. One that holds it may be about to end,
/// because it saw no answer: then it is ours to go on.
async fn goes_on(store: &Store, session: &SessionId, answered: &SessionId) -> Outcome<bool> {
    let journal = &store.journal;
    let head = journal.head(answered).await?;
    for _ in 0..limits::HANDOVER_MS_MAX / limits::FOLLOW_POLL_MS {
        if !store.database.is_leased(session).await? {
            return Ok(false);
        }
        if journal.head(answered).await? != head {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(limits::FOLLOW_POLL_MS)).await;
    }
    Ok(true)
}
