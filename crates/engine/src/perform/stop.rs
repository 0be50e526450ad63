//! Stops what is under way, on a person's wish.

use futures_util::StreamExt;
use outrigger_agent::{Outcome, Phase, Place, Seq};
use outrigger_sandbox::ExecId;
use std::time::Duration;

use crate::live::{Completed, Live};
use crate::sandboxes::Berth;
use crate::{Engine, limits};

impl Engine {
    /// Kills running commands, stops waiting for the model, and settles each as
    /// cancelled; what came to its end first is settled as what it came to.
    pub(crate) async fn stop_all(&self, live: &mut Live, ids: &[Seq]) {
        let places: Vec<Place> = ids.iter().filter_map(|id| place_of(live, *id)).collect();
        let commands = places.len();
        let patience = Duration::from_millis(limits::STOP_MS_MAX);
        let killing = |place: Place| {
            let berth = self.berth(&live.session, &live.state, &place.sandbox).ok();
            // A sandbox that does not answer must not keep a person waiting.
            tokio::time::timeout(patience, kill(berth, place))
        };
        let killing: Vec<_> = places.into_iter().map(killing).collect();
        futures_util::future::join_all(killing).await;
        self.settle_what_ended(live, commands).await;
        // What is left was a model call, or did not end in time: nobody waits for it any more.
        live.under_way.clear();
        live.running.clear();
        for id in ids {
            let spent = live.state.reserved_for(*id);
            self.settle(live, Completed::new(*id, Outcome::Cancelled, spent));
        }
    }

    async fn settle_what_ended(&self, live: &mut Live, commands: usize) {
        for _ in 0..commands {
            let patience = Duration::from_millis(limits::STOP_MS_MAX);
            match tokio::time::timeout(patience, live.under_way.next()).await {
                Ok(Some(done)) => self.settle(live, done),
                Ok(None) | Err(_) => return,
            }
        }
    }
}

/// Kills one command, and none of others that share its sandbox. Failing to is no
/// failure of the cancel: a sandbox that is gone has no commands, and a cold one
/// none that run.
async fn kill(berth: Option<Berth>, place: Place) {
    let Some(berth) = berth else { return };
    let found = berth.backend.find(&berth.id).await;
    let (Ok(Some(sandbox)), Ok(exec)) = (found, ExecId::new(place.exec)) else { return };
    if sandbox.generation().as_str() == place.generation {
        drop(sandbox.kill(&exec).await);
    }
}

fn place_of(live: &Live, id: Seq) -> Option<Place> {
    match &live.state.effect(id)?.phase {
        Phase::Started { place, .. } => place.clone(),
        Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. } => None,
    }
}
