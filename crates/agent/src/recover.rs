//! What is done with an effect that was started and not settled when the harness died.

use crate::state::Phase;
use crate::{Amounts, Event, Failure, Outcome, Recovery, Seq, State, Work};

/// How an interrupted effect goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Recover {
    /// Append this `Started` of a further attempt and do it again: the lost
    /// attempt stays charged as an estimate.
    Again(Event),
    /// Append this `Settled`: it can't be done again.
    Over(Event),
    /// Ask the sandbox for it by its exec id, in the same generation: running is
    /// waited for, finished is collected, never arrived is run now. In another
    /// generation its outcome is unknown.
    Reattach,
}

impl State {
    /// Says how an effect goes on that nobody performs any more. `None` if it is not started.
    #[must_use]
    pub fn recover(&self, id: Seq) -> Option<Recover> {
        let effect = self.effects.get(&id)?;
        let Phase::Started { attempt, place, .. } = &effect.phase else { return None };
        if let Work::CallTool(call) = &effect.work {
            match self.tool(&call.tool).map(|tool| tool.recovery) {
                Some(Recovery::Reattach) | None => return Some(Recover::Reattach),
                Some(Recovery::Repeat) => {}
            }
        }
        let reserved = self.reservation(&effect.work, self.spec.as_ref()?);
        if !self.affords(reserved) {
            let (outcome, spent) = (Outcome::Failed(Failure::Budget), self.reserved_for(id));
            return Some(Recover::Over(Event::Settled { effect: id, outcome, spent }));
        }
        let (attempt, place) = (attempt.saturating_add(1), place.clone());
        Some(Recover::Again(Event::Started { effect: id, attempt, reserved, place }))
    }

    /// What is reserved for one effect.
    #[must_use]
    pub fn reserved_for(&self, id: Seq) -> Amounts {
        match self.effects.get(&id).map(|effect| &effect.phase) {
            Some(Phase::Started { reserved, .. }) => *reserved,
            Some(Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. })
            | None => Amounts::default(),
        }
    }
}
