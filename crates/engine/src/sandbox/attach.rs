//! Finds a sandbox again in the very life that the journal names: running, frozen, or cold.
//!
//! Must never begin another life on purpose: that is an effect, and journalled.

use outrigger_agent::Loss;
use outrigger_sandbox::{Error, LifecycleState, ListedSandbox, Sandbox};
use std::sync::Arc;

use super::handle::SandboxHandle;
use crate::limits;

/// Why a sandbox is not there.
#[derive(Debug)]
pub(crate) enum AttachError {
    /// This life of it is over.
    Lost(Loss),
    /// Its backend could not say.
    Unreachable(Error),
}

impl SandboxHandle {
    /// The sandbox, in the life of that name.
    pub(crate) async fn attach(&self, generation: &str) -> Result<Arc<dyn Sandbox>, AttachError> {
        for _ in 0..limits::ATTACHES_MAX {
            let found = self.backend.find(&self.id).await.map_err(AttachError::Unreachable)?;
            if let Some(found) = found {
                return of_life(found, generation);
            }
            let listed = self.lookup().await.map_err(AttachError::Unreachable)?;
            let state = listed.filter(|listed| {
                listed.generation.as_ref().is_some_and(|found| found.as_str() == generation)
            });
            match state.map(|listed| listed.state) {
                Some(LifecycleState::Cold) => return self.resume(generation).await,
                // Somebody else resumed it just now.
                Some(LifecycleState::Running | LifecycleState::Frozen) => {}
                Some(LifecycleState::Dead) | None => return Err(AttachError::Lost(Loss::Gone)),
            }
        }
        Err(AttachError::Lost(Loss::Gone))
    }

    async fn resume(&self, generation: &str) -> Result<Arc<dyn Sandbox>, AttachError> {
        match self.backend.create(&self.id, &self.spec_of_last()).await {
            Ok(found) => of_life(found, generation),
            Err(Error::Altered { detail, .. }) => Err(AttachError::Lost(Loss::Altered(detail))),
            Err(error) => Err(AttachError::Unreachable(error)),
        }
    }

    /// What its backend says of it.
    pub(crate) async fn lookup(&self) -> Result<Option<ListedSandbox>, Error> {
        Ok(self.backend.list().await?.into_iter().find(|listed| listed.id == self.id))
    }
}

fn of_life(found: Arc<dyn Sandbox>, generation: &str) -> Result<Arc<dyn Sandbox>, AttachError> {
    if found.generation().as_str() == generation {
        return Ok(found);
    }
    Err(AttachError::Lost(Loss::Replaced))
}
