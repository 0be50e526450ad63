//! Authority that a driver holds: to perform effects that it started itself.
//!
//! Owns that an effect is performed without being recovered only if its `Started` is in
//! the journal, by this driver, and no other one has begun a further attempt since.

use outrigger_agent::{Phase, Seq, State, Work};
use outrigger_policy::Granted;
use std::collections::BTreeMap;

/// Grants for attempts that this driver began, by effect.
#[derive(Debug, Default)]
pub(crate) struct GrantTable {
    /// With the attempt that each is for.
    durable: BTreeMap<Seq, (u32, Granted<Work>)>,
    /// For events that are not durable yet.
    pending: BTreeMap<Seq, (u32, Granted<Work>)>,
}

impl GrantTable {
    /// Authority for an attempt whose `Started` is pending.
    pub(crate) fn put(&mut self, id: Seq, attempt: u32, granted: Granted<Work>) {
        self.pending.insert(id, (attempt, granted));
    }

    /// What was pending is durable.
    pub(crate) fn commit(&mut self) {
        self.durable.append(&mut self.pending);
    }

    /// What was pending never became durable, and others may have gone on from what was.
    pub(crate) fn roll_back(&mut self, state: &State) {
        self.pending.clear();
        self.durable.retain(|id, (attempt, _)| attempt_of(state, *id) == Some(*attempt));
    }

    /// The authority for the attempt that the state says is under way.
    pub(crate) fn take(&mut self, id: Seq, state: &State) -> Option<Granted<Work>> {
        let (attempt, granted) = self.durable.remove(&id)?;
        (attempt_of(state, id) == Some(attempt)).then_some(granted)
    }
}

/// Which attempt at an effect is under way.
pub(crate) fn attempt_of(state: &State, id: Seq) -> Option<u32> {
    match state.effect(id)?.phase {
        Phase::Started { attempt, .. } => Some(attempt),
        Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. } => None,
    }
}
