//! The events of a session, folded to spans.
//!
//! Owns what is a span: a turn, and within it each model call, tool call, question to a person and
//! sandbox that was made. One is given once it is over. What came of a message is one trace, and
//! what a subagent did hangs below the call that started it.

use outrigger_agent::{
    Answer, DEFAULT_AGENT, Event, Outcome, Place, Product, Record, Reply, Seq, SessionId, Spec,
    ToolCall, ToolOutput, TurnEnd, Usage, Work,
};
use outrigger_policy::Verdict;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::content::{self, Messages};
use crate::span::{ChatResponse, Operation};
use crate::{Span, SpanContext, SpanId, TraceId, attributes, faults};

/// What stands for the name of a tool that there is not.
const UNKNOWN_TOOL: &str = "unknown";

/// The turn that runs.
#[derive(Debug)]
struct OpenTurn {
    begun: Seq,
    begun_ms: u64,
    usage: Usage,
    said: Messages,
    answer: Messages,
}

/// An effect that is not over.
#[derive(Debug)]
struct OpenEffect {
    work: Work,
    proposed_ms: u64,
    asked: Option<(Seq, u64)>,
    started_ms: Option<u64>,
    place: Option<Place>,
    arguments: Option<String>,
}

/// A session, as far as its spans need it.
#[derive(Debug)]
pub struct SessionTrace {
    session: SessionId,
    with_content: bool,
    /// What started it, if it is a subagent.
    above: Option<SpanContext>,
    provider: Arc<str>,
    model: Arc<str>,
    agent: String,
    /// Its tools: a model may call others, by whatever text it likes.
    tools: BTreeSet<String>,
    head: Seq,
    /// Where each turn began.
    turns: Vec<Seq>,
    turn: Option<OpenTurn>,
    /// Whether the last turn stopped before its answer, and can go on.
    resumable: bool,
    effects: BTreeMap<Seq, OpenEffect>,
    /// The last reply, whose calls come: only with content.
    reply: Option<(Seq, Arc<Reply>)>,
}

impl SessionTrace {
    /// A session of which nothing was folded yet. `above`: the span that started it, if it is a
    /// subagent; `with_content`: whether spans have what was said.
    #[must_use]
    pub fn new(session: SessionId, above: Option<SpanContext>, with_content: bool) -> Self {
        Self {
            session,
            with_content,
            above,
            provider: Arc::from(""),
            model: Arc::from(""),
            agent: String::new(),
            tools: BTreeSet::new(),
            head: Seq(0),
            turns: Vec::new(),
            turn: None,
            resumable: false,
            effects: BTreeMap::new(),
            reply: None,
        }
    }

    /// The place of the last event that was folded.
    #[must_use]
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Whether a turn runs: then more of its spans come.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// The span of an effect, also of one that is not over.
    #[must_use]
    pub fn context(&self, effect: Seq) -> SpanContext {
        SpanContext { trace: self.trace(effect), span: SpanId::of_effect(&self.session, effect) }
    }

    /// The trace of an event: that of the turn that it is in.
    fn trace(&self, seq: Seq) -> TraceId {
        let begun = self.turns[..self.turns.partition_point(|begun| *begun <= seq)].last();
        let own = || TraceId::of(&self.session, begun.copied().unwrap_or(seq));
        self.above.map_or_else(own, |above| above.trace)
    }

