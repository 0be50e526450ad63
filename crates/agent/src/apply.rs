//! `apply`: what happened becomes state. Total: what can't be is passed over.

use std::sync::Arc;

use crate::labels::labels_of_item;
use crate::round::{Round, STOPPED, amended, status_and_text, turn_end};
use crate::spec::fixed_bytes;
use crate::{
    Answer, Cause, Digest, Effect, Event, Failure, Item, Limit, ModelFault, Outcome, Phase, Place,
    Product, Raw, Record, Reply, SandboxReady, Seq, Shortfall, Spec, State, Status, Stop, ToolCall,
    ToolKind, ToolResult, Touched, Turn, TurnEnd, TurnLimits, Work, compaction, json, limits,
};

/// What the model is told that said nothing and called no tool.
const SAID_NOTHING: &str = "Your last reply was empty. Say what you found or did, or call a tool.";
/// What the model is told of calls in a reply that was refused.
const REFUSED: &str = "Not performed: the reply that asked for it was refused.";

impl State {
    /// Folds one event in.
    #[must_use]
    pub fn apply(mut self, record: &Record) -> Self {
        self.seq = record.seq;
        match &record.event {
            Event::Opened(spec) => self.opened(spec),
            Event::Said(message)
                if message.after_turn && self.turn.is_some() && self.stuck.is_none() =>
            {
                self.heard.note(message.request.as_ref(), record.at_ms);
                self.after_turn.push(Item::Message(Arc::clone(message)));
            }
            Event::Said(message) => {
                self.heard.note(message.request.as_ref(), record.at_ms);
                self.enqueue(Item::Message(Arc::clone(message)));
                if let Some(turn) = &mut self.turn {
                    // What can't go on can't be steered: this begins the next turn.
                    turn.followed |= self.stuck.is_some();
                }
                self.begin_turn(record.at_ms);
            }
            Event::Proposed(work) => self.proposed(record.seq, work),
            Event::Decided { effect, verdict, rule_set } => {
                self.effects.judge(*effect, verdict, *rule_set, record.at_ms);
            }
            Event::Answered { effect, by, arguments, answer } => {
                self.answered(*effect, by, arguments.as_ref(), answer, record.at_ms);
            }
            Event::Started { effect, attempt, reserved, place } => {
                self.note_change(*effect, place.as_ref(), record.seq);
                let (place, since_ms) = (place.clone(), record.at_ms);
                let (attempt, reserved) = (*attempt, *reserved);
                let phase = Phase::Started { attempt, reserved, place, since_ms };
                self.started(*effect, phase, record.at_ms);
            }
            Event::Withheld { effect, shortfall } => {
                self.withheld(*effect, shortfall, record.at_ms);
            }
            Event::Settled { effect, outcome, spent, estimated: _ } => {
                if let Some(open) = self.effects.settle(*effect) {
                    self.spent = self.spent.plus(*spent);
                    self.awaited(&open, spent.wall_ms, record.at_ms);
                    self.settled(*effect, &open, outcome, record);
                }
            }
            Event::SandboxLost { sandbox, generation, loss } => {
                self.sandboxes.lose(sandbox, generation, loss);
            }
            Event::SandboxKept { sandbox, kept, dropped } => {
                self.sandboxes.keep(sandbox, kept, dropped);
            }
            Event::Interrupted { .. } if self.turn.is_none() => {}
            Event::Interrupted { .. } => self.stuck = Some(TurnEnd::Interrupted),
            Event::Shared { with, access, .. } => self.sharing.share(with, *access),
            Event::CompactionRequested { .. } => self.context.requested = true,
            Event::Cancelled { .. } => self.cancelled = true,
            Event::Resumed { budget, turn, model, network, .. } => {
                self.change_model(model.as_deref());
                self.change_network(network.as_deref());
                self.resumed(*budget, *turn, record.at_ms);
            }
            Event::TurnEnded(end) => self.turn_ended(end, record.at_ms),
            Event::Forked { cut, .. } => self.forked(cut, record.seq, record.at_ms),
            Event::Rewound { cut, .. } => self.rewound(cut, record.seq, record.at_ms),
            Event::Touched(touched) => self.note(touched),
            Event::Reached(report) => self.labels.extend(report.labels()),
        }
        let waits = self.effects.all_asked();
        if let Some(turn) = &mut self.turn {
            turn.note_waiting(waits, record.at_ms);
        }
        self
    }

