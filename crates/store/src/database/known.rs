//! What stands where, as it was read last.
//!
//! Owns that an answer is given twice only while no entry anywhere was changed in between,
//! by whatever process. What the scope does not see is remembered as absent in the same way
//! as what is not there, so that both take the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_policy::Scope;

use super::changes::Changes;
use crate::entries::{EntryAddress, EntryListing, EntryStat};
use crate::limits;

/// What was read of places since the last change.
#[derive(Debug)]
pub(super) struct EntryCache {
    changes: Arc<Changes>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// After how many changes that was.
    at: u64,
    nodes: HashMap<String, Option<EntryStat>>,
}

/// When something was asked of the database that is to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Since(Option<u64>);

/// A place, apart for those who see it and those who don't.
fn key(scope: &Scope, at: &EntryAddress) -> String {
    let sees = if scope.sees(&at.memory_scope) { "" } else { "\0" };
    format!("{sees}{}\0{}", at.memory_scope, at.path)
}

impl EntryCache {
    pub(super) fn new(changes: Arc<Changes>) -> Self {
        Self { changes, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands at a place, or nothing, if that is known.
    pub(super) fn get(&self, scope: &Scope, at: &EntryAddress) -> Option<Option<EntryStat>> {
        let now = self.changes.now()?;
        let state = self.state();
        if state.at == now { state.nodes.get(&key(scope, at)).cloned() } else { None }
    }

    /// Now, before something is asked.
    pub(super) fn since(&self) -> Since {
        Since(self.changes.now())
    }

    /// Whether what was asked since then, and answered, still holds.
    pub(super) fn holds(&self, since: Since) -> bool {
        since.0.is_some() && self.since() == since
    }

    /// Notes what was found at a place.
    pub(super) fn note(
        &self,
        since: Since,
        scope: &Scope,
        at: &EntryAddress,
        node: Option<EntryStat>,
    ) {
        self.note_all(since, [(key(scope, at), node)]);
    }

    /// Notes what was found in a folder.
    pub(super) fn note_listed(
        &self,
        since: Since,
        scope: &Scope,
        folder: &EntryAddress,
        found: &EntryListing,
    ) {
        let nodes = found.entries.iter().map(|(path, node)| {
            let at = EntryAddress { memory_scope: folder.memory_scope.clone(), path: path.clone() };
            (key(scope, &at), Some(node.clone()))
        });
        self.note_all(since, nodes);
    }

    fn note_all(&self, since: Since, nodes: impl IntoIterator<Item = (String, Option<EntryStat>)>) {
        // Something was changed meanwhile, before or after it was read.
        let Some(since) = since.0.filter(|_| self.holds(since)) else { return };
        let mut state = self.state();
        if state.at > since {
            return;
        }
        if state.at < since {
            *state = State { at: since, nodes: HashMap::new() };
        }
        for (key, node) in nodes {
            if state.nodes.len() >= limits::NODES_KNOWN_MAX {
                state.nodes.clear();
            }
            state.nodes.insert(key, node);
        }
    }
}
