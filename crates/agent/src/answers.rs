//! How what people answer is taken in when the rules asked.
//!
//! Owns which answer still counts. None lets anything happen by itself: the rules are
//! asked once more with it when the effect is about to start.

use outrigger_policy::{Approved, RuleSetHash, Verdict};

use crate::state::{Effect, Phase};
use crate::{Answer, Approvals, Asked, Digest, Seq, State, ToolCall, Unanswerable, Work, json};

impl Effect {
    /// When it is denied because nobody answered.
    #[must_use]
    pub fn expires_ms(&self, approvals: Approvals) -> Option<u64> {
        let asked = self.asked.as_ref().filter(|_| self.phase == Phase::Asked)?;
        if asked.budget.is_some() {
            // Nothing was begun: it waits until somebody has an opinion on the money.
            return None;
        }
        Some(asked.since_ms.saturating_add(approvals.expire_ms?))
    }

    /// When those may approve too to whom the rules escalate.
    #[must_use]
    pub fn escalates_ms(&self, approvals: Approvals) -> Option<u64> {
        let asked = self.asked.as_ref().filter(|_| self.phase == Phase::Asked)?;
        let since_ms = Some(asked.since_ms).filter(|_| !asked.escalates.is_empty())?;
        Some(since_ms.saturating_add(approvals.escalate_ms?))
    }

    /// Whether they may at this time, by what exactly these rules asked.
    #[must_use]
    pub fn is_escalated(&self, approvals: Approvals, rules: RuleSetHash, now_ms: u64) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.rule_set == rules)
            && self.escalates_ms(approvals).is_some_and(|at| at <= now_ms)
    }

    /// Takes in what the rules ask. What was approved under other rules is void.
    pub(crate) fn ask(&mut self, verdict: &Verdict, rule_set: RuleSetHash, at_ms: u64) {
        self.approved.retain(|approved| approved.rule_set == rule_set);
        let Verdict::Ask { rules, approvers, escalates } = verdict else { return };
        let before = self.asked.as_ref().filter(|asked| asked.rule_set == rule_set);
        let since_ms = before.map_or(at_ms, |asked| asked.since_ms);
        let (rules, approvers) = (rules.clone(), approvers.clone());
        let (escalates, budget) = (escalates.clone(), None);
        self.asked = Some(Asked { rules, approvers, escalates, rule_set, since_ms, budget });
        self.phase = Phase::Asked;
    }
}

impl State {
    /// How people are asked in this session.
    #[must_use]
    pub fn approvals(&self) -> Approvals {
        self.spec().map_or_else(Approvals::default, |spec| spec.approvals)
    }

    /// Effects that wait for an answer.
    pub fn asked(&self) -> impl Iterator<Item = (Seq, &Effect, &Asked)> {
        let waiting = self.effects.iter().filter(|(_, effect)| effect.phase == Phase::Asked);
        waiting.filter_map(|(id, effect)| Some((*id, effect, effect.asked.as_ref()?)))
    }

    /// Whether an answer would change something now.
    ///
    /// # Errors
    /// Why not.
    pub fn answerable(
        &self,
        id: Seq,
        arguments: Option<&Digest>,
        answer: &Answer,
        now_ms: u64,
    ) -> Result<(), Unanswerable> {
        let effect = self.effects.get(&id).ok_or(Unanswerable::Over)?;
        let answered = effect.phase == Phase::Permitted && !effect.approved.is_empty();
        let open = match answer {
            // Of two who disagree the one who denies wins.
            Answer::Denied { .. } => effect.phase == Phase::Asked || answered,
            Answer::Approved { .. } | Answer::Amended { .. } => effect.phase == Phase::Asked,
        };
        if !open {
            return Err(Unanswerable::NotAsked);
        }
        if let (Work::CallTool(call), Some(arguments)) = (&effect.work, arguments)
            && call.arguments != *arguments
        {
            return Err(Unanswerable::OtherArguments);
        }
        if effect.expires_ms(self.approvals()).is_some_and(|at| at <= now_ms) {
            return Err(Unanswerable::Expired);
        }
        if let Answer::Amended { arguments, .. } = answer {
            let fault = json::arguments_fault(arguments).map(Unanswerable::Malformed);
            fault.map_or(Ok(()), Err)?;
            if !matches!(effect.work, Work::CallTool(_)) {
                return Err(Unanswerable::Malformed("it is no call of a tool".to_owned()));
            }
        }
        Ok(())
    }

    /// Takes an answer in. One that changes nothing is passed over.
    pub(crate) fn answered(
        &mut self,
        id: Seq,
        by: &str,
        arguments: Option<&Digest>,
        answer: &Answer,
        at_ms: u64,
    ) {
        if self.answerable(id, arguments, answer, at_ms).is_err() {
            return;
        }
        let approvals = self.approvals();
        let Some(effect) = self.effects.get_mut(&id) else { return };
        let budget = effect.asked.as_ref().and_then(|asked| asked.budget.clone());
        match answer {
            Answer::Approved { .. } if let Some(shortfall) = &budget => {
                self.lift_soft(shortfall.level(), at_ms);
            }
            Answer::Denied { .. }
                if effect.phase == Phase::Asked
                    && let Some(shortfall) = budget =>
            {
                self.keep_soft(id, shortfall);
            }
            Answer::Approved { rule_set, seen } => {
                let escalated = effect.is_escalated(approvals, *rule_set, at_ms);
                let by = by.to_owned();
                effect.approved.push(Approved { by, rule_set: *rule_set, escalated });
                effect.seen.clone_from(seen);
                effect.phase = Phase::Permitted;
            }
            Answer::Denied { reason } => {
                let reason = format!("A person denied it: {reason}");
                effect.phase = Phase::Refused { reason };
            }
            Answer::Amended { arguments, .. } => {
                let reason = "A person put other arguments in the place of these.".to_owned();
                effect.phase = Phase::Refused { reason };
                if let (Work::CallTool(call), Some(round)) = (&effect.work, &mut self.round) {
                    round.amend(call, id, arguments);
                }
            }
        }
    }

    /// Waiting for people is not the turn's time, as long as nothing else goes on.
    pub(crate) fn note_waiting(&mut self, at_ms: u64) {
        let mut open = self.effects.values();
        let waits = open.len() > 0 && open.all(|effect| effect.phase == Phase::Asked);
        let Some(turn) = &mut self.turn else { return };
        match (turn.idle_since_ms, waits) {
            (None, true) => turn.idle_since_ms = Some(at_ms),
            (Some(since_ms), false) => {
                let waited_ms = at_ms.saturating_sub(since_ms);
                turn.since_ms = turn.since_ms.saturating_add(waited_ms).min(at_ms);
                turn.idle_since_ms = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// The first effect that nobody answered about in time.
    pub(crate) fn expired(&self, now_ms: u64) -> Option<Seq> {
        let approvals = self.approvals();
        let over = |effect: &Effect| effect.expires_ms(approvals).is_some_and(|at| at <= now_ms);
        self.effects.iter().find(|(_, effect)| over(effect)).map(|(id, _)| *id)
    }

    /// When the first of those that wait for an answer is denied without one.
    #[must_use]
    pub fn next_expiry_ms(&self) -> Option<u64> {
        let approvals = self.approvals();
        self.effects.values().filter_map(|effect| effect.expires_ms(approvals)).min()
    }

    /// The arguments that a person put in the place of those that the model wrote, for a
    /// call that was made of them.
    #[must_use]
    pub fn amendment(&self, call: &ToolCall) -> Option<&str> {
        call.amends?;
        self.call(call).map(|call| call.arguments.as_str())
    }
}
