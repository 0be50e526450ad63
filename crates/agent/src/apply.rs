//! `apply`: what happened becomes state. Total: what can't be is passed over.

use std::sync::Arc;

use crate::round::{Round, explain};
use crate::state::{Context, Effect, Phase, Turn};
use crate::{
    Answer, Event, Failure, Item, ModelFault, Outcome, Product, Record, Reply, Seq, State, Status,
    ToolCall, ToolResult, TurnEnd, Work, compaction,
};
use outrigger_policy::Verdict;

impl State {
    /// Folds one event in.
    #[must_use]
    pub fn apply(mut self, record: &Record) -> Self {
        self.seq = record.seq;
        match &record.event {
            Event::Opened(spec) => {
                self.budget = spec.budget;
                self.limits = Some(spec.turn);
                self.context.bytes += spec.system.len() as u64;
                let tools = spec.tools.iter();
                self.context.bytes += tools
                    .map(|tool| (tool.description.len() + tool.schema.as_str().len()) as u64)
                    .sum::<u64>();
                self.spec = Some(Arc::clone(spec));
            }
            Event::Said(message) => {
                self.enqueue(Item::Message(Arc::clone(message)), message.text.len());
                self.begin_turn(record.at_ms);
            }
            Event::Proposed(work) => self.proposed(record.seq, work),
            Event::Decided { effect, verdict, .. } => self.decided(*effect, verdict),
            Event::Answered { effect, answer, .. } => self.answered(*effect, answer, record.at_ms),
            Event::Started { effect, attempt, reserved, place } => {
                let place = place.clone();
                self.started(
                    *effect,
                    Phase::Started { attempt: *attempt, reserved: *reserved, place },
                );
            }
            Event::Settled { effect, outcome, spent } => {
                if let Some(open) = self.effects.remove(effect) {
                    self.spent = self.spent.plus(*spent);
                    self.settled(*effect, &open.work, outcome);
                }
            }
            Event::SandboxLost { sandbox, notice, .. } => {
                self.sandboxes.remove(sandbox);
                self.enqueue(Item::Notice(notice.as_str().into()), notice.len());
            }
            Event::Interrupted { .. } => {
                if self.turn.is_some() {
                    self.stuck = Some(TurnEnd::Interrupted);
                }
            }
            Event::Cancelled { .. } => self.cancelled = true,
            Event::Resumed { budget, turn, .. } => {
                self.budget = budget.unwrap_or(self.budget);
                self.limits = turn.or(self.limits);
                self.stuck = None;
                self.context.overflowed = false;
                if !matches!(self.ended, None | Some(TurnEnd::Answered)) || self.turn.is_some() {
                    self.turn = None;
                    self.begin_turn(record.at_ms);
                    self.nudge();
                }
            }
            Event::TurnEnded(end) => self.turn_ended(end),
        }
        self
    }

    fn enqueue(&mut self, item: Item, bytes: usize) {
        self.context.bytes += bytes as u64;
        self.queued.push(item);
    }

    fn begin_turn(&mut self, at_ms: u64) {
        if self.turn.is_none() && !self.cancelled {
            self.turn = Some(Turn { since_ms: at_ms, steps: 0 });
            self.ended = None;
            self.repeated = None;
        }
    }

    /// A model that has said its last word needs a reason to go on.
    fn nudge(&mut self) {
        if self.queued.is_empty() && matches!(self.conversation.last(), Some(Item::Reply(_))) {
            let text = "Go on from where you stopped.";
            self.enqueue(Item::Notice(text.into()), text.len());
        }
    }

    fn proposed(&mut self, id: Seq, work: &Work) {
        match work {
            // What was said meanwhile becomes part of the conversation here, so
            // that it never stands between a call and its result.
            Work::AskModel => self.conversation.append(&mut self.queued),
            Work::CallTool(call) => {
                if let Some(round) = &mut self.round {
                    round.propose(call.index, id);
                }
            }
            Work::Compact | Work::Provision { .. } => {}
        }
        let effect = Effect { work: work.clone(), phase: Phase::Proposed, approved: false };
        self.effects.insert(id, effect);
    }

    fn decided(&mut self, id: Seq, verdict: &Verdict) {
        if let Some(effect) = self.effects.get_mut(&id) {
            effect.phase = match verdict {
                Verdict::Permit { .. } => Phase::Permitted,
                Verdict::Ask { .. } => Phase::Asked,
                Verdict::Forbid { rules } => Phase::Refused { reason: forbidden(rules) },
            };
        }
    }

    fn answered(&mut self, id: Seq, answer: &Answer, at_ms: u64) {
        let asked = |effect: &&mut Effect| effect.phase == Phase::Asked;
        if let Some(effect) = self.effects.get_mut(&id).filter(asked) {
            match answer {
                Answer::Approved { .. } => {
                    effect.approved = true;
                    effect.phase = Phase::Permitted;
                }
                Answer::Denied { reason } => {
                    let reason = format!("A person denied it: {reason}");
                    effect.phase = Phase::Refused { reason };
                }
            }
            // Waiting for a person is not the turn's time.
            if let Some(turn) = &mut self.turn {
                turn.since_ms = at_ms;
            }
        }
    }

