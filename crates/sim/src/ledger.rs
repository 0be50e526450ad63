//! The ledger of a session, kept a second time and in other words than the turn
//! machine's: which effect was decided how, what was begun, and what it may cost.
//!
//! Takes events one by one and says at each what does not hold. Must never look at
//! the state that the engine decides from.

use outrigger_agent::{Amounts, Answer, Event, Limit, Outcome, Seq, Work};
use outrigger_policy::{RuleSetHash, Verdict};
use std::collections::BTreeMap;

use crate::Violation;
use crate::rules::{Kind, Says};

/// One effect.
#[derive(Debug, Clone)]
struct Entry {
    work: Work,
    /// Whether the last word was that it may be done.
    permitted: bool,
    /// Under which rules a person is asked.
    asked: Option<RuleSetHash>,
    /// Under which rules a person said yes, and nobody no since.
    approved: Option<RuleSetHash>,
    attempts: u32,
    /// It was meant to be begun once, whether it is now or not.
    intended: bool,
    reserved: Amounts,
    /// When what is reserved began to be used.
    since_ms: u64,
    settled: bool,
    /// It may still come about.
    unknown: bool,
}

/// The effects of one session, how each was decided, and what it may cost.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: BTreeMap<Seq, Entry>,
    budget: Option<Limit>,
    is_below: bool,
    charged: Amounts,
    /// `Started` events of model calls.
    pub(crate) questions: u64,
    /// `Started` events that began an effect again.
    pub(crate) repeated: u64,
}

/// Who appends, or begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Under {
    pub(crate) kind: Kind,
    pub(crate) hash: RuleSetHash,
}

impl Ledger {
    /// Takes an event in.
    pub(crate) fn take(
        &mut self,
        (seq, at_ms): (Seq, u64),
        event: &Event,
        under: Under,
    ) -> Result<(), Violation> {
        match event {
            Event::Opened(spec) => {
                self.budget.get_or_insert(spec.budget);
                self.is_below = spec.parent().is_some();
            }
            Event::Proposed(work) => self.propose(seq, work),
            Event::Decided { effect, verdict, rule_set } => {
                if *rule_set != under.hash {
                    return Err(Violation::Undecided(*effect));
                }
                self.decide(*effect, verdict, *rule_set);
            }
            Event::Answered { effect, answer, .. } => self.answer(*effect, answer)?,
            Event::Started { effect, attempt, reserved, .. } => {
                self.start((*effect, at_ms), *attempt, *reserved, under)?;
            }
            Event::Withheld { effect, .. } => {
                self.lose(*effect, at_ms);
                // It begins anew when there is room.
                self.entries.entry(*effect).and_modify(|entry| entry.attempts = 0);
            }
            Event::Settled { effect, outcome, spent, .. } => {
                self.settle(*effect, outcome, *spent)?;
            }
            Event::Resumed { budget: Some(budget), .. } => self.budget = Some(*budget),
            _ => {}
        }
        Ok(())
    }

    fn propose(&mut self, seq: Seq, work: &Work) {
        let entry = Entry {
            work: work.clone(),
            permitted: false,
            asked: None,
            approved: None,
            attempts: 0,
            intended: false,
            reserved: Amounts::default(),
            since_ms: 0,
            settled: false,
            unknown: false,
        };
        self.entries.insert(seq, entry);
    }

    fn decide(&mut self, effect: Seq, verdict: &Verdict, rule_set: RuleSetHash) {
        let Some(entry) = self.entries.get_mut(&effect) else { return };
        entry.permitted = matches!(verdict, Verdict::Permit { .. });
        entry.asked = matches!(verdict, Verdict::Ask { .. }).then_some(rule_set);
    }

