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

/// What effects without a driver amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOpen {
    /// What may still be spent.
    pub reserved: Amounts,
    /// What is charged, as an estimate, for what can't be spent any more.
    pub lost: Amounts,
}

impl LeftOpen {
    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { reserved: self.reserved.plus(other.reserved), lost: self.lost.plus(other.lost) }
    }
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
        let lost = reserved.within(now_ms.saturating_sub(*since_ms));
        if let Work::CallTool(call) = &effect.work {
            match self.tool(&call.tool).map(|tool| tool.recovery) {
                Some(Recovery::Reattach) | None => return Some(Recover::Reattach),
                Some(Recovery::Repeat) => {}
                Some(Recovery::Unknown) => {
                    let outcome = Outcome::Unknown { evidence: unanswered(attempt) };
                    let over = Event::Settled { effect: id, outcome, spent: lost, estimated: true };
                    return Some(Recover::Over(over));
                }
            }
        }
        // The lost attempt stays charged as an estimate.
        let over = |outcome: Outcome| {
            let settled = Event::Settled { effect: id, outcome, spent: lost, estimated: true };
            Some(Recover::Over(settled))
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
        self.spent = self.spent.plus(reserved.within(at_ms.saturating_sub(since_ms)));
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

    /// What an effect that was started may still spend where nobody drives the session. A
    /// command ends by its deadline; all else ended with the driver.
    #[must_use]
    pub fn left_open(&self, id: Seq, now_ms: u64) -> LeftOpen {
        let Some(effect) = self.effects.get(&id) else { return LeftOpen::default() };
        let Phase::Started { reserved, since_ms, .. } = effect.phase else {
            return LeftOpen::default();
        };
        let passed_ms = now_ms.saturating_sub(since_ms);
        let reattached = match &effect.work {
            Work::CallTool(call) => {
                let tool = self.tool(&call.tool);
                tool.is_none_or(|tool| tool.recovery == Recovery::Reattach)
            }
            Work::AskModel | Work::Compact | Work::Provision { .. } => false,
        };
        match reattached && passed_ms <= reserved.wall_ms {
            true => LeftOpen { reserved, lost: Amounts::default() },
            false => LeftOpen { reserved: Amounts::default(), lost: reserved.within(passed_ms) },
        }
    }

    /// What an effect that is under way is charged with if it ends now and nobody counted.
    #[must_use]
    pub fn spent_at_most(&self, id: Seq, now_ms: u64) -> Amounts {
        match self.effects.get(&id).map(|effect| &effect.phase) {
            Some(Phase::Started { reserved, since_ms, .. }) => {
                reserved.within(now_ms.saturating_sub(*since_ms))
            }
            Some(Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. })
            | None => Amounts::default(),
        }
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
