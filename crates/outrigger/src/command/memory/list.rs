//! `outrigger memory ls | search | stale`: entries, a line each.

use outrigger_api::EntryHit;
use outrigger_server::entries::entry;
use outrigger_store::entries::{self, EntryAddress, EntryPath, EntryStat, Error, Search};

use super::context::MemoryContext;
use super::print::{print_entries, print_hits};
use crate::exit::{Failure, Kind, Outcome};
use crate::session::now_ms;

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
    print(memory, &listed, "nothing is there yet")
}

fn print(memory: &MemoryContext, listed: &[(EntryAddress, EntryStat)], none: &str) -> Outcome {
    let entries: Vec<_> = listed.iter().map(|(at, node)| entry(at, node)).collect();
    print_entries(&entries, none, memory.output)
}

pub(super) async fn search(memory: &MemoryContext, words: String, limit: usize) -> Outcome {
    let search = Search { words, memory_scopes: Vec::new(), limit };
    let found = memory.entries.search(&memory.scope, &search).await;
    let found = found.map_err(|error| match error {
        Error::Store(source) => Failure::from(&source),
        other => Failure::new(Kind::Usage, other.to_string()),
    })?;
    let hits: Vec<_> = found
        .into_iter()
        .map(|hit| EntryHit { entry: entry(&hit.place, &hit.node), snippet: hit.snippet })
        .collect();
    print_hits(&hits, memory.output)
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
    print(memory, &listed, "nothing waits to be looked at again")
}