    fn opened(&mut self, spec: &Arc<Spec>) {
        // Always the first event: a later one is passed over, or it would raise the budget.
        if self.spec.is_none() {
            (self.budget, self.limits) = (spec.budget, Some(spec.turn));
            self.spec = Some(Arc::clone(spec));
            self.trigger = spec.role.trigger;
            self.sharing.end_turn(Some(spec), &[]);
            self.context.add(self.fixed_bytes());
        }
    }

    fn fixed_bytes(&self) -> u64 {
        self.spec.as_deref().map_or(0, |spec| fixed_bytes(&spec.system, spec.tools.iter()))
    }

    /// What a call that is started may change.
    fn note_change(&mut self, id: Seq, place: Option<&Place>, seq: Seq) {
        let Some(Work::CallTool(call)) = self.effect(id).map(|effect| &effect.work) else { return };
        let reads = self.tool(&call.tool).is_some_and(|tool| tool.kind == ToolKind::ReadFiles);
        if let (false, Some(place)) = (reads, place) {
            self.sandboxes.change(&place.sandbox, seq);
        }
    }

    /// The model is told of a loss here, once, with what took its place.
    fn provisioned(&mut self, sandbox: &str, ready: &SandboxReady, record: &Record) {
        if let Some(text) = self.sandboxes.ready(sandbox, ready, record.seq, record.at_ms) {
            self.enqueue(Item::Notice(text.as_str().into()));
        }
    }

    fn resumed(&mut self, budget: Option<Limit>, limits: Option<TurnLimits>, at_ms: u64) {
        if self.cancelled {
            return;
        }
        if let Some(budget) = budget {
            if budget.raises(self.budget) {
                // Who raises it need not be asked below it.
                self.soft_lifted.insert("session".to_owned(), at_ms);
            }
            self.budget = budget;
        }
        self.limits = limits.or(self.limits);
        self.stuck = None;
        self.context.overflowed = false;
        if !matches!(self.ended, None | Some(TurnEnd::Answered)) || self.turn.is_some() {
            self.turn = None;
            self.begin_turn(at_ms);
            self.nudge();
        }
    }

    pub(crate) fn enqueue(&mut self, item: Item) {
        self.context.add(compaction::bytes_of(&item));
        self.sharing.note_authors(self.spec.as_deref(), std::slice::from_ref(&item));
        self.queued.push(item);
    }

    pub(crate) fn begin_turn(&mut self, at_ms: u64) {
        if self.turn.is_none() && !self.cancelled {
            self.turn = Some(Turn::begin(at_ms));
            self.ended = None;
            self.repeated = None;
            if self.context.attempts > limits::COMPACT_ATTEMPTS_MAX {
                self.leave_out(self.room() >> self.context.attempts.min(usize::BITS - 1));
            }
        }
    }

    /// A model that has said its last word needs a reason to go on.
    fn nudge(&mut self) {
        let spoke = matches!(self.conversation.last(), Some(Item::Reply(last)) if last.stop != Stop::Paused);
        if self.queued.is_empty() && self.round.is_none() && spoke {
            let text = "Go on from where you stopped.";
            self.enqueue(Item::Notice(text.into()));
        }
    }

    fn proposed(&mut self, id: Seq, work: &Work) {
        if let Work::CallTool(call) = work {
            // Nothing but the last reply can propose a call, and each only once.
            let proposed = self.round.as_mut().is_some_and(|round| round.propose(call, id));
            if !proposed {
                return;
            }
        }
        self.effects.propose(id, work);
    }

    fn started(&mut self, id: Seq, phase: Phase, at_ms: u64) {
        let again = self.lose(id, at_ms);
        let Some(effect) = self.effects.get_mut(id) else { return };
        let is_step = !again && !matches!(effect.work, Work::Provision { .. });
        if let (Some(turn), true) = (&mut self.turn, is_step) {
            turn.steps = turn.steps.saturating_add(1);
        }
        effect.phase = phase;
        if effect.work == Work::AskModel {
            // What was said meanwhile becomes part of the conversation here: no round
            // is open, so that it never stands between a call and its result, and
            // whatever was said before the model is really asked is heard.
            let queued = std::mem::take(&mut self.queued);
            self.join(queued);
        }
    }

