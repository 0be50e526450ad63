//! `outrigger memory history`, `diff` and `blame`.

use outrigger_engine::path_of;
use outrigger_store::entries::{self, BlameLine, Comparison, ContentState, EntryState};
use serde_json::json;

use super::context::MemoryContext;
use super::version::{version, who, written};
use crate::exit::{Failure, Kind, Outcome};
use crate::show::{self, Screen};

pub(super) async fn history(memory: &MemoryContext, path: &str) -> Outcome {
    let at = memory.place(path)?;
    let mut before = None;
    let mut versions = Vec::new();
    loop {
        let page = memory.entries.history(&memory.scope, &at, before).await;
        let page = page.map_err(|error| memory.failed(&at, error))?;
        before = page.last().map(|version| version.revision).filter(|last| *last > 1);
        versions.extend(page);
        if before.is_none() {
            break;
        }
    }
    if memory.json {
        let versions: Vec<_> = versions.iter().map(version).collect();
        return show::line(
            &json!({ "type": "history", "path": path_of(&at), "versions": versions }),
        );
    }
    for it in &versions {
        let what = match (&it.state, &it.kept) {
            (_, ContentState::Redacted(redaction)) => {
                format!("redacted by {}: {}", redaction.by, redaction.why)
            }
            (_, ContentState::Pruned) => "content not kept".to_owned(),
            (EntryState::File { bytes, .. }, _) => format!("{bytes} bytes"),
            (EntryState::Folder, _) => "folder".to_owned(),
            (EntryState::Gone, _) => "removed".to_owned(),
        };
        let message = it.by.message.iter().map(|text| format!("  {text}"));
        let from = it
            .derived_from
            .iter()
            .map(|(place, revision)| format!("  from {} r{revision}", path_of(place)));
        let accepted = it.accepted_by.iter().map(|who| format!("  accepted by {who}"));
        let labels = (!it.by.labels.is_empty()).then(|| {
            let labels: Vec<_> = it.by.labels.iter().map(String::as_str).collect();
            format!("  [{}]", labels.join(", "))
        });
        let rest: String = from.chain(accepted).chain(labels).chain(message).collect();
        let when = show::when(it.by.at_ms);
        let line =
            format!("{:>5}  {when}  {}  {what}{rest}", format!("r{}", it.revision), written(it));
        show::row(&show::inert(&line))?;
    }
    Ok(())
}

pub(super) async fn diff(
    memory: &MemoryContext,
    path: &str,
    from: Option<u64>,
    to: Option<u64>,
) -> Outcome {
    let at = memory.place(path)?;
    let compared = entries::compare(&*memory.entries, &memory.scope, &at, from, to).await;
    let Comparison { from, older, newer } = compared.map_err(|error| memory.failed(&at, error))?;
    let path = path_of(&at);
    let names = [from, newer.version.revision].map(|revision| format!("{path} r{revision}"));
    let text = outrigger_repository::diff(&older, &newer.bytes, [&names[0], &names[1]]);
    let not_text = || Failure::new(Kind::Usage, format!("{path}: {}", entries::Error::NotText));
    let text = text.ok_or_else(not_text)?;
    if memory.json {
        let to = newer.version.revision;
        return show::line(
            &json!({ "type": "diff", "path": path, "from": from, "to": to, "diff": text }),
        );
    }
    Screen::on_stdout(memory.output).whole_diff(&text);
    Ok(())
}

pub(super) async fn blame(memory: &MemoryContext, path: &str) -> Outcome {
    let at = memory.place(path)?;
    let lines = entries::blame(&*memory.entries, &memory.scope, &at).await;
    let lines = lines.map_err(|error| memory.failed(&at, error))?;
    if memory.json {
        let lines: Vec<_> = lines
            .iter()
            .map(|it| {
                json!({
                    "line": it.line, "revision": it.revision, "author": it.author,
                    "agent": it.agent,
                    "session": it.session, "seq": it.seq, "at_ms": it.at_ms,
                })
            })
            .collect();
        return show::line(&json!({ "type": "blame", "path": path_of(&at), "lines": lines }));
    }
    let by = |it: &BlameLine| who(&it.author, it.agent.as_deref());
    let width = lines.iter().map(|it| by(it).len()).max().unwrap_or_default();
    for it in &lines {
        let (author, when) = (by(it), show::when(it.at_ms));
        let line = it.line.trim_end_matches('\n');
        let revision = format!("r{}", it.revision);
        show::row(&show::inert(&format!("{revision:>5}  {author:width$}  {when}  {line}")))?;
    }
    Ok(())
}
