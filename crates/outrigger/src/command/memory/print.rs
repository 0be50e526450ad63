//! Entries, their versions and proposals, as people and programs read them: in the words of the
//! API, wherever they are from.

use outrigger_api::{
    EntryBlame, EntryDiff, EntryHit, EntryInfo, EntryLine, EntryVersion, EntryVersionState,
    EntryVia, ProposalDetails, ProposalInfo, ProposalStanding,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::show::{self, Screen, Tone};

/// An object of the API as programs read it here.
fn typed(kind: &str, object: &impl Serialize) -> Value {
    let mut object = json!(object);
    object["type"] = json!(kind);
    object
}

pub(crate) fn print_entries(entries: &[EntryInfo], none: &str, output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&json!({ "type": "entries", "entries": entries }));
    }
    for it in entries {
        let (path, when) = (show::inert(&it.path), show::when(it.modified_ms));
        show::row(&match it.folder {
            true => format!("{:>9}  {:>5}  {when}  {path}/", "", ""),
            false => {
                format!("{:>9}  {:>5}  {when}  {path}", it.bytes, format!("r{}", it.revision))
            }
        })?;
    }
    if entries.is_empty() {
        Screen::new(output).note(Tone::Detail, none);
    }
    Ok(())
}

pub(crate) fn print_hits(hits: &[EntryHit], output: Output) -> Outcome {
    if output.json.is_some() {
        let object = |hit: &EntryHit| {
            let mut object = json!(hit.entry);
            object["snippet"] = json!(hit.snippet);
            object
        };
        let hits: Vec<_> = hits.iter().map(object).collect();
        return show::line(&json!({ "type": "found", "entries": hits }));
    }
    for hit in hits {
        show::row(&show::inert(&hit.entry.path))?;
        show::row(&format!("    {}", show::inert(&hit.snippet)))?;
    }
    if hits.is_empty() {
        Screen::new(output).note(Tone::Detail, "nothing has these words");
    }
    Ok(())
}

/// `origin`: what is known of where the content of a version was copied from.
pub(crate) fn print_history(
    path: &str,
    versions: &[EntryVersion],
    origin: impl Fn(&EntryVersion) -> String,
    output: Output,
) -> Outcome {
    if output.json.is_some() {
        return show::line(&json!({ "type": "history", "path": path, "versions": versions }));
    }
    for it in versions {
        let what = match (&it.redacted, it.kept, it.state) {
            (Some(redaction), ..) => format!("redacted by {}: {}", redaction.by, redaction.why),
            (None, false, _) => "content not kept".to_owned(),
            (None, true, EntryVersionState::File) => format!("{} bytes", it.bytes),
            (None, true, EntryVersionState::Folder) => "folder".to_owned(),
            (None, true, EntryVersionState::Removed) => "removed".to_owned(),
        };
        let message = it.message.iter().map(|text| format!("  {text}"));
        let accepted = it.accepted_by.iter().map(|who| format!("  accepted by {who}"));
        let labels = (!it.labels.is_empty()).then(|| format!("  [{}]", it.labels.join(", ")));
        let rest: String = accepted.chain(labels).chain(message).collect();
        let (revision, when) = (format!("r{}", it.revision), show::when(it.at_ms));
        let line = format!("{revision:>5}  {when}  {}  {what}{}{rest}", written(it), origin(it));
        show::row(&show::inert(&line))?;
    }
    Ok(())
}

/// Who wrote a version and through what, in a few words.
fn written(version: &EntryVersion) -> String {
    let through = match (&version.session, version.via) {
        (Some(session), EntryVia::Sandbox) => format!(" in a sandbox of session {session}"),
        (Some(session), _) => format!(" in session {session}"),
        (None, EntryVia::Import) => " by import".to_owned(),
        (None, _) => String::new(),
    };
    format!("{}{through}", who(&version.author, version.agent.as_deref()))
}

/// Who wrote something: the agent, where one acted for a person.
fn who(author: &str, agent: Option<&str>) -> String {
    match agent {
        Some(agent) => format!("{agent} for {author}"),
        None => author.to_owned(),
    }
}

pub(crate) fn print_diff(diff: &EntryDiff, output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&typed("diff", diff));
    }
    Screen::on_stdout(output).whole_diff(&diff.diff);
    Ok(())
}

