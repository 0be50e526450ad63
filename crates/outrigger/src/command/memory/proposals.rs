//! `outrigger memory proposals`: changes that wait for somebody to accept them.

use outrigger_engine::path_of;
use outrigger_policy::ShelfKind;
use outrigger_store::entries::{
    self, Attribution, ChangeRequest, Decision, EntryAddress, EntryPath, Error, NewProposal,
    Proposal, ProposalFilter, ProposalId,
};
use serde_json::{Value, json};

use super::MemoryCommand;
use crate::cli;
use crate::exit::{Failure, Kind, Outcome};
use crate::session::now_ms;
use crate::show::{self, Screen, Tone};

pub(super) async fn execute(memory: &MemoryCommand, asked: cli::Proposals) -> Outcome {
    match asked {
        cli::Proposals::Ls { all, .. } => {
            ls(memory, if all { ProposalFilter::All } else { ProposalFilter::Open }).await
        }
        cli::Proposals::Show { number, .. } => show(memory, number).await,
        cli::Proposals::Accept { number, .. } => {
            decide(memory, number, Decision::Accept, "accepted").await
        }
        cli::Proposals::Reject { number, reason, .. } => {
            decide(memory, number, Decision::Reject { reason }, "rejected").await
        }
        cli::Proposals::Withdraw { number, .. } => {
            decide(memory, number, Decision::Withdraw, "withdrawn").await
        }
        cli::Proposals::Comment { number, text, .. } => {
            let id = ProposalId(number);
            let said = memory.reviews.comment(&memory.scope, id, text, now_ms()).await;
            said.map_err(|error| failed(number, error))?;
            done(memory, number, "commented")
        }
    }
}

fn failed(number: u64, error: Error) -> Failure {
    let kind = match &error {
        Error::Absent | Error::Redacted(_) => Kind::NotFound,
        Error::Conflict(_) | Error::Decided { .. } => Kind::Conflict,
        Error::NotReviewer | Error::NotAuthor => Kind::Denied,
        Error::Store(source) => return Failure::from(source),
        _ => Kind::Usage,
    };
    Failure::new(kind, format!("proposal {number}: {error}"))
        .hint("`outrigger memory proposals ls` lists what waits.")
}

fn done(memory: &MemoryCommand, number: u64, what: &str) -> Outcome {
    if memory.json {
        return show::line(&json!({ "type": "proposal", "number": number, "done": what }));
    }
    memory.screen.note(Tone::Good, format!("● proposal {number} {what}"));
    Ok(())
}

async fn decide(memory: &MemoryCommand, number: u64, decision: Decision, what: &str) -> Outcome {
    let decided =
        memory.reviews.decide(&memory.scope, ProposalId(number), decision, now_ms()).await;
    decided.map_err(|error| failed(number, error))?;
    done(memory, number, what)
}

async fn ls(memory: &MemoryCommand, asked: ProposalFilter) -> Outcome {
    let mut found: Vec<Proposal> = Vec::new();
    for shelf in ShelfKind::ALL.into_iter().flat_map(|kind| memory.scope.shelves(kind)) {
        let root = EntryAddress { shelf: shelf.clone(), path: EntryPath::ROOT };
        let page = memory.reviews.proposals(&memory.scope, &shelf, asked, None).await;
        found.extend(page.map_err(|error| memory.failed(&root, error))?);
    }
    found.sort_by_key(|proposal| proposal.id);
    if memory.json {
        let all: Vec<_> = found.iter().map(of).collect();
        return show::line(&json!({ "type": "proposals", "proposals": all }));
    }
    for it in &found {
        show::row(&show::inert(&line(it)))?;
    }
    if found.is_empty() {
        memory.screen.note(Tone::Detail, "nothing waits");
    }
    Ok(())
}

fn line(it: &Proposal) -> String {
    let message = it.by.message.iter().map(|text| format!("  {text}"));
    let session = it.by.session.iter().map(|session| format!("  in session {session}"));
    let rest: String = session.chain(message).collect();
    let (path, when) = (path_of(&it.at), show::when(it.by.at_ms));
    format!("{:>4}  {:9}  {when}  {}  {path}{rest}", it.id.0, it.standing.to_string(), it.author)
}

async fn show(memory: &MemoryCommand, number: u64) -> Outcome {
    let found = memory.reviews.proposal(&memory.scope, ProposalId(number)).await;
    let (it, file, comments) = found.map_err(|error| failed(number, error))?;
    let base = match it.base {
        0 => Vec::new(),
        base => match memory.entries.read(&memory.scope, &it.at, Some(base)).await {
            Ok(read) => read.bytes,
            // What it was made from is gone: all of it is new.
            Err(Error::Absent | Error::Redacted(_) | Error::Pruned) => Vec::new(),
            Err(error) => return Err(memory.failed(&it.at, error)),
        },
    };
    let after = file.unwrap_or_default();
    let path = path_of(&it.at);
    let names = [format!("{path} r{}", it.base), format!("proposal {number}")];
    let diff = entries::diff(&base, &after, [&names[0], &names[1]]);
    let diff = diff.unwrap_or_else(|_| "the file is no text\n".to_owned());
    if memory.json {
        let mut object = of(&it);
        object["type"] = json!("proposal");
        object["diff"] = json!(diff);
        object["comments"] = comments
            .iter()
            .map(|it| json!({ "author": it.author, "at_ms": it.at_ms, "text": it.text }))
            .collect();
        return show::line(&object);
    }
    show::row(&show::inert(&line(&it)))?;
    Screen::on_stdout(memory.output).whole_diff(&diff);
    for comment in &comments {
        let (author, when) = (&comment.author, show::when(comment.at_ms));
        show::row(&show::inert(&format!("{author}  {when}  {}", comment.text)))?;
    }
    Ok(())
}

fn of(it: &Proposal) -> Value {
    json!({
        "number": it.id,
        "path": path_of(&it.at),
        "base": it.base,
        "removes": it.file.is_none(),
        "author": it.author,
        "session": it.by.session,
        "at_ms": it.by.at_ms,
        "message": it.by.message,
        "standing": it.standing.to_string(),
        "decided_by": it.decided.as_ref().map(|(who, _)| who),
        "reason": it.reason,
        "revision": it.revision,
    })
}

/// Puts up a change of a shelf that needs reviews.
pub(super) async fn propose(
    memory: &MemoryCommand,
    change: ChangeRequest,
    by: Attribution,
) -> Outcome {
    let at = super::about(&change);
    let proposed = NewProposal::of(&*memory.entries, &memory.scope, change).await;
    let Some(proposed) = proposed.map_err(|error| memory.failed(&at, error))? else {
        let path = path_of(&at);
        let text = format!("{path}: changes are reviewed, and only files can be proposed");
        return Err(Failure::new(Kind::Denied, text));
    };
    let id = memory.reviews.propose(&memory.scope, proposed, by).await;
    let id = id.map_err(|error| memory.failed(&at, error))?;
    if memory.json {
        return show::line(&json!({ "type": "proposed", "number": id, "path": path_of(&at) }));
    }
    let text = format!("● proposed as {id}: {} changes when somebody accepts it", path_of(&at));
    memory.screen.note(Tone::Good, text);
    Ok(())
}
