//! Effects that are not settled, all of a session.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use outrigger_policy::{RuleSetHash, Verdict};

use crate::{Amounts, ApprovalRequest, Approvals, Effect, Phase, Seq, ToolCall, Work};

/// Effects that are not settled, by the event that proposed them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Effects(BTreeMap<Seq, Effect>);

impl Effects {
    /// One of them.
    pub(crate) fn get(&self, id: Seq) -> Option<&Effect> {
        self.0.get(&id)
    }

    /// One of them, to be changed.
    pub(crate) fn get_mut(&mut self, id: Seq) -> Option<&mut Effect> {
        self.0.get_mut(&id)
    }

    /// All of them, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Seq, &Effect)> {
        self.0.iter().map(|(id, effect)| (*id, effect))
    }

    /// Those in a phase, the oldest first.
    pub(crate) fn in_phase(&self, wanted: impl Fn(&Phase) -> bool) -> Vec<Seq> {
        self.iter().filter(|(_, effect)| wanted(&effect.phase)).map(|(id, _)| id).collect()
    }

    /// Those that were started.
    pub(crate) fn in_flight(&self) -> Vec<Seq> {
        self.in_phase(|phase| matches!(phase, Phase::Started { .. }))
    }

    /// Those that wait for an answer.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (Seq, &Effect, &ApprovalRequest)> {
        let waiting = self.iter().filter(|(_, effect)| effect.phase == Phase::Asked);
        waiting.filter_map(|(id, effect)| Some((id, effect, effect.asked.as_ref()?)))
    }

    /// Whether there are some, and all of them wait for answers.
    pub(crate) fn all_asked(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(|effect| effect.phase == Phase::Asked)
    }

    /// The first that nobody answered about in time.
    pub(crate) fn expired(&self, approvals: Approvals, now_ms: u64) -> Option<Seq> {
        let over = |effect: &Effect| effect.expires_ms(approvals).is_some_and(|at| at <= now_ms);
        self.iter().find(|(_, effect)| over(effect)).map(|(id, _)| id)
    }

    /// When the first of those that wait for an answer is denied without one.
    pub(crate) fn next_expiry_ms(&self, approvals: Approvals) -> Option<u64> {
        self.0.values().filter_map(|effect| effect.expires_ms(approvals)).min()
    }

    /// One that does this very work.
    pub(crate) fn of_work(&self, work: &Work) -> Option<&Effect> {
        self.0.values().find(|effect| effect.work == *work)
    }

    /// The calls that were proposed before this one.
    pub(crate) fn calls_before(&self, id: Seq) -> impl Iterator<Item = &ToolCall> {
        self.0.range(..id).filter_map(|(_, effect)| match &effect.work {
            Work::CallTool(call) => Some(call),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        })
    }

    /// What is reserved for all of them.
    pub(crate) fn reserved(&self) -> Amounts {
        self.0.values().fold(Amounts::default(), |sum, effect| sum.plus(effect.reserved()))
    }

    /// A further one, of which the rules were not asked yet.
    pub(crate) fn propose(&mut self, id: Seq, work: &Work) {
        let (judged, asked, approved, seen) = (None, None, Vec::new(), None);
        let (work, phase) = (work.clone(), Phase::Proposed);
        self.0.insert(id, Effect { work, phase, judged, asked, approved, seen });
    }

    /// Takes in what the rules say of one.
    pub(crate) fn judge(&mut self, id: Seq, verdict: &Verdict, rule_set: RuleSetHash, at_ms: u64) {
        if let Some(effect) = self.get_mut(id) {
            effect.judge(verdict, rule_set, at_ms);
        }
    }

    /// Takes in that an attempt was lost in a crash, if one was under way: the effect may be
    /// begun again. Returns what the lost attempt is charged with.
    pub(crate) fn lose(&mut self, id: Seq, at_ms: u64) -> Option<Amounts> {
        let effect = self.get_mut(id)?;
        let Phase::Started { .. } = effect.phase else { return None };
        let lost = effect.spent_at_most(at_ms);
        effect.phase = Phase::Permitted;
        Some(lost)
    }

    /// Those that a soft limit of this level asked about need not be asked about any more.
    pub(crate) fn lift_soft(&mut self, level: &str) {
        for effect in self.0.values_mut() {
            if effect.soft_limit().is_some_and(|asked| asked.level() == level) {
                effect.withdraw_question();
            }
        }
    }

    /// One is settled.
    pub(crate) fn settle(&mut self, id: Seq) -> Option<Effect> {
        self.0.remove(&id)
    }

    /// None of them goes on.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
