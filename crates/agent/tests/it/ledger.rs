//! What the ledger promises, checked event by event from the events alone, with a
//! bookkeeping of its own beside the state's.

use outrigger_agent::{
    Amounts, Answer, Cause, Concurrency, Event, Item, Limit, Measure, Outcome, Record, Seq,
    Shortfall, State, TurnEnd, TurnLimits, Work,
};
use outrigger_policy::Verdict;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Proposed,
    Asked,
    Permitted,
    Forbidden,
    Started,
    Settled,
}

/// Looks at every event and at the state after it; panics where a promise breaks.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    effects: BTreeMap<Seq, (Work, Standing, Amounts)>,
    /// When what is under way was started.
    since_ms: BTreeMap<Seq, u64>,
    budget: Limit,
    spent: Amounts,
    soft: Limit,
    /// Levels on which a person let it go beyond the soft limit.
    lifted: BTreeSet<String>,
    /// Effects that a soft limit asks about, with the level.
    soft_asked: BTreeMap<Seq, String>,
    limits: Option<TurnLimits>,
    turn_steps: u64,
    was_in_turn: bool,
    was_cancelled: bool,
    performed_calls: BTreeSet<(Seq, u32)>,
    /// When a person last stopped a turn: calls of replies before that are over.
    stopped_at: Seq,
    /// Everything that was settled cost at most what was reserved, and the budget was not
    /// lowered.
    fitted: bool,
    /// Something other than a call has an unknown outcome, and nobody looked yet.
    unknown: bool,
}

impl Ledger {
    pub(crate) fn check(&mut self, record: &Record, after: &State) {
        match &record.event {
            Event::Opened(spec) => {
                self.budget = spec.budget;
                self.soft = spec.soft;
                self.fitted = true;
                self.limits = Some(spec.turn);
            }
            Event::Proposed(work) => {
                if let Work::CallTool(call) = work {
                    assert!(call.reply > self.stopped_at, "a call outlived its stopped turn");
                }
                let entry = (work.clone(), Standing::Proposed, Amounts::default());
                assert!(self.effects.insert(record.seq, entry).is_none());
            }
            Event::Decided { effect, verdict, .. } => self.decided(*effect, verdict),
            Event::Answered { effect, answer, .. } => self.answered(*effect, answer),
            Event::Started { effect, attempt, reserved, .. } => {
                self.started(*effect, *attempt, *reserved, record.at_ms);
                check_conversation(after.conversation());
            }
            Event::Withheld { effect, shortfall } => {
                self.withheld(*effect, shortfall, record.at_ms);
            }
            Event::Settled { effect, outcome, spent, .. } => {
                let call = matches!(self.effects[effect].0, Work::CallTool(_));
                self.unknown |= !call && matches!(outcome, Outcome::Unknown { .. });
                self.settled(*effect, *spent, after);
            }
            Event::Resumed { budget, turn, .. } if !self.was_cancelled => {
                if let Some(budget) = budget {
                    self.set_budget(*budget);
                }
                self.limits = turn.or(self.limits);
                self.turn_steps = 0;
                self.unknown = false;
            }
            Event::TurnEnded(end) => {
                self.turn_steps = 0;
                self.unknown = false;
                if *end == TurnEnd::Interrupted {
                    self.stopped_at = record.seq;
                }
                assert_eq!(self.in_flight().count(), 0, "a turn ended over running effects");
            }
            Event::Cancelled { .. } => self.was_cancelled = true,
            Event::Forked { cut, .. } | Event::Rewound { cut, .. } => {
                panic!("nobody cut this session, at {}", cut.at)
            }
            Event::Said(_)
            | Event::Touched(_)
            | Event::Reached(_)
            | Event::SandboxLost { .. }
            | Event::SandboxKept { .. }
            | Event::Interrupted { .. }
            | Event::Shared { .. }
            | Event::CompactionRequested { .. }
            | Event::Resumed { .. } => {}
        }
        if after.in_turn() && !self.was_in_turn {
            self.turn_steps = 0;
        }
        self.was_in_turn = after.in_turn();
        assert_eq!(after.spent(), self.spent, "spent");
        assert_eq!(after.budget(), self.budget, "budget");
    }

