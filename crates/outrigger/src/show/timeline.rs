//! A session's events as lines for people. Pure: the same for a live session and an old one.

use outrigger_agent::{
    Author, Call, CallFault, Event, Failure, Item, Outcome, Product, Record, Reply, Seq, Status,
    TurnEnd, Work,
};
use std::collections::BTreeMap;

use super::inert;
use crate::limits;

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Detail,
    Step,
    Good,
    Warning,
    Error,
    Added,
    Removed,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

/// Remembers what later events refer to.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    works: BTreeMap<Seq, Work>,
    calls: BTreeMap<(Seq, u32), Call>,
    started_ms: BTreeMap<Seq, u64>,
}

impl Timeline {
    /// The lines of the next event.
    pub(crate) fn lines(&mut self, record: &Record) -> Vec<Line> {
        let line = |tone, text: String| vec![Line::new(tone, text)];
        match &record.event {
            Event::Opened(spec) => {
                let scripted = if spec.model.scripted { ", scripted: no model is asked" } else { "" };
                line(Tone::Strong, format!("● {}{scripted}", inert(&spec.model.name)))
            }
            Event::Said(message) => match &message.author {
                Author::Person(_) => line(Tone::Strong, format!("› {}", first_line(&message.text))),
                Author::Untrusted(name) => {
                    let bytes = message.text.len();
                    line(Tone::Detail, format!("  with {} ({bytes} bytes, as data)", inert(name)))
                }
            },
            Event::Proposed(work) => {
                self.works.insert(record.seq, work.clone());
                Vec::new()
            }
            Event::Decided { .. } => Vec::new(),
            Event::Answered { by, .. } => line(Tone::Detail, format!("  answered by {}", inert(by))),
            Event::Started { effect, attempt, .. } => {
                self.started_ms.insert(*effect, record.at_ms);
                self.started(*effect, *attempt)
            }
            Event::Settled { effect, outcome, .. } => self.settled(record, *effect, outcome),
            Event::SandboxLost { notice, .. } => line(Tone::Warning, format!("! {}", inert(notice))),
            Event::Interrupted { by } => line(Tone::Warning, format!("! interrupted by {}", inert(by))),
            Event::Cancelled { by, .. } => line(Tone::Warning, format!("! cancelled by {}", inert(by))),
            Event::Resumed { by, .. } => line(Tone::Detail, format!("● resumed by {}", inert(by))),
            Event::TurnEnded(end) => vec![ended(end)],
        }
    }

    fn started(&self, effect: Seq, attempt: u32) -> Vec<Line> {
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        match self.works.get(&effect) {
            Some(Work::CallTool(call)) => {
                let arguments = self.calls.get(&(call.reply, call.index));
                let brief = arguments.map_or_else(String::new, brief);
                vec![Line::new(Tone::Step, format!("▸ {}{brief}{again}", inert(&call.tool)))]
            }
            Some(Work::Compact) => vec![Line::new(Tone::Detail, format!("▸ summarising{again}"))],
            Some(Work::AskModel | Work::Provision { .. }) if attempt > 1 => {
                vec![Line::new(Tone::Detail, format!("▸ again after a crash{again}"))]
            }
            Some(Work::AskModel | Work::Provision { .. }) | None => Vec::new(),
        }
    }

    fn settled(&mut self, record: &Record, effect: Seq, outcome: &Outcome) -> Vec<Line> {
        let since = self.started_ms.get(&effect).copied().unwrap_or(record.at_ms);
        let took = super::seconds(record.at_ms.saturating_sub(since));
        match outcome {
            Outcome::Done(Product::Reply(reply)) => {
                let summary = matches!(self.works.get(&effect), Some(Work::Compact));
                self.replied(effect, reply, summary)
            }
            Outcome::Done(Product::Sandbox(ready)) => {
                let text = format!("□ sandbox ready: {}, {} · {took:.2} s", ready.backend, ready.isolation);
                vec![Line::new(Tone::Detail, text)]
            }
            Outcome::Done(Product::Output(output)) => {
                let mut lines = excerpt(&output.text);
                let (tone, mark) = match output.status {
                    Status::Ok => (Tone::Detail, "✓"),
                    Status::Error | Status::Denied | Status::Unknown => (Tone::Warning, "✗"),
                };
                let code = output.exit_code.map_or_else(String::new, |code| format!(" exit {code} ·"));
                lines.push(Line::new(tone, format!("  {mark}{code} {took:.2} s")));
                lines
            }
            Outcome::Failed(failure) => vec![Line::new(Tone::Warning, format!("  ✗ {}", why(failure)))],
            Outcome::Cancelled => vec![Line::new(Tone::Warning, "  ✗ stopped")],
            Outcome::Unknown { evidence } => {
                vec![Line::new(Tone::Warning, format!("  ? {}", inert(evidence)))]
            }
        }
    }