    /// Waiting for a subagent is not the turn's time as far as that one waited too.
    fn awaited(&mut self, open: &Effect, used_ms: u64, now_ms: u64) {
        let below = self.starts_subagent(&open.work);
        if let (Phase::Started { since_ms, .. }, true, Some(turn)) =
            (&open.phase, below, &mut self.turn)
        {
            turn.note_awaited(*since_ms, used_ms, now_ms);
        }
    }

    /// Takes an answer in. One that changes nothing is passed over.
    fn answered(
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
        let Some(effect) = self.effects.get_mut(id) else { return };
        match (answer, effect.soft_limit().cloned()) {
            // To the hard one.
            (Answer::Approved { .. }, Some(shortfall)) => {
                self.soft_lifted.insert(shortfall.level().to_owned(), at_ms);
                self.effects.lift_soft(shortfall.level());
            }
            // The turn ends, and asks again when it is resumed.
            (Answer::Denied { .. }, Some(shortfall)) => {
                effect.withdraw_question();
                self.stick(TurnEnd::OutOfBudget(shortfall));
            }
            (Answer::Approved { .. } | Answer::Denied { .. }, None) => {
                effect.answer(by, approvals, answer, at_ms);
            }
            (Answer::Amended { arguments, .. }, _) => {
                effect.answer(by, approvals, answer, at_ms);
                if let (Work::CallTool(call), Some(round)) = (&effect.work, &mut self.round) {
                    round.amend(call, id, arguments);
                }
                // What is done now is in their words.
                self.sharing.note(self.spec.as_deref(), by);
            }
        }
    }

    /// Takes in that an effect was not started. If nobody can be asked for more, the turn
    /// ends when what runs has come to its end.
    fn withheld(&mut self, id: Seq, shortfall: &Shortfall, at_ms: u64) {
        let below = self.is_subagent(id);
        self.lose(id, at_ms);
        let effect = self.effects.get_mut(id).filter(|effect| effect.phase == Phase::Permitted);
        let Some(effect) = effect else { return };
        match (&shortfall.cause, effect.judged) {
            (Cause::Soft(_), Some(rules)) => effect.ask_about_budget(shortfall, rules, at_ms),
            // The model chose how much, and can ask for less.
            (Cause::Limit(_), _) if below => {
                let hint = "Ask for less, with `max_tokens` or `max_dollars`.";
                effect.phase = Phase::Refused { reason: format!("{shortfall}. {hint}") };
            }
            _ => self.stick(TurnEnd::OutOfBudget(shortfall.clone())),
        }
    }

    /// Takes in that an attempt was lost in a crash, if one was under way: it stays charged
    /// as an estimate, and the effect may be begun again.
    pub(crate) fn lose(&mut self, id: Seq, at_ms: u64) -> bool {
        let lost = self.effects.lose(id, at_ms);
        self.spent = self.spent.plus(lost.unwrap_or_default());
        lost.is_some()
    }

    /// Takes in what files of memory and of skills brought along.
    fn note(&mut self, touched: &Touched) {
        let last = touched.changes.iter().map(|change| change.number).max();
        self.noted = self.noted.max(last.unwrap_or_default());
        self.labels.extend(touched.labels.iter().cloned());
    }

    /// Makes items part of the conversation: from now on the model may act on them.
    fn join(&mut self, items: Vec<Item>) {
        let principal = self.spec.as_ref().map(|spec| spec.principal.as_str());
        let labels = items.iter().flat_map(|item| labels_of_item(item, principal));
        self.labels.extend(labels);
        self.conversation.extend(items);
    }

    fn settled(&mut self, id: Seq, open: &Effect, outcome: &Outcome, record: &Record) {
        if let (Outcome::Done(Product::Reply(_)), Some(turn)) = (outcome, &mut self.turn) {
            turn.unthrottle();
        }
        match (&open.work, outcome) {
            (Work::AskModel, Outcome::Done(Product::Reply(reply))) => self.replied(id, reply),
            (Work::Compact, Outcome::Done(Product::Reply(reply))) => self.compacted(reply),
            (Work::Provision { sandbox }, Outcome::Done(Product::Sandbox(ready))) => {
                self.provisioned(sandbox, ready, record);
            }
            (Work::CallTool(call), outcome) => self.called(id, call, &open.phase, outcome),
            (Work::Provision { sandbox }, Outcome::Failed(Failure::Denied { reason })) => {
                self.unhoused(sandbox, reason);
            }
            (Work::AskModel | Work::Compact | Work::Provision { .. }, Outcome::Failed(failure)) => {
                self.failed(failure);
            }
            (Work::AskModel | Work::Compact | Work::Provision { .. }, Outcome::Cancelled) => {}
            // Not repeated behind a person's back.
            (Work::AskModel | Work::Compact, Outcome::Unknown { .. } | Outcome::Done(_)) => {
                self.garbled("What became of the last model call is not known.");
            }
            (Work::Provision { .. }, Outcome::Unknown { evidence }) => {
                self.stick(TurnEnd::SandboxFailed { detail: evidence.clone() });
            }
            (Work::Provision { .. }, Outcome::Done(_)) => {
                let detail = "No sandbox came of making one.".to_owned();
                self.stick(TurnEnd::SandboxFailed { detail });
            }
        }
    }

