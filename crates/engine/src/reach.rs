//! Finds a sandbox again in the very life that the journal names: running, frozen, or cold.
//!
//! Must never begin another life on purpose: that is an effect, and journalled.

use outrigger_agent::Loss;
use outrigger_sandbox::{Error, Listed, Sandbox, SandboxId, State};
use std::sync::Arc;

use crate::limits;
use crate::sandboxes::Berth;

/// Why a sandbox is not there.
#[derive(Debug)]
pub(crate) enum Missing {
    /// This life of it is over.
    Lost(Loss),
    /// Its backend could not say.
    Unreached(Error),
}

/// The sandbox, in the life of that name.
pub(crate) async fn reach(berth: &Berth, generation: &str) -> Result<Arc<dyn Sandbox>, Missing> {
    for _ in 0..limits::REACHES_MAX {
        if let Some(found) = berth.backend.find(&berth.id).await.map_err(Missing::Unreached)? {
            return of_life(found, generation);
        }
        let listed = listed(berth, &berth.id).await.map_err(Missing::Unreached)?;
        let state = listed.filter(|listed| {
            listed.generation.as_ref().is_some_and(|found| found.as_str() == generation)
        });
        match state.map(|listed| listed.state) {
            Some(State::Cold) => return resume(berth, generation).await,
            // Somebody else resumed it just now.
            Some(State::Running | State::Frozen) => {}
            Some(State::Dead) | None => return Err(Missing::Lost(Loss::Gone)),
        }
    }
    Err(Missing::Lost(Loss::Gone))
}

async fn resume(berth: &Berth, generation: &str) -> Result<Arc<dyn Sandbox>, Missing> {
    match berth.backend.create(&berth.id, &berth.spec_of_last()).await {
        Ok(found) => of_life(found, generation),
        Err(Error::Altered { detail, .. }) => Err(Missing::Lost(Loss::Altered(detail))),
        Err(error) => Err(Missing::Unreached(error)),
    }
}

fn of_life(found: Arc<dyn Sandbox>, generation: &str) -> Result<Arc<dyn Sandbox>, Missing> {
    if found.generation().as_str() == generation {
        return Ok(found);
    }
    Err(Missing::Lost(Loss::Replaced))
}

/// What its backend says of a sandbox.
pub(crate) async fn listed(berth: &Berth, id: &SandboxId) -> Result<Option<Listed>, Error> {
    Ok(berth.backend.list().await?.into_iter().find(|listed| listed.id == *id))
}
