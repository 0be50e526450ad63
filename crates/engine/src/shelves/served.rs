//! Which tree is served into which sandbox.

use outrigger_sandbox::{SandboxId, Tree, Trees};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Hand, Handled, SessionTree};

/// The trees of the sessions that this process has driven; the backends ask it.
#[derive(Debug, Clone, Default)]
pub struct Served {
    trees: Arc<Mutex<HashMap<SandboxId, Arc<SessionTree>>>>,
}

impl Served {
    /// From now on a sandbox is served this tree.
    pub(crate) fn serve(&self, sandbox: SandboxId, tree: Arc<SessionTree>) {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).insert(sandbox, tree);
    }

    /// The sandbox is gone.
    pub(crate) fn forget(&self, sandbox: &SandboxId) {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).remove(sandbox);
    }
}

impl Trees for Served {
    fn of(&self, sandbox: &SandboxId) -> Option<Arc<dyn Tree>> {
        let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = Arc::clone(trees.get(sandbox)?);
        Some(Arc::new(Handled { tree, hand: Hand::Sandbox }))
    }
}