    /// A sandbox may not be made: nor may what needs it be done, and the model can do
    /// something else.
    fn unhoused(&mut self, sandbox: &str, reason: &str) {
        let needs = |work: &Work| match work {
            Work::CallTool(call) => self.sandbox_for(call) == Some(sandbox),
            Work::AskModel | Work::Compact | Work::Provision { .. } => false,
        };
        let mut waiting = self.effects.in_phase(|phase| *phase == Phase::Permitted);
        waiting.retain(|id| self.effect(*id).is_some_and(|effect| needs(&effect.work)));
        for id in waiting {
            if let Some(effect) = self.effects.get_mut(id) {
                let reason = format!("Its sandbox `{sandbox}` may not be made. {reason}");
                effect.phase = Phase::Refused { reason };
            }
        }
    }

    fn garbled(&mut self, detail: &str) {
        let (fault, detail) = (ModelFault::Garbled, detail.to_owned());
        self.stick(TurnEnd::ModelFailed { fault, detail });
    }

    fn compacted(&mut self, summary: &Reply) {
        let Some(spec) = self.spec.clone() else { return };
        let (text, room) = (summary.text(), compaction::room(&spec, self.fixed_bytes()));
        // The last time half of it is better than nothing.
        let last = self.context.attempts >= limits::COMPACT_ATTEMPTS_MAX;
        let whole = summary.stop == Stop::End || last && summary.stop == Stop::OutputLimit;
        if text.trim().is_empty() || !whole || !compaction::is_short(&text, room) {
            let detail = "The conversation is too long for the model's context, and no summary of it came to its end.";
            return self.does_not_fit(ModelFault::Garbled, detail);
        }
        let (said, labels) = (&self.conversation, &self.labels);
        self.conversation = compaction::replace(said, &text, labels, &spec, room);
        self.shortened();
    }

    /// The conversation was replaced by a shorter one, of which nothing was counted.
    fn shortened(&mut self) {
        let said = compaction::bytes(&self.conversation) + compaction::bytes(&self.queued);
        self.context.shorten(self.fixed_bytes() + said);
    }

    /// The conversation is too long, or no summary of it came to its end. It is made shorter,
    /// and then shorter again; when that is of no use the turn ends, and the next one begins
    /// with what is left of it: nobody pays for the same request again.
    fn does_not_fit(&mut self, fault: ModelFault, detail: &str) {
        let attempts = self.context.attempts.saturating_add(1);
        let room = self.room() >> attempts.min(usize::BITS - 1);
        self.context.attempts = attempts;
        let is_summary = |item: &Item| matches!(item, Item::Summary(_));
        if attempts <= limits::COMPACT_ATTEMPTS_MAX && self.context.replies > 0 {
            self.context.overflowed = true;
        } else if attempts <= limits::COMPACT_ATTEMPTS_MAX
            && self.conversation.iter().any(is_summary)
        {
            self.leave_out(room);
        } else {
            self.context.attempts = attempts.max(limits::COMPACT_ATTEMPTS_MAX + 1);
            let goes_on = "The next message goes on with the newest task and the last that was said and done.";
            let detail = format!("{}. {goes_on}", detail.trim_end_matches('.'));
            self.stick(TurnEnd::ModelFailed { fault, detail });
        }
    }

    fn leave_out(&mut self, room: usize) {
        let Some(spec) = self.spec.clone() else { return };
        self.conversation = compaction::leave_out(&self.conversation, &self.labels, &spec, room);
        self.shortened();
    }

    /// Bytes that the conversation may have in the model's context.
    pub(crate) fn room(&self) -> usize {
        self.spec.as_deref().map_or(0, |spec| compaction::room(spec, self.fixed_bytes()))
    }

