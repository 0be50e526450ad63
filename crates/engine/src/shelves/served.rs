//! Which tree is served into which sandbox.

use outrigger_sandbox::{SandboxId, Tree, Trees};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Handled;

/// The trees of the sessions that this process has driven; the backends ask it.
#[derive(Debug, Clone, Default)]
pub struct Served {
    trees: Arc<Mutex<HashMap<SandboxId, Arc<Handled>>>>,
}

impl Served {
    /// From now on a sandbox is served this tree, judged by the facts of the command that is
    /// about to run. What is no command changes the facts of no program that still runs.
    pub(crate) fn serve(&self, sandbox: SandboxId, handled: Handled, command: bool) {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let is_served = trees.get(&sandbox).is_some_and(|it| Arc::ptr_eq(&it.tree, &handled.tree));
        if command || !is_served {
            let handled = Arc::new(handled);
            let before = trees.insert(sandbox, Arc::clone(&handled));
            if let Some(before) = before.filter(|_| !is_served) {
                handled.tree.take_over(&before.tree);
            }
        }
    }

    /// The sandbox is gone.
    pub(crate) fn forget(&self, sandbox: &SandboxId) {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).remove(sandbox);
    }
}

impl Trees for Served {
    fn of(&self, sandbox: &SandboxId) -> Option<Arc<dyn Tree>> {
        let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let handled = Arc::clone(trees.get(sandbox)?);
        Some(handled)
    }
}
