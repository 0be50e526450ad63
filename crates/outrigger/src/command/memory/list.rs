//! `outrigger memory ls | search | stale`: entries, a line each.

use outrigger_engine::path_of;
use outrigger_store::entries::{self, EntryAddress, EntryPath, EntryStat, Error, Search};
use serde_json::{Value, json};

use super::context::MemoryContext;
use crate::exit::{Failure, Kind, Outcome};
use crate::session::now_ms;
use crate::show::{self, Tone};

pub(super) async fn ls(memory: &MemoryContext, path: Option<&str>, deep: bool) -> Outcome {
    let roots = match path {
        Some(path) => vec![memory.place(path)?],
        None => memory
            .scope
            .all_memory_scopes()
            .map(|memory_scope| EntryAddress { memory_scope, path: EntryPath::ROOT })
            .collect(),
    };
    let mut listed = Vec::new();
    for root in &roots {
        match entries::list_all(&*memory.entries, &memory.scope, root, deep).await {
            // A file lists itself.
            Err(Error::NotFolder) => {
                let node = memory.entries.stat(&memory.scope, root).await;
                let node = node.map_err(|error| memory.failed(root, error))?;
                listed.push((root.clone(), node));
            }
            found => {
                let found = found.map_err(|error| memory.failed(root, error))?.into_iter();
                listed.extend(
                    found.map(|(path, node)| (EntryAddress { path, ..root.clone() }, node)),
                );
            }
        }
    }
    show_nodes(memory, &listed, "nothing is there yet")
}

fn show_nodes(memory: &MemoryContext, listed: &[(EntryAddress, EntryStat)], none: &str) -> Outcome {
    if memory.json {
        let entries: Vec<_> = listed.iter().map(|(place, node)| of_node(place, node)).collect();
        return show::line(&json!({ "type": "entries", "entries": entries }));
    }
    for (place, it) in listed {
        let path = show::inert(&path_of(place));
        let when = show::when(it.modified_ms);
        show::row(&match it.folder {
            true => format!("{:>9}  {:>5}  {when}  {path}/", "", ""),
            false => {
                format!("{:>9}  {:>5}  {when}  {path}", it.bytes, format!("r{}", it.revision))
            }
        })?;
    }
    if listed.is_empty() {
        memory.screen.note(Tone::Detail, none);
    }
    Ok(())
}

pub(super) async fn search(memory: &MemoryContext, words: String, limit: usize) -> Outcome {
    let search = Search { words, memory_scopes: Vec::new(), limit };
    let found = memory.entries.search(&memory.scope, &search).await;
    let found = found.map_err(|error| match error {
        Error::Store(source) => Failure::from(&source),
        other => Failure::new(Kind::Usage, other.to_string()),
    })?;
    if memory.json {
        let hits: Vec<_> = found
            .iter()
            .map(|hit| {
                let mut object = of_node(&hit.place, &hit.node);
                object["snippet"] = json!(hit.snippet);
                object
            })
            .collect();
        return show::line(&json!({ "type": "found", "entries": hits }));
    }
    for hit in &found {
        show::row(&show::inert(&path_of(&hit.place)))?;
        show::row(&format!("    {}", show::inert(&hit.snippet)))?;
    }
    if found.is_empty() {
        memory.screen.note(Tone::Detail, "nothing has these words");
    }
    Ok(())
}

pub(super) async fn stale(memory: &MemoryContext) -> Outcome {
    let mut listed = Vec::new();
    for memory_scope in memory.scope.all_memory_scopes() {
        let root = EntryAddress { memory_scope: memory_scope.clone(), path: EntryPath::ROOT };
        let stale = memory.entries.stale(&memory.scope, &memory_scope, now_ms()).await;
        let stale = stale.map_err(|error| memory.failed(&root, error))?;
        let entries = stale.entries.into_iter();
        listed.extend(entries.map(|(path, node)| (EntryAddress { path, ..root.clone() }, node)));
    }
    show_nodes(memory, &listed, "nothing waits to be looked at again")
}

fn of_node(place: &EntryAddress, node: &EntryStat) -> Value {
    json!({
        "path": path_of(place),
        "folder": node.folder,
        "revision": node.revision,
        "bytes": node.bytes,
        "digest": node.digest,
        "modified_ms": node.modified_ms,
        "executable": node.executable,
        "review_by_ms": node.review_by_ms,
        "redacted": node.redacted,
    })
}
