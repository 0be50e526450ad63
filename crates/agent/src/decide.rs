//! `decide`: what should happen next. Total, and the same state gives the same answer.

use crate::spending::{left, reservation, shortfall};
use crate::subagent::{asks_too_much, is_starved};
use crate::{
    Amounts, Concurrency, Event, Failure, Item, Outcome, Phase, Place, Seq, SessionId, Spec, State,
    Stop, ToolCall, TurnEnd, Work, compaction, limits,
};

/// What should happen next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Append this event and decide again. It touches nothing in the world.
    Record(Event),
    /// Ask the rules about an effect, and append what they say.
    Judge(Seq),
    /// Ask the rules once more, append this `Started`, and perform the effect.
    Start(Seq, Event),
    /// These effects are started and not settled: perform those that are not being
    /// performed already, and wait for one of them.
    Perform(Vec<Seq>),
    /// These effects are started and to be stopped: settle each as cancelled.
    Stop(Vec<Seq>),
    /// Nothing to do until then, in milliseconds since 1970, or until something is appended.
    Wait(u64),
    /// Nothing to do until something is appended.
    Park(Park),
}

/// What a session waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Park {
    /// To be opened.
    Unopened,
    /// A person to say something, or to resume a turn that could not go on.
    Message,
    /// A person to answer about these effects.
    Answers(Vec<Seq>),
    /// Nothing: the session was ended.
    Cancelled,
}

impl State {
    /// Decides. `now_ms` is the time that the next event would carry.
    #[must_use]
    pub fn decide(&self, session: &SessionId, now_ms: u64) -> Next {
        let Some(spec) = &self.spec else { return Next::Park(Park::Unopened) };
        if self.turn.is_none() {
            let park = if self.cancelled { Park::Cancelled } else { Park::Message };
            return Next::Park(park);
        }
        if self.cancelled {
            return self.wind_down(TurnEnd::Cancelled);
        }
        if self.stuck == Some(TurnEnd::Interrupted) {
            return self.wind_down(TurnEnd::Interrupted);
        }
        if let Some(id) = self.effects.expired(self.approvals(), now_ms) {
            let reason = "Nobody approved it in time.".to_owned();
            return settle(id, Outcome::Failed(Failure::Denied { reason }));
        }
        if let Some(next) = self.advance_ledger().or_else(|| self.propose_call()) {
            return next;
        }
        if self.stuck.is_none()
            && let Some(next) = self.start_one(spec, session, now_ms)
        {
            return next;
        }
        let started = self.in_flight();
        if !started.is_empty() {
            return Next::Perform(started);
        }
        if let Some(end) = &self.stuck {
            return Next::Record(Event::TurnEnded(end.clone()));
        }
        let asked = self.effects.in_phase(|phase| *phase == Phase::Asked);
        if !asked.is_empty() {
            return Next::Park(Park::Answers(asked));
        }
        match self.throttled_until_ms() {
            Some(until_ms) if now_ms < until_ms => Next::Wait(until_ms),
            _ => self.converse(spec),
        }
    }

    /// Until when the model's provider is not asked, because it takes no more requests, in
    /// milliseconds since 1970. It may have passed.
    #[must_use]
    pub fn throttled_until_ms(&self) -> Option<u64> {
        self.turn.as_ref()?.throttled_until_ms
    }

    /// When a provider is asked again that takes no more requests and wants to be left alone
    /// for `asked_ms`, in milliseconds since 1970. `None` if the turn is to end instead: it has
    /// no time left by then, or waited often enough.
    #[must_use]
    pub fn retry_at_ms(&self, asked_ms: u64, now_ms: u64) -> Option<u64> {
        self.turn.as_ref()?.retry_at_ms(asked_ms, self.limits?.wall_ms_max, now_ms)
    }