    fn replied(&mut self, effect: Seq, reply: &Reply, summary: bool) -> Vec<Line> {
        for (index, call) in (0..).zip(reply.calls()) {
            self.calls.insert((effect, index), call.clone());
        }
        // The last word of a turn is the answer, which has its own place.
        let last_word = reply.calls().next().is_none();
        if summary || last_word {
            return Vec::new();
        }
        let text = inert(reply.text().trim());
        text.lines().map(|text| Line::new(Tone::Plain, format!("  {text}"))).collect()
    }
}

/// The last thing that the model said.
pub(crate) fn answer(conversation: &[Item]) -> String {
    let reply = conversation.iter().rev().find_map(|item| match item {
        Item::Reply(reply) => Some(reply.text()),
        Item::Message(_) | Item::Result(_) | Item::Summary(_) | Item::Notice(_) => None,
    });
    reply.unwrap_or_default()
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let first: String = inert(lines.next().unwrap_or_default()).chars().take(200).collect();
    let more = if lines.next().is_some() { " …" } else { "" };
    format!("{first}{more}")
}

/// The argument that says most, in a few words.
fn brief(call: &Call) -> String {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let keys = ["command", "file_path", "path", "pattern"];
    let found = keys.into_iter().find_map(|key| arguments.get(key)?.as_str());
    found.map_or_else(String::new, |text| format!("  {}", first_line(text)))
}

fn excerpt(text: &str) -> Vec<Line> {
    let clean = inert(text);
    let lines: Vec<&str> = clean.lines().collect();
    let shown = lines.iter().take(limits::OUTPUT_LINES_MAX);
    let mut shown: Vec<Line> =
        shown.map(|text| Line::new(Tone::Detail, format!("  │ {text}"))).collect();
    if lines.len() > limits::OUTPUT_LINES_MAX {
        let more = lines.len() - limits::OUTPUT_LINES_MAX;
        shown.push(Line::new(Tone::Detail, format!("  │ … {more} more lines")));
    }
    shown
}

fn why(failure: &Failure) -> String {
    match failure {
        Failure::Model { detail, .. } | Failure::Sandbox { detail } => inert(detail),
        Failure::Denied { reason } => inert(reason),
        Failure::Budget => "doing it again does not fit into the budget".to_owned(),
        Failure::Call(fault) => match fault {
            CallFault::Malformed { detail } => format!("malformed arguments: {}", inert(detail)),
            CallFault::Duplicated => "a second call with the same id".to_owned(),
            CallFault::Unknown { .. } => "there is no such tool".to_owned(),
            CallFault::Oversized { bytes } => format!("{bytes} bytes of arguments"),
            CallFault::Cyclic { times } => format!("the same call for the {times}th time"),
            CallFault::TooMany => "too many calls in one reply".to_owned(),
        },
    }
}

/// How a turn ended, as a line.
fn ended(end: &TurnEnd) -> Line {
    match end {
        TurnEnd::Answered => Line::new(Tone::Good, "● done"),
        TurnEnd::Refused { reason } => Line::new(Tone::Error, format!("● refused: {}", inert(reason))),
        TurnEnd::OutputLimit => Line::new(Tone::Warning, "● the answer was cut at the output limit"),
        TurnEnd::StepsExhausted => Line::new(Tone::Warning, "● out of steps"),
        TurnEnd::TimeExhausted => Line::new(Tone::Warning, "● out of time"),
        TurnEnd::BudgetExhausted => Line::new(Tone::Warning, "● out of budget"),
        TurnEnd::ModelFailed { .. } => Line::new(Tone::Error, "● the model could not be asked"),
        TurnEnd::SandboxFailed { .. } => Line::new(Tone::Error, "● no sandbox could be made"),
        TurnEnd::Interrupted => Line::new(Tone::Warning, "● interrupted"),
        TurnEnd::Cancelled => Line::new(Tone::Warning, "● cancelled"),
    }
}
