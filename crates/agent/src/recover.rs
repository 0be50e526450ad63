//! What is done with an effect that was started and not settled when the harness died.

use crate::state::Phase;
use crate::{
    Amounts, Event, Failure, ModelFault, Outcome, Place, Recovery, Seq, State, Work, limits,
};

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
    /// generation its outcome is unknown. While the turn is being stopped (decide
    /// says `Stop`), it is killed instead, and one that never arrived is not run.
    Reattach,
}

impl State {
    /// Says how an effect goes on that nobody performs any more. `None` if it is not started.
    /// What it asks for is to be appended at that moment, in milliseconds since 1970: the
    /// lost attempt is charged for no more time than went by.
    #[must_use]
    pub fn recover(&self, id: Seq, now_ms: u64) -> Option<Recover> {
        let effect = self.effects.get(&id)?;
        let Phase::Started { attempt, place, reserved, since_ms, .. } = &effect.phase else {
            return None;
        };
        let lost = reserved.lost(*since_ms, now_ms);
        if let Work::CallTool(call) = &effect.work {
            match self.tool(&call.tool).map(|tool| tool.recovery) {
                Some(Recovery::Reattach) | None => return Some(Recover::Reattach),
                Some(Recovery::Repeat) => {}
                Some(Recovery::Unknown) => {
                    let outcome = Outcome::Unknown { evidence: unanswered(attempt) };
                    let over = Event::Settled { effect: id, outcome, spent: lost };
                    return Some(Recover::Over(over));
                }
            }
        }
        // The lost attempt stays charged as an estimate.
        let over = |outcome: Outcome| {
            Some(Recover::Over(Event::Settled { effect: id, outcome, spent: lost }))
        };
        if self.is_stopping() {
            return over(Outcome::Cancelled);
        }
        let Some(place) = self.place_now(place.as_ref()) else {
            let detail =
                "The sandbox was lost while this ran. It only reads, so it can be done again.";
            return over(Outcome::Failed(Failure::Sandbox { detail: detail.to_owned() }));
        };
        if *attempt >= limits::ATTEMPTS_MAX {
            return over(Outcome::Failed(given_up(&effect.work)));
        }
        let mut beside = self.clone();
        beside.lose(id, now_ms);
        let reserved = beside.reservation(&effect.work, self.spec.as_ref()?);
        if !beside.affords(reserved) {
            return over(Outcome::Failed(Failure::Budget));
        }
        let attempt = attempt.saturating_add(1);
        Some(Recover::Again(Event::Started { effect: id, attempt, reserved, place }))
    }

    /// Takes in that an attempt was lost in a crash, if one was under way: it stays charged
    /// as an estimate, and the effect may be begun again.
    pub(crate) fn lose(&mut self, id: Seq, at_ms: u64) -> bool {
        let Some(effect) = self.effects.get_mut(&id) else { return false };
        let Phase::Started { reserved, since_ms, .. } = effect.phase else { return false };
        self.spent = self.spent.plus(reserved.lost(since_ms, at_ms));
        effect.phase = Phase::Permitted;
        true
    }

    /// Where work that is done again runs: in the life that its sandbox has now.
    /// The outer `None` if it has none.
    fn place_now(&self, place: Option<&Place>) -> Option<Option<Place>> {
        let Some(place) = place else { return Some(None) };
        let generation = self.sandbox(&place.sandbox)?.generation.clone();
        Some(Some(Place { generation, ..place.clone() }))
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

/// What is known of a call of which nobody can be asked again.
fn unanswered(attempt: &u32) -> String {
    format!(
        "Outcome unknown: attempt {attempt} was on its way to a server outside when the harness \
         stopped, and no answer was kept. It may have happened fully, partly or not at all. It is \
         not repeated; look whether it happened before you call it again."
    )
}

/// Something about this very effect kills the harness: it is not tried for ever.
fn given_up(work: &Work) -> Failure {
    let detail = format!(
        "It was given up after {} attempts, each of which was lost in a crash.",
        limits::ATTEMPTS_MAX
    );
    match work {
        Work::AskModel | Work::Compact => Failure::Model { fault: ModelFault::Unavailable, detail },
        Work::Provision { .. } | Work::CallTool(_) => Failure::Sandbox { detail },
    }
}
