//! One call at a time makes or ends a sandbox, which spares work; between processes the
//! daemon settles it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use outrigger_sandbox::SandboxId;
use tokio::sync::Mutex as Turn;

/// The turns at sandboxes, each for as long as a call takes or waits for it.
#[derive(Debug, Default)]
pub(crate) struct SandboxTurns(Mutex<HashMap<SandboxId, Weak<Turn<()>>>>);

impl SandboxTurns {
    /// The turn of a call at a sandbox, which it takes by locking it.
    pub(crate) fn of(&self, id: &SandboxId) -> Arc<Turn<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(id).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Turn::new(()));
        turns.insert(id.clone(), Arc::downgrade(&turn));
        turn
    }
}
