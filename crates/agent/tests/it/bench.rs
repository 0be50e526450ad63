//! A session that a test plays by hand: the test says what the world gives, the
//! bench does what the engine would, and writes down what happened in short lines.

use outrigger_agent::{
    Event, Item, Next, Outcome, Park, Record, Recover, Reply, Seq, Spec, State, Work,
};
use outrigger_policy::Verdict;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::build::{self, rule_set, session, settled};

/// A session played by hand.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) state: State,
    pub(crate) now_ms: u64,
    /// What the rules say; permit where it says nothing.
    pub(crate) verdict: fn(&Work) -> Option<Verdict>,
    pub(crate) journal: Vec<Record>,
    log: String,
}

impl Bench {
    pub(crate) fn new(spec: Spec) -> Self {
        let mut bench = Self {
            state: State::default(),
            now_ms: 1_000,
            verdict: |_| None,
            journal: Vec::new(),
            log: String::new(),
        };
        bench.append(Event::Opened(Arc::new(spec)));
        bench
    }

    /// A session in which a task was said and nothing was started yet.
    pub(crate) fn with_task(spec: Spec) -> Self {
        let mut bench = Self::new(spec);
        bench.append(build::said("Do it."));
        bench
    }

    pub(crate) fn append(&mut self, event: Event) {
        let seq = self.state.seq().next();
        if let Some(line) = line(&self.state, &event) {
            writeln!(self.log, "{line}").unwrap();
        }
        let record = Record { seq, at_ms: self.now_ms, event };
        self.state = std::mem::take(&mut self.state).apply(&record);
        self.journal.push(record);
    }

    /// Goes on until something has to be waited for.
    pub(crate) fn run(&mut self) -> Next {
        for _ in 0..1_000 {
            match self.state.decide(&session(), self.now_ms) {
                Next::Record(event) | Next::Start(_, event) => self.append(event),
                Next::Judge(effect) => {
                    let work = &self.state.effect(effect).unwrap().work;
                    let permit = || Verdict::Permit { rules: vec!["all".to_owned()] };
                    let verdict = (self.verdict)(work).unwrap_or_else(permit);
                    self.append(Event::Decided { effect, verdict, rule_set: rule_set() });
                }
                wait @ (Next::Perform(_) | Next::Stop(_) | Next::Wait(_) | Next::Park(_)) => {
                    return wait;
                }
            }
        }
        panic!("does not come to rest:\n{}", self.log);
    }

    /// What has to be waited for: effects in flight, in order.
    pub(crate) fn flying(&mut self) -> Vec<Seq> {
        match self.run() {
            Next::Perform(ids) | Next::Stop(ids) => ids,
            other => panic!("nothing is in flight: {other:?}\n{}", self.log),
        }
    }

    /// Settles the first effect in flight and goes on.
    pub(crate) fn settle(&mut self, outcome: Outcome) -> &mut Self {
        let id = self.flying()[0];
        self.settle_this(id, outcome)
    }

    pub(crate) fn settle_this(&mut self, id: Seq, outcome: Outcome) -> &mut Self {
        self.append(settled(id, outcome, 100));
        self.run();
        self
    }

    /// The model, whose turn it is, replies.
    pub(crate) fn reply(&mut self, reply: Reply) -> &mut Self {
        let id = self.flying()[0];
        let work = &self.state.effect(id).unwrap().work;
        assert!(matches!(work, Work::AskModel | Work::Compact), "{work:?} is in flight");
        self.settle(build::done(reply))
    }

    pub(crate) fn park(&mut self) -> Park {
        match self.run() {
            Next::Park(park) => park,
            other => panic!("not parked: {other:?}\n{}", self.log),
        }
    }

    /// Where it came to rest, unless something is in flight.
    pub(crate) fn park_or_fly(&mut self) -> Option<Park> {
        match self.run() {
            Next::Park(park) => Some(park),
            _ => None,
        }
    }

    /// The harness died here: the journal is folded anew. Says how each started
    /// effect goes on.
    pub(crate) fn crash(&mut self) -> Vec<Recover> {
        let fold = |state: State, record: &Record| state.apply(record);
        self.state = self.journal.iter().fold(State::default(), fold);
        let (Next::Perform(ids) | Next::Stop(ids)) = self.state.decide(&session(), self.now_ms)
        else {
            return Vec::new();
        };
        ids.into_iter().map(|id| Recover::of(&self.state, id, self.now_ms).unwrap()).collect()
    }