    /// Takes in the next event; the span that is over with it, if one is.
    pub fn apply(&mut self, record: &Record) -> Option<Span> {
        let Record { seq, at_ms, event } = record;
        self.head = *seq;
        match event {
            Event::Opened(spec) => self.opened(spec),
            Event::Said(message) => {
                self.begin(*seq, *at_ms);
                if let Some(turn) = self.turn.as_mut().filter(|_| self.with_content) {
                    turn.said.said(&message.text);
                }
            }
            Event::Proposed(work) => self.proposed(*seq, *at_ms, work),
            Event::Decided { effect, verdict: Verdict::Ask { .. }, .. } => {
                let open = self.effects.get_mut(effect)?;
                open.asked.get_or_insert((*seq, *at_ms));
            }
            Event::Answered { effect, answer, .. } => {
                return self.answered(*effect, answer, *at_ms);
            }
            Event::Started { effect, place, .. } => {
                let open = self.effects.get_mut(effect)?;
                open.started_ms.get_or_insert(*at_ms);
                open.place.clone_from(place);
            }
            Event::Settled { effect, outcome, spent, .. } => {
                return self.settled(*effect, outcome, spent.money_nanos, *at_ms);
            }
            Event::Resumed { model, .. } => {
                if let Some(model) = model {
                    self.model = Arc::from(model.name.as_str());
                    self.provider = Arc::from(attributes::provider(&model.provider));
                }
                if self.resumable {
                    self.begin(*seq, *at_ms);
                }
            }
            Event::Cancelled { .. } => self.resumable = false,
            Event::TurnEnded(end) => {
                self.resumable = !matches!(end, TurnEnd::Answered | TurnEnd::Cancelled);
                return self.turn_ended(faults::of_turn(end), *at_ms);
            }
            Event::Rewound { .. } => {
                self.effects.clear();
                return self.turn_ended(Some("rewound"), *at_ms);
            }
            Event::Decided { .. }
            | Event::Withheld { .. }
            | Event::SandboxLost { .. }
            | Event::SandboxKept { .. }
            | Event::Interrupted { .. }
            | Event::Shared { .. }
            | Event::CompactionRequested { .. }
            | Event::Forked { .. }
            | Event::Touched(_)
            | Event::Reached(_) => {}
        }
        None
    }

    fn opened(&mut self, spec: &Spec) {
        self.provider = Arc::from(attributes::provider(&spec.model.provider));
        self.model = Arc::from(spec.model.name.as_str());
        self.tools = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        self.agent = spec.role.agent.clone().unwrap_or_else(|| DEFAULT_AGENT.to_owned());
    }

    fn begin(&mut self, seq: Seq, at_ms: u64) {
        if self.turn.is_none() {
            self.turns.push(seq);
            let (usage, said, answer) = <(Usage, Messages, Messages)>::default();
            self.turn = Some(OpenTurn { begun: seq, begun_ms: at_ms, usage, said, answer });
        }
    }

    fn proposed(&mut self, seq: Seq, at_ms: u64, work: &Work) {
        // What was said to a turn that could not go on began another one.
        if *work == Work::AskModel {
            self.begin(seq, at_ms);
        }
        let arguments = match work {
            Work::CallTool(call) => self.arguments(call),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        };
        let (asked, started_ms, place) = (None, None, None);
        let work = work.clone();
        let open = OpenEffect { work, proposed_ms: at_ms, asked, started_ms, place, arguments };
        self.effects.insert(seq, open);
    }

    /// What a call was made with, where that is wanted. What a person made of it stands in an
    /// event of its own, and is not looked for.
    fn arguments(&self, call: &ToolCall) -> Option<String> {
        let (of, reply) = self.reply.as_ref()?;
        let given = reply.calls().nth(usize::try_from(call.index).ok()?)?.given();
        (*of == call.reply && call.amends.is_none()).then(|| content::cut(given).to_owned())
    }

    fn answered(&mut self, effect: Seq, answer: &Answer, at_ms: u64) -> Option<Span> {
        let open = self.effects.get_mut(&effect)?;
        let (seq, asked_ms) = open.asked.take()?;
        let tool = match &open.work {
            Work::CallTool(call) => known(&self.tools, &call.tool),
            Work::Provision { sandbox } => sandbox.clone(),
            Work::AskModel => "model".to_owned(),
            Work::Compact => "compaction".to_owned(),
        };
        let answer = match answer {
            Answer::Approved { .. } => "approved",
            Answer::Amended { .. } => "amended",
            Answer::Denied { .. } => "denied",
        };
        let id = SpanId::of_question(&self.session, seq);
        Some(self.span((seq, id), (asked_ms, at_ms), Operation::Approval { tool, answer }))
    }

    fn settled(
        &mut self,
        effect: Seq,
        outcome: &Outcome,
        money_nanos: u64,
        at_ms: u64,
    ) -> Option<Span> {
        let open = self.effects.remove(&effect)?;
        let begun_ms = open.started_ms.unwrap_or(open.proposed_ms);
        let operation = match open.work {
            Work::AskModel | Work::Compact => {
                let compaction = open.work == Work::Compact;
                let response = reply(outcome).map(|reply| response(reply));
                Operation::Chat { compaction, response, money_nanos }
            }
            Work::Provision { sandbox } => Operation::ProvisionSandbox { sandbox },
            Work::CallTool(call) => Operation::ExecuteTool {
                tool: known(&self.tools, &call.tool),
                call: call.call,
                exec: open.place.as_ref().map(|place| place.exec.clone()),
                sandbox: open.place.map(|place| place.sandbox),
                exit_code: output(outcome).and_then(|output| output.exit_code),
            },
        };
        let id = SpanId::of_effect(&self.session, effect);
        let mut span = self.span((effect, id), (begun_ms, at_ms), operation);
        span.error = faults::of_outcome(outcome);
        if let Some(reply) = reply(outcome) {
            self.took_in(effect, reply, &mut span);
        }
        if self.with_content {
            span.content.extend(open.arguments.map(|text| (content::ARGUMENTS, text)));
            let text = output(outcome).map(|output| content::cut(&output.text).to_owned());
            span.content.extend(text.map(|text| (content::RESULT, text)));
        }
        Some(span)
    }