    fn replied(&mut self, id: Seq, reply: &Arc<Reply>) {
        let mut reply = Arc::clone(reply);
        // What its provider, or who reads the journal, may fail on is not handed on.
        let sound = |raw: &Raw| json::is_sound(raw.as_str());
        if !reply.native_is_current() || !reply.native.iter().all(sound) {
            Arc::make_mut(&mut reply).native.clear();
        }
        self.context.count_reply(&reply, compaction::bytes(&self.queued));
        if let (Some(spec), Some(_)) = (&self.spec, reply.calls().next()) {
            self.round = Some(Round::new(id, Arc::clone(&reply), spec, &mut self.repeated));
        }
        if reply.is_empty() {
            self.said_nothing();
        }
        self.conversation.push(Item::Reply(Arc::clone(&reply)));
        if let (Stop::Refused(reason), Some(round)) = (&reply.stop, &mut self.round) {
            // What a refused reply had asked for before it was refused is not done.
            self.context.add(round.abandon(Status::Denied, REFUSED));
            self.close_round();
            self.stick(TurnEnd::Refused { reason: reason.clone() });
        }
    }

    /// Nothing is no answer. The model is asked once more, and then the turn ends.
    fn said_nothing(&mut self) {
        let asked = |item: &Item| matches!(item, Item::Notice(text) if **text == *SAID_NOTHING);
        if !self.conversation.last().is_some_and(asked) {
            self.enqueue(Item::Notice(SAID_NOTHING.into()));
        } else if self.queued.is_empty() {
            self.stick(TurnEnd::Empty);
        }
    }

    fn failed(&mut self, failure: &Failure) {
        if let Failure::Model { fault: fault @ ModelFault::ContextTooLong, detail, .. } = failure {
            return self.does_not_fit(*fault, detail);
        }
        if let Failure::Model { retry_at_ms: Some(at_ms), .. } = failure {
            return self.turn.iter_mut().for_each(|turn| turn.throttle(*at_ms));
        }
        self.stick(turn_end(failure));
    }

    fn called(&mut self, id: Seq, call: &ToolCall, phase: &Phase, outcome: &Outcome) {
        let (status, text) = status_and_text(outcome, phase);
        let text = match self.call(call).filter(|_| call.amends.is_some()) {
            Some(call) => amended(&call.arguments) + &text,
            None => text,
        };
        let Some(round) = self.round.as_mut().filter(|round| round.reply == call.reply) else {
            return;
        };
        if round.is_amended(call, id) {
            return;
        }
        self.context.add(text.len() as u64);
        let (id_of_call, tool) = (call.call.clone(), call.tool.clone());
        let labels = outcome.labels();
        let (effect, call_id) = (id, id_of_call);
        let result = ToolResult { effect, call: call_id, tool, status, text, labels };
        round.settle(call.index, result);
        self.close_round();
    }

    pub(crate) fn close_round(&mut self) {
        if let Some(results) = self.round.as_ref().and_then(Round::complete) {
            self.join(results);
            self.round = None;
        }
    }

    /// The turn can't go on. A person's wish to stop it is not forgotten over that.
    fn stick(&mut self, end: TurnEnd) {
        if self.stuck != Some(TurnEnd::Interrupted) {
            self.stuck = Some(end);
        }
    }

    fn turn_ended(&mut self, end: &TurnEnd, at_ms: u64) {
        let waiting = std::mem::take(&mut self.after_turn);
        let followed = self.turn.take().is_some_and(|turn| turn.followed) || !waiting.is_empty();
        waiting.into_iter().for_each(|item| self.enqueue(item));
        (self.stuck, self.trigger) = (None, None);
        self.ended = Some(end.clone());
        if *end == TurnEnd::Answered {
            // In older journals nothing was an answer.
            let asks = |item: &Item| matches!(item, Item::Notice(text) if **text == *SAID_NOTHING);
            self.queued.retain(|item| !asks(item));
        }
        if matches!(end, TurnEnd::Interrupted | TurnEnd::Cancelled) {
            if let Some(round) = &mut self.round {
                self.context.add(round.abandon(Status::Denied, STOPPED));
            }
            self.close_round();
        }
        self.sharing.end_turn(self.spec.as_deref(), &self.queued);
        if followed {
            self.begin_turn(at_ms);
        }
    }
}
