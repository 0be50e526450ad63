//! Which tree is served into which sandbox.

use outrigger_sandbox::{SandboxId, Tree, Trees};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::tree::MemoryView;

/// The trees of the sessions that this process has driven; the backends ask it.
#[derive(Debug, Clone, Default)]
pub struct ServedTrees {
    trees: Arc<Mutex<HashMap<SandboxId, Arc<MemoryView>>>>,
}

impl ServedTrees {
    /// From now on a sandbox is served this tree, judged by the facts of the command that is
    /// about to run. What is no command changes the facts of no program that still runs.
    pub(crate) fn serve(&self, sandbox: SandboxId, view: MemoryView, command: bool) {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let is_served = trees.get(&sandbox).is_some_and(|it| Arc::ptr_eq(&it.tree, &view.tree));
        if command || !is_served {
            let view = Arc::new(view);
            let before = trees.insert(sandbox, Arc::clone(&view));
            if let Some(before) = before.filter(|_| !is_served) {
                view.tree.take_over(&before.tree);
            }
        }
    }

    /// The sandbox is gone.
    pub(crate) fn forget(&self, sandbox: &SandboxId) {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).remove(sandbox);
    }
}

impl Trees for ServedTrees {
    fn of(&self, sandbox: &SandboxId) -> Option<Arc<dyn Tree>> {
        let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let view = Arc::clone(trees.get(sandbox)?);
        Some(view)
    }
}
