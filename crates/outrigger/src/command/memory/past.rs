//! `outrigger memory history`, `diff` and `blame`.

use outrigger_api::{EntryBlame, EntryDiff, EntryVersion};
use outrigger_engine::path_of;
use outrigger_server::entries::{line, version};
use outrigger_store::entries::{self, Comparison};

use super::context::MemoryContext;
use super::print::{print_blame, print_diff, print_history};
use crate::exit::{Failure, Kind, Outcome};

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
    let told: Vec<_> = versions.iter().map(version).collect();
    let origin = |it: &EntryVersion| {
        let version = versions.iter().find(|version| version.revision == it.revision);
        let from = version.and_then(|version| version.derived_from.as_ref());
        let told = |(at, revision): &(_, _)| format!("  from {} r{revision}", path_of(at));
        from.map(told).unwrap_or_default()
    };
    print_history(&path_of(&at), &told, origin, memory.output)
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
    let to = newer.version.revision;
    print_diff(&EntryDiff { path, from, to, diff: text }, memory.output)
}

pub(super) async fn blame(memory: &MemoryContext, path: &str) -> Outcome {
    let at = memory.place(path)?;
    let lines = entries::blame(&*memory.entries, &memory.scope, &at).await;
    let lines = lines.map_err(|error| memory.failed(&at, error))?;
    let lines = lines.into_iter().map(line).collect();
    print_blame(&EntryBlame { path: path_of(&at), lines }, memory.output)
}