    /// A model answered.
    fn took_in(&mut self, effect: Seq, reply: &Arc<Reply>, span: &mut Span) {
        if let Some(turn) = &mut self.turn {
            add(&mut turn.usage, &reply.usage);
        }
        if self.with_content {
            let mut answer = Messages::default();
            answer.add(content::answer(reply));
            span.content.push((content::OUTPUT, answer.text()));
            self.reply = Some((effect, Arc::clone(reply)));
            if let Some(turn) = &mut self.turn {
                turn.answer = answer;
            }
        }
    }

    fn turn_ended(&mut self, error: Option<&'static str>, at_ms: u64) -> Option<Span> {
        let OpenTurn { begun, begun_ms, usage, said, answer } = self.turn.take()?;
        let operation = Operation::InvokeAgent { agent: self.agent.clone(), usage };
        let id = SpanId::of_turn(&self.session, begun);
        let mut span = self.span((begun, id), (begun_ms, at_ms), operation);
        span.parent = self.above.map(|above| above.span);
        span.error = error;
        if self.with_content {
            span.content = vec![(content::INPUT, said.text()), (content::OUTPUT, answer.text())];
        }
        Some(span)
    }

    /// A span of the turn that runs.
    fn span(
        &self,
        (seq, id): (Seq, SpanId),
        (begun_ms, ended_ms): (u64, u64),
        operation: Operation,
    ) -> Span {
        let turn = self.turn.as_ref().map(|turn| SpanId::of_turn(&self.session, turn.begun));
        Span {
            session: self.session.clone(),
            seq,
            trace: self.trace(seq),
            id,
            parent: turn.or(self.above.map(|above| above.span)),
            begun_ms,
            // Clocks are set back now and then.
            ended_ms: ended_ms.max(begun_ms),
            provider: Arc::clone(&self.provider),
            model: Arc::clone(&self.model),
            operation,
            error: None,
            content: Vec::new(),
        }
    }
}

/// A tool's name, unless there is no such tool.
fn known(tools: &BTreeSet<String>, name: &str) -> String {
    tools.get(name).cloned().unwrap_or_else(|| UNKNOWN_TOOL.to_owned())
}

fn reply(outcome: &Outcome) -> Option<&Arc<Reply>> {
    match outcome {
        Outcome::Done(Product::Reply(reply)) => Some(reply),
        Outcome::Done(Product::Sandbox(_) | Product::Output(_))
        | Outcome::Failed(_)
        | Outcome::Cancelled
        | Outcome::Unknown { .. } => None,
    }
}

fn output(outcome: &Outcome) -> Option<&ToolOutput> {
    match outcome {
        Outcome::Done(Product::Output(output)) => Some(output),
        Outcome::Done(Product::Sandbox(_) | Product::Reply(_))
        | Outcome::Failed(_)
        | Outcome::Cancelled
        | Outcome::Unknown { .. } => None,
    }
}

fn response(reply: &Reply) -> ChatResponse {
    ChatResponse {
        id: reply.origin.response_id.clone(),
        model: reply.origin.model.clone(),
        stop: reply.stop.clone(),
        usage: Usage { native: None, ..reply.usage.clone() },
    }
}

fn add(sum: &mut Usage, more: &Usage) {
    for (own, more) in [
        (&mut sum.input_tokens, more.input_tokens),
        (&mut sum.output_tokens, more.output_tokens),
        (&mut sum.cache_read_tokens, more.cache_read_tokens),
        (&mut sum.cache_write_tokens, more.cache_write_tokens),
        (&mut sum.reasoning_tokens, more.reasoning_tokens),
    ] {
        *own = own.saturating_add(more);
    }
}