    /// What the model is shown for an effect: the conversation, or a shortened one
    /// that a summary is asked of.
    #[must_use]
    pub fn request_items(&self, work: &Work) -> std::borrow::Cow<'_, [Item]> {
        match work {
            Work::Compact => {
                let room = self.room();
                compaction::ask(&self.conversation, room, self.context.attempts).into()
            }
            Work::AskModel | Work::Provision { .. } | Work::CallTool(_) => {
                (&self.conversation[..]).into()
            }
        }
    }

    /// How much a model may write for an effect, in tokens: as much as was reserved for it.
    #[must_use]
    pub fn output_tokens_max(&self, work: &Work) -> u64 {
        let most = self.spec.as_ref().map_or(1, |spec| spec.model.output_tokens_max);
        let reserved = self.effects.of_work(work).map_or(0, |effect| effect.reserved().tokens);
        let room = reserved.saturating_sub(self.input_tokens_estimate());
        let most = if reserved > 0 { most.min(room.max(limits::OUTPUT_TOKENS_MIN)) } else { most };
        match work {
            Work::Compact => most.min(limits::SUMMARY_TOKENS_MAX),
            Work::AskModel | Work::Provision { .. } | Work::CallTool(_) => most,
        }
    }

    /// A person stopped it: nothing further starts, what runs is stopped.
    fn wind_down(&self, end: TurnEnd) -> Next {
        let waiting = self.effects.in_phase(|phase| !matches!(phase, Phase::Started { .. }));
        if let Some(id) = waiting.first() {
            return settle(*id, Outcome::Cancelled);
        }
        let started = self.in_flight();
        if started.is_empty() {
            return Next::Record(Event::TurnEnded(end));
        }
        Next::Stop(started)
    }

    /// Effects that were started and are not settled.
    #[must_use]
    pub fn in_flight(&self) -> Vec<Seq> {
        self.effects.in_flight()
    }

    /// Moves what needs no start: judges what is proposed, settles what is refused or unsound.
    fn advance_ledger(&self) -> Option<Next> {
        for (id, effect) in self.effects.iter() {
            match &effect.phase {
                Phase::Proposed => {
                    return Some(match self.fault(&effect.work) {
                        Some(fault) => settle(id, Outcome::Failed(fault)),
                        None => Next::Judge(id),
                    });
                }
                Phase::Refused { reason } => {
                    let failure = Failure::Denied { reason: reason.clone() };
                    return Some(settle(id, Outcome::Failed(failure)));
                }
                Phase::Asked | Phase::Permitted | Phase::Started { .. } => {}
            }
        }
        None
    }

    fn fault(&self, work: &Work) -> Option<Failure> {
        let Work::CallTool(call) = work else { return None };
        let fault = self.round.as_ref()?.fault(call.index)?;
        Some(Failure::Call(fault.clone()))
    }

    fn propose_call(&self) -> Option<Next> {
        let call = self.round.as_ref()?.unproposed()?;
        Some(Next::Record(Event::Proposed(Work::CallTool(call))))
    }

    /// Starts the next effect that may start now, or ends the turn if a limit stands against it.
    fn start_one(&self, spec: &Spec, session: &SessionId, now_ms: u64) -> Option<Next> {
        let permitted = self.effects.in_phase(|phase| *phase == Phase::Permitted);
        for id in permitted {
            let work = &self.effect(id)?.work;
            let place = match work {
                Work::CallTool(call) if !self.may_run_now(id, call) => continue,
                Work::CallTool(call) if self.subagent_waits(id, call, spec) => continue,
                Work::CallTool(call) if let Some(reason) = self.refused_budget(id, call) => {
                    return Some(settle(id, Outcome::Failed(Failure::Denied { reason })));
                }
                Work::CallTool(call) => match self.place(id, call, session) {
                    Ok(place) => place,
                    Err(missing) => match self.provision(missing) {
                        Some(next) => return Some(next),
                        None => continue,
                    },
                },
                Work::AskModel | Work::Compact | Work::Provision { .. } => None,
            };
            let reserved = reservation(self, work, spec, left(self));
            if let Some(end) = self.limit_reached(reserved, now_ms) {
                // What runs comes to its end first; then the turn ends.
                return self.in_flight().is_empty().then_some(Next::Record(Event::TurnEnded(end)));
            }
            if let Some(shortfall) = shortfall(self, work, reserved) {
                return Some(Next::Record(Event::Withheld { effect: id, shortfall }));
            }
            let started = Event::Started { effect: id, attempt: 1, reserved, place };
            return Some(Next::Start(id, started));
        }
        None
    }

    fn limit_reached(&self, reserved: Amounts, now_ms: u64) -> Option<TurnEnd> {
        let (turn, limits) = (self.turn.as_ref()?, self.limits?);
        // A subagent's steps are its own turn's.
        if turn.steps.saturating_add(reserved.steps.min(1)) > limits.steps_max {
            return Some(TurnEnd::StepsExhausted);
        }
        if now_ms.saturating_sub(turn.since_ms) > limits.wall_ms_max {
            return Some(TurnEnd::TimeExhausted);
        }
        (!self.affords(reserved)).then_some(TurnEnd::BudgetExhausted)
    }

    /// Whether as many subagents run as may, or those that run have to give back what is
    /// left of their budgets before there is enough for another one.
    fn subagent_waits(&self, id: Seq, call: &ToolCall, spec: &Spec) -> bool {
        let below = || self.in_flight().into_iter().filter(|id| self.is_subagent(*id)).count();
        self.is_subagent(id)
            && match below() {
                0 => false,
                limits::CHILDREN_AT_ONCE_MAX.. => true,
                _ => is_starved(self, call, spec) || asks_too_much(self, call).is_some(),
            }
    }

    fn refused_budget(&self, id: Seq, call: &ToolCall) -> Option<String> {
        self.is_subagent(id).then(|| asks_too_much(self, call)).flatten()
    }

    /// In call order; shared calls beside each other, an exclusive one alone.
    fn may_run_now(&self, id: Seq, call: &ToolCall) -> bool {
        let shared = |tool: &str| {
            self.tool(tool).is_some_and(|tool| tool.concurrency == Concurrency::Shared)
        };
        let mut earlier = self.effects.calls_before(id);
        earlier.all(|before| shared(&before.tool) && shared(&call.tool))
    }

    fn place(
        &self,
        id: Seq,
        call: &ToolCall,
        session: &SessionId,
    ) -> Result<Option<Place>, String> {
        let Some(name) = self.sandbox_for(call) else { return Ok(None) };
        let ready = self.sandbox(name).ok_or_else(|| name.to_owned())?;
        Ok(Some(Place {
            sandbox: name.to_owned(),
            generation: ready.generation.clone(),
            exec: session.effect(id),
        }))
    }

    /// Lazily: only now that something needs it. Nothing if it is on its way.
    fn provision(&self, sandbox: String) -> Option<Next> {
        let work = Work::Provision { sandbox };
        let on_its_way = self.effects.of_work(&work);
        on_its_way.is_none().then_some(Next::Record(Event::Proposed(work)))
    }

    /// The longest that a model call can get: its input and all of its output.
    pub(crate) fn whole_call_tokens(&self, spec: &Spec) -> u64 {
        self.input_tokens_estimate().saturating_add(spec.model.output_tokens_max)
    }

    /// Nothing is open: ask the model, compact, or end the turn.
    fn converse(&self, spec: &Spec) -> Next {
        if self.queued.is_empty()
            && let Some(Item::Reply(reply)) = self.conversation.last()
        {
            let end = match &reply.stop {
                Stop::End => Some(TurnEnd::Answered),
                Stop::OutputLimit => Some(TurnEnd::OutputLimit),
                Stop::Refused(reason) => Some(TurnEnd::Refused { reason: reason.clone() }),
                Stop::Paused => None,
            };
            if let Some(end) = end {
                return Next::Record(Event::TurnEnded(end));
            }
        }
        let full = spec.model.context_tokens.saturating_mul(limits::COMPACT_AT_PERCENT) / 100;
        let needed = self.context.overflowed
            || self.context.requested
            || self.whole_call_tokens(spec) > spec.model.context_tokens
            || self.input_tokens_estimate() > full;
        let work = if needed && self.context.replies > 0 { Work::Compact } else { Work::AskModel };
        Next::Record(Event::Proposed(work))
    }
}

fn settle(effect: Seq, outcome: Outcome) -> Next {
    let (spent, estimated) = (Amounts::default(), false);
    Next::Record(Event::Settled { effect, outcome, spent, estimated })
}
