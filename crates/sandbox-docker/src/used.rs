//! Sandboxes that this process used.
//!
//! Owns that all handles of a life share one link, for as long as that is open. The gate
//! outlives it: it says when the sandbox was last used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use outrigger_sandbox::{Generation, SandboxId};
use outrigger_sandbox_client::Link;

use crate::sandbox::Gate;

/// What this process knows of a sandbox that it used.
#[derive(Debug)]
struct UsedSandbox {
    generation: Generation,
    link: Weak<Link>,
    gate: Arc<Gate>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct UsedSandboxes(Mutex<HashMap<SandboxId, UsedSandbox>>);

impl UsedSandboxes {
    fn all(&self) -> MutexGuard<'_, HashMap<SandboxId, UsedSandbox>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The link to a life that is in use, if there is one, and its gate.
    pub(crate) fn link(
        &self,
        id: &SandboxId,
        generation: &Generation,
    ) -> Option<(Arc<Link>, Arc<Gate>)> {
        self.all()
            .get(id)
            .filter(|used| used.generation == *generation)
            .and_then(|used| Some((used.link.upgrade()?, Arc::clone(&used.gate))))
            .filter(|(link, _)| link.is_open())
    }

    /// The gate of a sandbox, whatever life was used.
    pub(crate) fn gate(&self, id: &SandboxId) -> Option<Arc<Gate>> {
        self.all().get(id).map(|used| Arc::clone(&used.gate))
    }

    /// Notes that a life is used, in the place of any other.
    pub(crate) fn insert(
        &self,
        id: &SandboxId,
        generation: &Generation,
        link: &Arc<Link>,
        gate: &Arc<Gate>,
    ) {
        let (link, gate) = (Arc::downgrade(link), Arc::clone(gate));
        let used = UsedSandbox { generation: generation.clone(), link, gate };
        self.all().insert(id.clone(), used);
    }

    /// Forgets a sandbox, which is no more.
    pub(crate) fn remove(&self, id: &SandboxId) {
        self.all().remove(id);
    }
}
