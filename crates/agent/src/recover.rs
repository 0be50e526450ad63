//! What is done with an effect that was started and not settled when the harness died.

use crate::spending::{left, reservation_again};
use crate::{
    Amounts, Event, Failure, ModelFault, Outcome, Phase, Place, Recovery, Seq, State, Work, limits,
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

impl Recover {
    /// How an effect of `state` goes on that nobody performs any more. `None` if it is not
    /// started. What it asks for is to be appended at that moment, in milliseconds since 1970:
    /// the lost attempt is charged for no more time than went by.
    #[must_use]
    pub fn of(state: &State, id: Seq, now_ms: u64) -> Option<Self> {
        let effect = state.effect(id)?;
        let Phase::Started { attempt, place, .. } = &effect.phase else { return None };
        let lost = effect.spent_at_most(now_ms);
        // The lost attempt stays charged as an estimate.
        let over = |outcome: Outcome| {
            let settled = Event::Settled { effect: id, outcome, spent: lost, estimated: true };
            Some(Self::Over(settled))
        };
        if let Work::CallTool(call) = &effect.work {
            match state.tool(&call.tool).map(|tool| tool.recovery) {
                Some(Recovery::Reattach) | None => return Some(Self::Reattach),
                Some(Recovery::Repeat) => {}
                Some(Recovery::Unknown) => {
                    return over(Outcome::Unknown { evidence: unanswered(attempt) });
                }
            }
        }
        if state.is_stopping() {
            return over(Outcome::Cancelled);
        }
        let Some(place) = place_now(state, place.as_ref()) else {
            let detail =
                "The sandbox was lost while this ran. It only reads, so it can be done again.";
            return over(Outcome::Failed(Failure::Sandbox { detail: detail.to_owned() }));
        };
        if *attempt >= limits::ATTEMPTS_MAX {
            return over(Outcome::Failed(given_up(&effect.work)));
        }
        let mut beside = state.clone();
        beside.lose(id, now_ms);
        let (left, before) = (left(&beside), effect.reserved());
        let reserved = reservation_again(&beside, &effect.work, state.spec()?, left, before);
        if !beside.affords(reserved) {
            return over(Outcome::Failed(Failure::Budget));
        }
        let attempt = attempt.saturating_add(1);
        Some(Self::Again(Event::Started { effect: id, attempt, reserved, place }))
    }
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
    /// What an effect of `state` that was started may still spend where nobody drives it. A
    /// command ends by its deadline; all else ended with the driver.
    #[must_use]
    pub fn of(state: &State, id: Seq, now_ms: u64) -> Self {
        let Some(effect) = state.effect(id) else { return Self::default() };
        let Phase::Started { reserved, since_ms, .. } = effect.phase else {
            return Self::default();
        };
        let passed_ms = now_ms.saturating_sub(since_ms);
        let reattached = match &effect.work {
            Work::CallTool(call) => {
                let tool = state.tool(&call.tool);
                tool.is_none_or(|tool| tool.recovery == Recovery::Reattach)
            }
            Work::AskModel | Work::Compact | Work::Provision { .. } => false,
        };
        match reattached && passed_ms <= reserved.wall_ms {
            true => Self { reserved, lost: Amounts::default() },
            false => Self { reserved: Amounts::default(), lost: reserved.within(passed_ms) },
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { reserved: self.reserved.plus(other.reserved), lost: self.lost.plus(other.lost) }
    }
}

/// Where work that is done again runs: in the life that its sandbox has now.
/// The outer `None` if it has none.
fn place_now(state: &State, place: Option<&Place>) -> Option<Option<Place>> {
    let Some(place) = place else { return Some(None) };
    let generation = state.sandbox(&place.sandbox)?.generation.clone();
    Some(Some(Place { generation, ..place.clone() }))
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
        Work::AskModel | Work::Compact => {
            Failure::Model { fault: ModelFault::Unavailable, detail, retry_at_ms: None }
        }
        Work::Provision { .. } | Work::CallTool(_) => Failure::Sandbox { detail },
    }
}