pub(crate) fn print_blame(blame: &EntryBlame, output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&typed("blame", blame));
    }
    let by = |it: &EntryLine| who(&it.author, it.agent.as_deref());
    let width = blame.lines.iter().map(|it| by(it).len()).max().unwrap_or_default();
    for it in &blame.lines {
        let (author, when) = (by(it), show::when(it.at_ms));
        let line = it.line.trim_end_matches('\n');
        let revision = format!("r{}", it.revision);
        show::row(&show::inert(&format!("{revision:>5}  {author:width$}  {when}  {line}")))?;
    }
    Ok(())
}

pub(crate) fn print_proposals(all: &[ProposalInfo], output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&json!({ "type": "proposals", "proposals": all }));
    }
    for it in all {
        show::row(&show::inert(&proposal(it)))?;
    }
    if all.is_empty() {
        Screen::new(output).note(Tone::Detail, "nothing waits");
    }
    Ok(())
}

pub(crate) fn print_proposal(details: &ProposalDetails, output: Output) -> Outcome {
    let ProposalDetails { proposal: it, diff, comments } = details;
    if output.json.is_some() {
        let mut object = typed("proposal", it);
        object["diff"] = json!(diff);
        object["comments"] = json!(comments);
        return show::line(&object);
    }
    show::row(&show::inert(&proposal(it)))?;
    Screen::on_stdout(output).whole_diff(diff);
    for comment in comments {
        let (author, when) = (&comment.author, show::when(comment.at_ms));
        show::row(&show::inert(&format!("{author}  {when}  {}", comment.text)))?;
    }
    Ok(())
}

fn proposal(it: &ProposalInfo) -> String {
    let standing = match it.standing {
        ProposalStanding::Open => "open",
        ProposalStanding::Accepted => "accepted",
        ProposalStanding::Rejected => "rejected",
        ProposalStanding::Withdrawn => "withdrawn",
    };
    let message = it.message.iter().map(|text| format!("  {text}"));
    let session = it.session.iter().map(|session| format!("  in session {session}"));
    let rest: String = session.chain(message).collect();
    let when = show::when(it.at_ms);
    format!("{:>4}  {standing:9}  {when}  {}  {}{rest}", it.number, it.author, it.path)
}

/// Says what was done to a proposal.
pub(crate) fn print_decided(number: u64, what: &str, output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&json!({ "type": "proposal", "number": number, "done": what }));
    }
    Screen::new(output).note(Tone::Good, format!("● proposal {number} {what}"));
    Ok(())
}

/// Says what a change made: versions, how many that the person does not see, and whether the last
/// bytes of what was destroyed are still read by others.
pub(crate) fn print_changed(
    versions: &[EntryVersion],
    (unseen, lingers): (u64, bool),
    output: Output,
) -> Outcome {
    if output.json.is_some() {
        return show::line(&json!({
            "type": "changed", "versions": versions, "unseen": unseen, "lingers": lingers,
        }));
    }
    let screen = Screen::new(output);
    let said = match (versions, unseen) {
        ([one], 0) => format!("● {} is at revision {}", one.path, one.revision),
        _ => format!("● {} changed", show::count(versions.len() as u64 + unseen, "version")),
    };
    screen.note(Tone::Good, said);
    if lingers {
        let text = "! others read the store: the last bytes go when they are done";
        screen.note(Tone::Warning, text);
    }
    Ok(())
}

/// Says that a change waits for somebody to accept it.
pub(crate) fn print_proposed(number: u64, path: &str, output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&json!({ "type": "proposed", "number": number, "path": path }));
    }
    let text = format!("● proposed as {number}: {path} changes when somebody accepts it");
    Screen::new(output).note(Tone::Good, text);
    Ok(())
}

/// Prints what a file says.
pub(crate) fn print_contents(version: &EntryVersion, bytes: Vec<u8>, output: Output) -> Outcome {
    if output.json.is_some() {
        let mut object = typed("contents", version);
        object["text"] = json!(String::from_utf8_lossy(&bytes));
        return show::line(&object);
    }
    let mut out = std::io::stdout().lock();
    // Whoever reads it on a terminal is not to be written to by whoever wrote it.
    let bytes = match out.is_terminal() {
        true => show::inert(&String::from_utf8_lossy(&bytes)).into_bytes(),
        false => bytes,
    };
    out.write_all(&bytes)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::from_error(Kind::Storage, &error))
}