    /// The short lines since the last look.
    pub(crate) fn log(&mut self) -> String {
        if let Next::Park(park) = self.run() {
            writeln!(self.log, "park {park:?}").unwrap();
        }
        std::mem::take(&mut self.log)
    }

    /// The conversation, an entry a line.
    pub(crate) fn conversation(&self) -> String {
        self.state.conversation().iter().map(|item| entry(item) + "\n").collect()
    }

    /// What the model sees of its calls.
    pub(crate) fn results(&self) -> String {
        let results =
            self.state.conversation().iter().filter(|item| matches!(item, Item::Result(_)));
        results.map(|item| entry(item) + "\n").collect()
    }
}

pub(crate) fn entry(item: &Item) -> String {
    match item {
        Item::Message(message) => format!("message {:?}", short(&message.text)),
        Item::Reply(reply) => {
            let calls: Vec<String> =
                reply.calls().map(|call| format!("{}={}", call.id, call.name)).collect();
            format!("reply {:?} [{}]", short(&reply.text()), calls.join(" "))
        }
        Item::Result(result) => {
            format!("result {} {:?} {:?}", result.call, result.status, short(&result.text))
        }
        Item::Summary(summary) => format!("summary {:?}", short(&summary.text)),
        Item::Notice(text) => format!("notice {:?}", short(text)),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}... ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

fn work(work: &Work) -> String {
    match work {
        Work::AskModel => "ask_model".to_owned(),
        Work::Compact => "compact".to_owned(),
        Work::Provision { sandbox } => format!("provision {sandbox}"),
        Work::CallTool(call) => format!("call {} {}", call.call, call.tool),
    }
}

/// Events that say nothing new for a reader give no line.
fn line(before: &State, event: &Event) -> Option<String> {
    let named = |id: Seq| before.effect(id).map_or_else(String::new, |effect| work(&effect.work));
    Some(match event {
        Event::Opened(_) | Event::Proposed(_) => return None,
        Event::Decided { verdict: Verdict::Permit { .. }, .. } => return None,
        Event::Decided { effect, verdict, .. } => {
            format!("decided {}: {verdict:?}", named(*effect))
        }
        Event::Said(message) => format!("said {:?}", short(&message.text)),
        Event::Answered { effect, answer, .. } => {
            format!("answered {}: {answer:?}", named(*effect))
        }
        Event::Started { effect, attempt, reserved, .. } => format!(
            "started {} (attempt {attempt}, {} steps, {} tokens)",
            named(*effect),
            reserved.steps,
            reserved.tokens
        ),
        Event::Withheld { shortfall, .. } => format!("withheld: {shortfall}"),
        Event::Settled { effect, outcome, .. } => {
            let outcome = match outcome {
                Outcome::Done(_) => "done".to_owned(),
                Outcome::Failed(failure) => format!("{failure:?}"),
                Outcome::Cancelled => "cancelled".to_owned(),
                Outcome::Unknown { evidence } => format!("unknown: {evidence}"),
            };
            format!("settled {}: {outcome}", named(*effect))
        }
        Event::SandboxLost { generation, .. } => format!("lost {generation}"),
        Event::SandboxKept { kept, .. } => format!("kept {}", kept.snapshot),
        Event::Interrupted { .. } => "interrupted".to_owned(),
        Event::Shared { with, access, .. } => format!("shared with {with}: {}", access.as_str()),
        Event::CompactionRequested { .. } => "compaction requested".to_owned(),
        Event::Cancelled { .. } => "cancelled".to_owned(),
        Event::Resumed { .. } => "resumed".to_owned(),
        Event::TurnEnded(end) => format!("ended {end:?}"),
        Event::Forked { cut, .. } => format!("forked at {}", cut.at),
        Event::Rewound { cut, .. } => format!("rewound to {}", cut.at),
        Event::Touched(touched) => format!("touched {}", touched.changes.len()),
        Event::Reached(report) => format!("reached {}", report.flows.len()),
    })
}