    fn answer(&mut self, effect: Seq, answer: &Answer) -> Result<(), Violation> {
        let late = Violation::AnsweredTwice(effect);
        let entry = self.entries.get_mut(&effect).filter(|entry| !entry.settled);
        let entry = entry.ok_or(late.clone())?;
        match answer {
            Answer::Approved { rule_set, .. } => {
                let asked = entry.asked.take().ok_or(late)?;
                if asked == *rule_set {
                    entry.approved = Some(asked);
                }
                entry.permitted = true;
            }
            Answer::Amended { .. } | Answer::Denied { .. } => {
                (entry.permitted, entry.asked, entry.approved) = (false, None, None);
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        (effect, at_ms): (Seq, u64),
        attempt: u32,
        reserved: Amounts,
        under: Under,
    ) -> Result<(), Violation> {
        self.allows(effect, under)?;
        let entry = self.entries.get_mut(&effect).ok_or(Violation::Undecided(effect))?;
        if entry.settled || !entry.permitted {
            return Err(Violation::Undecided(effect));
        }
        if attempt != entry.attempts + 1 {
            return Err(Violation::StartedTwice(format!("effect {effect}, attempt {attempt}")));
        }
        self.lose(effect, at_ms);
        let entry = self.entries.get_mut(&effect).ok_or(Violation::Undecided(effect))?;
        (entry.attempts, entry.intended) = (attempt, true);
        (entry.reserved, entry.since_ms) = (reserved, at_ms);
        self.questions += u64::from(matches!(entry.work, Work::AskModel | Work::Compact));
        self.repeated += u64::from(attempt > 1);
        if self.budget.is_some_and(|budget| !self.owed().fits(budget)) {
            return Err(Violation::Overspent(effect));
        }
        Ok(())
    }

    /// What is not known to have come to its end stays charged; of time, what went by.
    fn lose(&mut self, effect: Seq, at_ms: u64) {
        let Some(entry) = self.entries.get_mut(&effect) else { return };
        let Amounts { wall_ms: most_ms, cpu_ms: most_cpu_ms, .. } = entry.reserved;
        let wall_ms = most_ms.min(at_ms.saturating_sub(entry.since_ms));
        // Processors are used while time goes by.
        let cpu_ms = (most_cpu_ms * wall_ms).checked_div(most_ms).unwrap_or(most_cpu_ms);
        self.charged = self.charged.plus(Amounts { wall_ms, cpu_ms, ..entry.reserved });
        entry.reserved = Amounts::default();
    }

    fn settle(&mut self, effect: Seq, outcome: &Outcome, spent: Amounts) -> Result<(), Violation> {
        let entry = self.entries.get_mut(&effect).filter(|entry| !entry.settled);
        let entry = entry.ok_or(Violation::SettledTwice(effect))?;
        if entry.attempts == 0 && matches!(outcome, Outcome::Done(_)) {
            return Err(Violation::NoIntent(format!("effect {effect}")));
        }
        entry.settled = true;
        entry.unknown = matches!(outcome, Outcome::Unknown { .. });
        if !spent.fits(entry.reserved.into()) {
            return Err(Violation::Overspent(effect));
        }
        entry.reserved = Amounts::default();
        self.charged = self.charged.plus(spent);
        Ok(())
    }

    /// Whether an effect may be begun where these rules are in force.
    pub(crate) fn allows(&self, effect: Seq, under: Under) -> Result<(), Violation> {
        let entry = self.entries.get(&effect).ok_or(Violation::Undecided(effect))?;
        let allowed = match under.kind.says(&entry.work, self.is_below) {
            Says::Yes => true,
            Says::Ask => entry.approved == Some(under.hash),
            Says::No => false,
        };
        if allowed { Ok(()) } else { Err(Violation::Forbidden(effect)) }
    }

    /// Whether the intent to begin an effect was made durable.
    pub(crate) fn intended(&self, effect: Seq) -> bool {
        self.entries.get(&effect).is_some_and(|entry| entry.intended)
    }

    /// Whether an effect is over, and everybody was told how.
    pub(crate) fn is_over(&self, effect: Seq) -> bool {
        self.entries.get(&effect).is_some_and(|entry| entry.settled && !entry.unknown)
    }

    /// Whether an effect is under way.
    pub(crate) fn is_open(&self, effect: Seq) -> bool {
        self.entries.get(&effect).is_some_and(|entry| entry.attempts > 0 && !entry.settled)
    }

    /// The tool that an effect calls.
    pub(crate) fn tool(&self, effect: Seq) -> Option<&str> {
        match &self.entries.get(&effect)?.work {
            Work::CallTool(call) => Some(&call.tool),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        }
    }

    /// What is reserved for an effect that is under way.
    pub(crate) fn reserved(&self, effect: Seq) -> Amounts {
        self.entries.get(&effect).map_or_else(Amounts::default, |entry| entry.reserved)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.entries.values().all(|entry| entry.attempts == 0 || entry.settled)
    }

    /// Whether the intent to make a sandbox was ever made durable.
    pub(crate) fn provisions(&self) -> bool {
        let made = |entry: &Entry| matches!(entry.work, Work::Provision { .. }) && entry.intended;
        self.entries.values().any(made)
    }

    /// What is charged, and what is reserved for what is under way.
    pub(crate) fn owed(&self) -> Amounts {
        self.entries.values().fold(self.charged, |sum, entry| sum.plus(entry.reserved))
    }
}
