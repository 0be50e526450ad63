//! What a backend and its keeper share: the daemon, and what this process has open of
//! sandboxes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use outrigger_sandbox::{Capabilities, Generation, SandboxId};
use outrigger_sandbox_client::Link;
use tokio::sync::{Mutex as Turn, Notify};

use crate::config::Config;
use crate::due::Dues;
use crate::engine::Engine;
use crate::sandbox::Gate;

/// What this process knows of a sandbox that it used.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) generation: Generation,
    pub(crate) link: Weak<Link>,
    pub(crate) gate: Arc<Gate>,
}

impl Used {
    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }
}

/// What a backend and its keeper share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) capabilities: Capabilities,
    pub(crate) used: Mutex<HashMap<SandboxId, Used>>,
    pub(crate) dues: Mutex<Dues>,
    /// That something new is due, or that the backend is gone.
    pub(crate) news: Arc<Notify>,
    /// One call at a time makes or ends a sandbox, which spares work; between
    /// processes the daemon settles it.
    pub(crate) turns: Mutex<HashMap<SandboxId, Weak<Turn<()>>>>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn dues(&self) -> MutexGuard<'_, Dues> {
        locked(&self.dues)
    }

    /// The turn of this call at a sandbox, among those of this value.
    pub(crate) fn turn(&self, id: &SandboxId) -> Arc<Turn<()>> {
        let mut turns = locked(&self.turns);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(id).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Turn::new(()));
        turns.insert(id.clone(), Arc::downgrade(&turn));
        turn
    }

    /// The gate of a sandbox that this process used.
    pub(crate) fn gate(&self, id: &SandboxId) -> Option<Arc<Gate>> {
        locked(&self.used).get(id).map(Used::gate)
    }
}
