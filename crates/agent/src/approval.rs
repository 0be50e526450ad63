//! What people answer when the rules ask.
//!
//! Owns what an approval is bound to: one effect, by the digest of its arguments, under
//! the rules that asked. It never lets anything happen by itself: the rules are asked
//! once more with it when the effect is about to start.

use serde::{Deserialize, Serialize};

use outrigger_policy::{Approved, RuleSetHash, Verdict};

use crate::state::{Effect, Phase};
use crate::{Answer, Digest, Seq, Shortfall, State, ToolCall, Work, json};

/// How people are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Approvals {
    /// What nobody answered for so long is denied, in milliseconds. `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_ms: Option<u64>,
    /// What nobody answered for so long may be approved also by those to whom the rules
    /// escalate, in milliseconds. `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_ms: Option<u64>,
}

impl Approvals {
    /// Whether nothing was set.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A verdict of `ask` that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The rules that ask.
    pub rules: Vec<String>,
    /// Who may approve; empty: whoever may speak in the session.
    pub approvers: Vec<String>,
    /// Who may too once it escalates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalates: Vec<String>,
    /// Which rules were in force.
    pub rule_set: RuleSetHash,
    /// Since when.
    pub since_ms: u64,
    /// It is not the rules that ask, but a soft limit of a budget.
    #[serde(default)]
    pub budget: Option<Shortfall>,
}

/// What a file was when somebody approved a change of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// There was none.
    Absent,
    /// One with this content.
    File(Digest),
}

/// Why an answer changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswerable {
    /// There is no such effect, or it is over.
    #[error("there is nothing of that name that is still to be done")]
    Over,
    /// Nobody is asked about it: it was answered, or never had to be.
    #[error("nobody is asked about it any more")]
    NotAsked,
    /// It was asked about something else.
    #[error("its arguments are not those that were looked at")]
    OtherArguments,
    /// Something else is asked about it by now.
    #[error("something else is asked about it than what was answered")]
    OtherQuestion,
    /// It came too late.
    #[error("it was not answered in time, so it is denied")]
    Expired,
    /// Only a tool call has arguments, and they are a JSON object.
    #[error("the changed arguments are no JSON object: {0}")]
    Malformed(String),
}

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