    fn set_budget(&mut self, budget: Limit) {
        let more = Measure::ALL.into_iter().any(|measure| {
            let limit = |of: &Limit| of.of(measure).unwrap_or(u64::MAX);
            limit(&budget) > limit(&self.budget)
        });
        if more {
            self.lifted.insert("session".to_owned());
        }
        self.budget = budget;
        // A budget may be set below what was spent already, or is under way.
        self.fitted = self.open().fits(self.budget);
    }

    fn withheld(&mut self, effect: Seq, shortfall: &Shortfall, at_ms: u64) {
        let soft = matches!(shortfall.cause, Cause::Soft(_));
        match *self.standing(effect) {
            Standing::Permitted => {}
            Standing::Started => self.lost(effect, at_ms),
            other => panic!("withheld when {other:?}"),
        }
        *self.standing(effect) = if soft { Standing::Asked } else { Standing::Permitted };
        if soft {
            self.soft_asked.insert(effect, shortfall.level().to_owned());
        }
    }

    fn standing(&mut self, effect: Seq) -> &mut Standing {
        &mut self.effects.get_mut(&effect).expect("the effect was proposed").1
    }

    fn in_flight(&self) -> impl Iterator<Item = (Seq, &Work, Amounts)> {
        let flies = |(_, (_, standing, _)): &(_, &(_, Standing, _))| *standing == Standing::Started;
        self.effects.iter().filter(flies).map(|(id, (work, _, reserved))| (*id, work, *reserved))
    }

    /// What was spent, and what is reserved for what is under way.
    fn open(&self) -> Amounts {
        self.in_flight().fold(self.spent, |sum, (_, _, reserved)| sum.plus(reserved))
    }

    fn decided(&mut self, effect: Seq, verdict: &Verdict) {
        let standing = self.standing(effect);
        assert!(
            matches!(standing, Standing::Proposed | Standing::Permitted),
            "judged when {standing:?}"
        );
        *standing = match verdict {
            Verdict::Permit { .. } => Standing::Permitted,
            Verdict::Ask { .. } => Standing::Asked,
            Verdict::Forbid { .. } => Standing::Forbidden,
        };
    }

    fn answered(&mut self, effect: Seq, answer: &Answer) {
        let is_call = matches!(self.effects[&effect].0, Work::CallTool(_));
        let asked = self.effects[&effect].1 == Standing::Asked;
        if let Some(level) = self.soft_asked.get(&effect).filter(|_| asked).cloned() {
            return self.answered_about_budget(effect, &level, answer, is_call);
        }
        let standing = self.standing(effect);
        *standing = match (*standing, answer) {
            (Standing::Asked, Answer::Approved { .. }) => Standing::Permitted,
            (Standing::Asked, Answer::Denied { .. }) => Standing::Forbidden,
            (Standing::Asked, Answer::Amended { .. }) if is_call => Standing::Forbidden,
            (before, _) => before,
        };
    }

    /// Yes is said of everything that the level asks about, no of this effect.
    fn answered_about_budget(&mut self, effect: Seq, level: &str, answer: &Answer, call: bool) {
        let standing = match answer {
            Answer::Approved { .. } => {
                self.lifted.insert(level.to_owned());
                let all = self.soft_asked.iter().filter(|(_, asked)| *asked == level);
                let all: Vec<Seq> = all.map(|(id, _)| *id).collect();
                for id in all {
                    self.soft_asked.remove(&id);
                    if self.effects[&id].1 == Standing::Asked {
                        *self.standing(id) = Standing::Permitted;
                    }
                }
                return;
            }
            Answer::Denied { .. } => Standing::Permitted,
            Answer::Amended { .. } if call => Standing::Forbidden,
            Answer::Amended { .. } => return,
        };
        self.soft_asked.remove(&effect);
        *self.standing(effect) = standing;
    }