    fn started(&mut self, id: Seq, phase: Phase) {
        let Some(effect) = self.effects.get_mut(&id) else { return };
        match &effect.phase {
            // The attempt before was lost in a crash; it stays charged as an estimate.
            Phase::Started { reserved, .. } => self.spent = self.spent.plus(*reserved),
            Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. } => {
                if let (Some(turn), false) =
                    (&mut self.turn, matches!(effect.work, Work::Provision { .. }))
                {
                    turn.steps += 1;
                }
            }
        }
        effect.phase = phase;
    }

    fn settled(&mut self, id: Seq, work: &Work, outcome: &Outcome) {
        match (work, outcome) {
            (Work::AskModel, Outcome::Done(Product::Reply(reply))) => self.replied(id, reply),
            (Work::Compact, Outcome::Done(Product::Reply(reply))) => {
                self.conversation = compaction::replace(&self.conversation, &reply.text());
                self.context =
                    Context { bytes: compaction::bytes(&self.conversation), ..Context::default() };
            }
            (Work::Provision { sandbox }, Outcome::Done(Product::Sandbox(ready))) => {
                self.sandboxes.insert(sandbox.clone(), ready.clone());
            }
            (Work::CallTool(call), outcome) => self.called(id, call, outcome),
            (Work::AskModel | Work::Compact | Work::Provision { .. }, Outcome::Failed(failure)) => {
                self.failed(failure);
            }
            (
                Work::AskModel | Work::Compact | Work::Provision { .. },
                Outcome::Cancelled | Outcome::Unknown { .. } | Outcome::Done(_),
            ) => {}
        }
    }

    fn replied(&mut self, id: Seq, reply: &Arc<Reply>) {
        let mut reply = Arc::clone(reply);
        if !reply.native_is_current() {
            Arc::make_mut(&mut reply).native.clear();
        }
        self.context.tokens = reply.usage.input_tokens + reply.usage.output_tokens;
        self.context.bytes = 0;
        self.context.replies += 1;
        self.context.overflowed = false;
        if let (Some(spec), Some(_)) = (&self.spec, reply.calls().next()) {
            self.round = Some(Round::new(id, Arc::clone(&reply), spec, &mut self.repeated));
        }
        self.conversation.push(Item::Reply(reply));
    }

    fn failed(&mut self, failure: &Failure) {
        self.stuck = Some(match failure {
            // Once: compact and ask again. A second time there is nothing left to compact.
            Failure::Model { fault: ModelFault::ContextTooLong, .. }
                if self.context.replies > 0 && !self.context.overflowed =>
            {
                self.context.overflowed = true;
                return;
            }
            Failure::Model { fault, detail } => {
                TurnEnd::ModelFailed { fault: *fault, detail: detail.clone() }
            }
            Failure::Sandbox { detail } => TurnEnd::SandboxFailed { detail: detail.clone() },
            Failure::Denied { reason } => TurnEnd::Refused { reason: reason.clone() },
            Failure::Budget => TurnEnd::BudgetExhausted,
            Failure::Call(fault) => TurnEnd::Refused { reason: explain(fault) },
        });
    }

    fn called(&mut self, id: Seq, call: &ToolCall, outcome: &Outcome) {
        let (status, text) = match outcome {
            Outcome::Done(Product::Output(output)) => (output.status, output.text.clone()),
            Outcome::Done(Product::Reply(_) | Product::Sandbox(_)) => return,
            Outcome::Failed(Failure::Call(fault)) => (Status::Error, explain(fault)),
            Outcome::Failed(Failure::Denied { reason }) => {
                (Status::Denied, format!("Not performed. {reason}"))
            }
            Outcome::Failed(Failure::Sandbox { detail } | Failure::Model { detail, .. }) => {
                (Status::Error, detail.clone())
            }
            Outcome::Failed(Failure::Budget) => (
                Status::Unknown,
                "Lost in a crash, and doing it again does not fit into the budget.".to_owned(),
            ),
            Outcome::Cancelled => (Status::Denied, "Stopped by a person.".to_owned()),
            Outcome::Unknown { evidence } => (Status::Unknown, evidence.clone()),
        };
        self.context.bytes += text.len() as u64;
        let Some(round) = self.round.as_mut().filter(|round| round.reply == call.reply) else {
            return;
        };
        let (id_of_call, tool) = (call.call.clone(), call.tool.clone());
        round.settle(call.index, ToolResult { effect: id, call: id_of_call, tool, status, text });
        self.close_round();
    }

    fn close_round(&mut self) {
        if let Some(mut results) = self.round.as_ref().and_then(Round::complete) {
            self.conversation.append(&mut results);
            self.round = None;
        }
    }

    fn turn_ended(&mut self, end: &TurnEnd) {
        self.turn = None;
        self.stuck = None;
        self.ended = Some(end.clone());
        if matches!(end, TurnEnd::Interrupted | TurnEnd::Cancelled) {
            if let Some(round) = &mut self.round {
                round.abandon(Status::Denied, "Not performed: a person stopped the turn.");
            }
            self.close_round();
        }
    }
}

fn forbidden(rules: &[String]) -> String {
    if rules.is_empty() {
        return "No rule permits it.".to_owned();
    }
    format!("It is forbidden by: {}.", rules.join(", "))
}
