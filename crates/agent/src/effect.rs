//! An effect that is not settled: how far it is, what is reserved for it, how people are asked
//! about it, by the rules or by a soft limit, and how what they answer is taken in.
//!
//! Owns the steps from one phase to the next, and which answer still counts. Must never let one
//! that was started or refused be judged again. No answer lets anything happen by itself: the
//! rules are asked once more with it when the effect is about to start.

use outrigger_policy::{Approved, RuleSetHash, Verdict};
use serde::{Deserialize, Serialize};

use crate::{
    Amounts, Answer, ApprovalRequest, Approvals, Digest, FileBaseline, Place, Shortfall,
    Unanswerable, Work, json,
};

/// An effect that is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What it does.
    pub work: Work,
    /// How far it is.
    pub phase: Phase,
    /// Which rules judged it last.
    #[serde(default)]
    pub judged: Option<RuleSetHash>,
    /// What the rules ask, if they do.
    #[serde(default)]
    pub asked: Option<ApprovalRequest>,
    /// Who approved it, under the rules that ask now.
    #[serde(default)]
    pub approved: Vec<Approved>,
    /// What the file that it changes was when it was approved.
    #[serde(default)]
    pub seen: Option<FileBaseline>,
}

/// How far an effect is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The rules were not asked yet.
    Proposed,
    /// A person has to answer.
    Asked,
    /// It may start.
    Permitted,
    /// It may not be done.
    Refused {
        /// Why.
        reason: String,
    },
    /// It is being performed, or was when the harness died.
    Started {
        /// Which attempt.
        attempt: u32,
        /// What is reserved for it.
        reserved: Amounts,
        /// Where it runs.
        place: Option<Place>,
        /// Since when, in milliseconds.
        since_ms: u64,
    },
}

impl Effect {
    /// What is reserved for it.
    pub(crate) fn reserved(&self) -> Amounts {
        match &self.phase {
            Phase::Started { reserved, .. } => *reserved,
            Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. } => {
                Amounts::default()
            }
        }
    }

    /// What it is charged with if it ends now and nobody counted.
    pub(crate) fn spent_at_most(&self, now_ms: u64) -> Amounts {
        match &self.phase {
            Phase::Started { reserved, since_ms, .. } => {
                reserved.within(now_ms.saturating_sub(*since_ms))
            }
            Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. } => {
                Amounts::default()
            }
        }
    }

    /// Takes in what the rules say.
    pub(crate) fn judge(&mut self, verdict: &Verdict, rule_set: RuleSetHash, at_ms: u64) {
        if matches!(self.phase, Phase::Started { .. } | Phase::Refused { .. }) {
            return;
        }
        self.judged = Some(rule_set);
        match verdict {
            Verdict::Permit { .. } => self.phase = Phase::Permitted,
            Verdict::Ask { .. } => self.ask(verdict, rule_set, at_ms),
            Verdict::Forbid { .. } => {
                let reason = verdict.refusal().unwrap_or_default();
                self.phase = Phase::Refused { reason };
            }
        }
    }

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
        self.asked =
            Some(ApprovalRequest { rules, approvers, escalates, rule_set, since_ms, budget });
        self.phase = Phase::Asked;
    }

    /// A soft limit asks a person about it.
    pub(crate) fn ask_about_budget(
        &mut self,
        shortfall: &Shortfall,
        rule_set: RuleSetHash,
        at_ms: u64,
    ) {
        self.asked = Some(ApprovalRequest {
            rules: vec![Shortfall::RULE.to_owned()],
            approvers: Vec::new(),
            escalates: Vec::new(),
            rule_set,
            since_ms: at_ms,
            budget: Some(shortfall.clone()),
        });
        self.phase = Phase::Asked;
    }

    /// The soft limit that asks about it, if it is none of the rules.
    pub(crate) fn soft_limit(&self) -> Option<&Shortfall> {
        self.asked.as_ref().filter(|_| self.phase == Phase::Asked)?.budget.as_ref()
    }

    /// Nobody is asked about it any more, and it may start.
    pub(crate) fn withdraw_question(&mut self) {
        self.phase = Phase::Permitted;
        self.asked = None;
    }

    /// Whether an answer would change something now.
    pub(crate) fn answerable(
        &self,
        approvals: Approvals,
        arguments: Option<&Digest>,
        answer: &Answer,
        now_ms: u64,
    ) -> Result<(), Unanswerable> {
        let answered = self.phase == Phase::Permitted && !self.approved.is_empty();
        let open = match answer {
            // Of two who disagree the one who denies wins.
            Answer::Denied { .. } => self.phase == Phase::Asked || answered,
            Answer::Approved { .. } | Answer::Amended { .. } => self.phase == Phase::Asked,
        };
        if !open {
            return Err(Unanswerable::NotAsked);
        }
        if let (Work::CallTool(call), Some(arguments)) = (&self.work, arguments)
            && call.arguments != *arguments
        {
            return Err(Unanswerable::OtherArguments);
        }
        if self.expires_ms(approvals).is_some_and(|at| at <= now_ms) {
            return Err(Unanswerable::Expired);
        }
        if let Answer::Amended { arguments, .. } = answer {
            let fault = json::arguments_fault(arguments).map(Unanswerable::Malformed);
            fault.map_or(Ok(()), Err)?;
            if !matches!(self.work, Work::CallTool(_)) {
                return Err(Unanswerable::Malformed("it is no call of a tool".to_owned()));
            }
        }
        Ok(())
    }

    /// Takes in what a person answered to the rules.
    pub(crate) fn answer(&mut self, by: &str, approvals: Approvals, answer: &Answer, at_ms: u64) {
        match answer {
            Answer::Approved { rule_set, seen, .. } => {
                let escalated = self.is_escalated(approvals, *rule_set, at_ms);
                let by = by.to_owned();
                self.approved.push(Approved { by, rule_set: *rule_set, escalated });
                self.seen.clone_from(seen);
                self.phase = Phase::Permitted;
            }
            Answer::Denied { reason } => {
                let reason = format!("A person denied it: {reason}");
                self.phase = Phase::Refused { reason };
            }
            Answer::Amended { .. } => {
                let reason = "A person put other arguments in the place of these.".to_owned();
                self.phase = Phase::Refused { reason };
            }
        }
    }
}