    fn started(&mut self, effect: Seq, attempt: u32, reserved: Amounts, at_ms: u64) {
        assert!(!self.was_cancelled, "started after the end of the session");
        let before = *self.standing(effect);
        if attempt == 1 {
            assert_eq!(before, Standing::Permitted, "started without a permit");
            assert!(!self.unknown, "went on after an unknown outcome");
            self.count(effect);
        } else {
            assert_eq!(before, Standing::Started, "a further attempt at what was not started");
            self.charge_lost(effect, at_ms);
        }
        self.since_ms.insert(effect, at_ms);
        let entry = self.effects.get_mut(&effect).expect("the effect was proposed");
        (entry.1, entry.2) = (Standing::Started, reserved);
        let open = self.open();
        assert!(open.fits(self.budget), "{open:?} is more than {:?}", self.budget);
        let free = reserved == Amounts::default() || attempt > 1;
        let lifted = free || self.lifted.contains("session");
        assert!(lifted || open.fits(self.soft), "{open:?} is beyond {:?} unasked", self.soft);
    }

    /// A lost attempt stays charged at what was reserved for it, but for time that it can't
    /// have taken.
    fn charge_lost(&mut self, effect: Seq, at_ms: u64) {
        let mut charged = self.effects[&effect].2;
        charged.wall_ms = charged.wall_ms.min(at_ms - self.since_ms[&effect]);
        self.spent = self.spent.plus(charged);
    }

    /// An attempt was lost, and the effect may begin anew: it stays charged.
    fn lost(&mut self, effect: Seq, at_ms: u64) {
        self.charge_lost(effect, at_ms);
        if let Work::CallTool(call) = &self.effects[&effect].0 {
            self.performed_calls.remove(&(call.reply, call.index));
        }
    }

    fn count(&mut self, effect: Seq) {
        match &self.effects[&effect].0 {
            Work::Provision { .. } => return,
            // Another effect came in the place of the one that it amends.
            Work::CallTool(call) => {
                let first = self.performed_calls.insert((call.reply, call.index));
                assert!(first, "a call was performed twice");
            }
            Work::AskModel | Work::Compact => {
                assert_eq!(self.in_flight().count(), 0, "the model is asked beside other effects");
            }
        }
        self.turn_steps += 1;
        let limit = self.limits.expect("the session was opened").steps_max;
        assert!(self.turn_steps <= limit, "step {} of {limit}", self.turn_steps);
    }

    fn settled(&mut self, effect: Seq, spent: Amounts, after: &State) {
        let standing = self.standing(effect);
        assert_ne!(*standing, Standing::Settled, "settled twice");
        *standing = Standing::Settled;
        let reserved = self.effects[&effect].2;
        self.spent = self.spent.plus(spent);
        let open = self.open();
        // Who takes no more than was reserved never brings it above the limit.
        let honest = spent.fits(reserved.into());
        assert!(!honest || !self.fitted || open.fits(self.budget), "{open:?} is too much");
        self.fitted &= honest;
        assert!(after.effect(effect).is_none());
    }

    /// No exclusive call runs beside another one.
    pub(crate) fn check_overlap(&self, state: &State) {
        let calls = self.in_flight().filter_map(|(_, work, _)| match work {
            Work::CallTool(call) => state.tool(&call.tool),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        });
        let calls: Vec<_> = calls.collect();
        let alone = calls.iter().any(|tool| tool.concurrency == Concurrency::Exclusive);
        assert!(!alone || calls.len() == 1, "an exclusive call runs beside others");
    }
}

/// Every call of every reply has exactly one result, in call order, directly after
/// the reply; and there is no other result. The last reply may have an open round
/// only while the model is not asked.
pub(crate) fn check_conversation(conversation: &[Item]) {
    let mut items = conversation.iter().peekable();
    while let Some(item) = items.next() {
        match item {
            Item::Reply(reply) => {
                let open = items.peek().is_none();
                for call in reply.calls() {
                    match items.next() {
                        Some(Item::Result(result)) => {
                            assert_eq!((&result.call, &result.tool), (&call.id, &call.name));
                        }
                        None if open => break,
                        other => panic!("after the call {} stands {other:?}", call.id),
                    }
                }
            }
            Item::Result(result) => panic!("a result without its call: {result:?}"),
            Item::Message(_) | Item::Summary(_) | Item::Notice(_) => {}
        }
    }
}

/// Fails unless the conversation is one that a model may be shown: it is well formed, and no
/// call at its end waits for its result.
pub(crate) fn check_request(conversation: &[Item]) {
    check_conversation(conversation);
    if let Some(Item::Reply(last)) = conversation.last() {
        assert_eq!(last.calls().count(), 0, "the model is asked while its calls have no results");
    }
}
