//! A session's events as lines for people. Pure: the same for a live session and an old one.

use outrigger_agent::{
    Answer, Author, Call, CallFault, Cause, EgressReport, Event, Failure, Message, ModelSpec,
    Outcome, Product, Record, Replacement, Reply, Seq, SharedAccess, Spec, Status, Touched,
    TrustedFile, TurnEnd, Work,
};
use outrigger_policy::Verdict;
use std::collections::BTreeMap;

use super::amounts::{count, seconds, size, when};
use super::{inert, picture};
use crate::session::WHO;
use crate::{limits, network};

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
    /// The calls of each reply, with the arguments that a person put in the place of the model's.
    calls: BTreeMap<(Seq, u32), Call>,
    /// The call of each effect, as it was when that was proposed.
    given: BTreeMap<Seq, Call>,
    /// When each effect that is under way was begun.
    started_ms: BTreeMap<Seq, u64>,
    /// The call that was shown last, so that results of others name theirs in full.
    shown: Option<Seq>,
    /// Whether all of what tools put out is shown.
    is_full: bool,
    /// Whether it is a subagent's: that is ended for good when its answer was taken.
    is_below: bool,
    /// Whether the last turn came to its answer.
    is_answered: bool,
}

impl Timeline {
    /// One that shows all of what tools put out.
    pub(crate) fn in_full() -> Self {
        Self { is_full: true, ..Self::default() }
    }

    /// A session begins.
    fn opened(&mut self, spec: &Spec) -> Vec<Line> {
        self.is_below = spec.parent().is_some();
        let scripted = if spec.model.scripted { ", scripted: no model is asked" } else { "" };
        vec![Line::new(Tone::Strong, format!("● {}{scripted}", inert(&spec.model.name)))]
    }

    /// What was said, as whose word, and what was shown with it.
    fn said(&mut self, message: &Message) -> Vec<Line> {
        let bytes = message.text.len();
        let said = match &message.author {
            Author::Person(_) | Author::Agent(_) => {
                self.is_answered = false;
                let who = match &message.author {
                    Author::Person(name) if name != WHO => {
                        format!("{}: ", inert(name.trim_start_matches("person:")))
                    }
                    _ => String::new(),
                };
                Line::new(Tone::Strong, format!("› {who}{}", first_line(&message.text)))
            }
            Author::Untrusted(name) => {
                Line::new(Tone::Detail, format!("  with {} ({bytes} bytes, as data)", inert(name)))
            }
            Author::Trusted(TrustedFile { name, .. }) => {
                Line::new(Tone::Detail, format!("  with {} ({bytes} bytes, trusted)", inert(name)))
            }
        };
        let pictures = message.pictures.iter();
        let pictures = pictures.map(|it| Line::new(Tone::Detail, picture(it)));
        std::iter::once(said).chain(pictures).collect()
    }

    /// The lines of the next event.
    pub(crate) fn lines(&mut self, record: &Record) -> Vec<Line> {
        let line = |tone, text: String| vec![Line::new(tone, text)];
        match &record.event {
            Event::Opened(spec) => self.opened(spec),
            Event::Said(message) => self.said(message),
            Event::Proposed(work) => {
                self.proposed(record.seq, work);
                Vec::new()
            }
            Event::Decided { verdict: Verdict::Ask { rules, .. }, .. } => {
                let rules = inert(&rules.join(", ")).to_string();
                line(Tone::Warning, format!("  ? waits for approval, asked by {rules}"))
            }
            Event::Decided { .. } => Vec::new(),
            Event::Answered { effect, by, answer, .. } => self.answered(*effect, by, answer),
            Event::Started { effect, attempt, .. } => {
                self.started_ms.insert(*effect, record.at_ms);
                self.shown = Some(*effect);
                self.started(*effect, *attempt)
            }
            Event::Withheld { shortfall, .. } => {
                let asks = if matches!(shortfall.cause, Cause::Soft(_)) { "?" } else { "!" };
                line(Tone::Warning, inert(&format!("  {asks} {shortfall}")))
            }
            Event::Settled { effect, outcome, .. } => self.settled(record, *effect, outcome),
            Event::SandboxLost { sandbox, loss, .. } => {
                let text = format!("! the sandbox {sandbox} was lost: {loss}");
                line(Tone::Warning, inert(&text))
            }
            Event::SandboxKept { .. } => Vec::new(),
            Event::Interrupted { by } => {
                line(Tone::Warning, format!("! interrupted{}", by_whom(by)))
            }
            Event::Shared { with, access, by } => {
                line(Tone::Detail, inert(&shared(with, *access, by)))
            }
            Event::CompactionRequested { by } => {
                let asked = by_whom(by);
                line(Tone::Detail, format!("● to be summarised before the next answer{asked}"))
            }
            Event::Cancelled { .. } if self.is_below && self.is_answered => {
                line(Tone::Detail, "● its answer was taken".to_owned())
            }
            Event::Cancelled { by, .. } => {
                line(Tone::Warning, format!("! cancelled{}", by_whom(by)))
            }
            Event::Resumed { by, model, network, .. } => {
                vec![resumed(by, model.as_deref(), network.as_deref())]
            }
            Event::TurnEnded(end) => {
                self.is_answered = *end == TurnEnd::Answered;
                vec![ended(end)]
            }
            // How a subagent begins.
            Event::Forked { cut, .. } if cut.conversation.is_empty() => Vec::new(),
            Event::Forked { by, cut } => {
                let (session, at) = (&cut.session, cut.at);
                line(
                    Tone::Detail,
                    format!("● forked from {session} at checkpoint {at}{}", by_whom(by)),
                )
            }
            Event::Rewound { by, cut } => {
                line(Tone::Warning, format!("● rewound to checkpoint {}{}", cut.at, by_whom(by)))
            }
            Event::Touched(it) => touched(it),
            Event::Reached(report) => reached(report),
        }
    }

    fn proposed(&mut self, effect: Seq, work: &Work) {
        if let Work::CallTool(call) = work
            && let Some(given) = self.calls.get(&(call.reply, call.index))
        {
            self.given.insert(effect, given.clone());
        }
        self.works.insert(effect, work.clone());
    }

    /// What was said to a question. What is proposed in the place of a call has other arguments.
    fn answered(&mut self, effect: Seq, by: &str, answer: &Answer) -> Vec<Line> {
        let mut text = format!("  answered by {}", inert(by));
        if let (Answer::Amended { arguments }, Some(Work::CallTool(call))) =
            (answer, self.works.get(&effect))
            && let Some(given) = self.calls.get_mut(&(call.reply, call.index))
        {
            given.arguments.clone_from(arguments);
            text.push_str(", with other arguments");
        }
        vec![Line::new(Tone::Detail, text)]
    }

    fn started(&self, effect: Seq, attempt: u32) -> Vec<Line> {
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        match self.works.get(&effect) {
            Some(Work::CallTool(_)) => {
                vec![Line::new(Tone::Step, format!("▸ {}{again}", self.call(effect)))]
            }
            Some(Work::Compact) => vec![Line::new(Tone::Detail, format!("▸ summarising{again}"))],
            Some(Work::AskModel | Work::Provision { .. }) if attempt > 1 => {
                vec![Line::new(Tone::Detail, format!("▸ again after a crash{again}"))]
            }
            Some(Work::AskModel | Work::Provision { .. }) | None => Vec::new(),
        }
    }

    fn settled(&mut self, record: &Record, effect: Seq, outcome: &Outcome) -> Vec<Line> {
        let since = self.started_ms.remove(&effect).unwrap_or(record.at_ms);
        let took = seconds(record.at_ms.saturating_sub(since));
        match outcome {
            Outcome::Done(Product::Reply(reply)) => {
                let summary = matches!(self.works.get(&effect), Some(Work::Compact));
                self.replied(effect, reply, summary)
            }
            Outcome::Done(Product::Sandbox(ready)) => {
                let again = match &ready.replaces {
                    None => "",
                    Some(Replacement::Disk) => " again, over its old disk",
                    Some(Replacement::Snapshot(_)) => " again, from its snapshot",
                    Some(Replacement::Start) => " again, from its starting content",
                };
                let text = format!("□ sandbox ready{again}: {} · {took:.2} s", ready.backend);
                vec![Line::new(Tone::Detail, text)]
            }
            Outcome::Done(Product::Output(output)) => {
                let failed = output.exit_code.is_some_and(|code| code != 0);
                let (tone, mark) = match output.status {
                    Status::Ok if !failed => (Tone::Detail, "✓"),
                    Status::Ok | Status::Error | Status::Denied | Status::Unknown => {
                        (Tone::Warning, "✗")
                    }
                };
                let code =
                    output.exit_code.map_or_else(String::new, |code| format!(" · exit {code}"));
                let name = self.name(effect);
                let mut lines =
                    vec![Line::new(tone, format!("  {mark} {name}{code} · {took:.2} s"))];
                lines.extend(self.excerpt(&output.text));
                lines
            }
            Outcome::Failed(failure) => {
                let text = format!("  ✗ {}: {}", self.name(effect), why(failure));
                vec![Line::new(Tone::Warning, text)]
            }
            Outcome::Cancelled => {
                vec![Line::new(Tone::Warning, format!("  ✗ {}: stopped", self.name(effect)))]
            }
            Outcome::Unknown { evidence } => {
                let text = format!("  ? {}: {}", self.name(effect), inert(evidence));
                vec![Line::new(Tone::Warning, text)]
            }
        }
    }

    /// What an effect does.
    pub(crate) fn work(&self, effect: Seq) -> Option<&Work> {
        self.works.get(&effect)
    }

    /// What has been under way for longest.
    pub(crate) fn waiting(&self) -> Option<(Seq, String)> {
        let effect = *self.started_ms.keys().next()?;
        let what = match self.works.get(&effect)? {
            Work::AskModel => "waiting for the model".to_owned(),
            Work::Compact => "waiting for the model to summarise".to_owned(),
            Work::Provision { .. } => "making the sandbox".to_owned(),
            Work::CallTool(_) => self.call(effect),
        };
        Some((effect, what))
    }

    /// A call with the argument that says most.
    fn call(&self, effect: Seq) -> String {
        let Some(Work::CallTool(call)) = self.works.get(&effect) else { return String::new() };
        let given = self.given.get(&effect);
        format!("{}{}", inert(&call.tool), given.map_or_else(String::new, brief))
    }

    /// What an outcome belongs to; in full if something else was shown in between.
    fn name(&self, effect: Seq) -> String {
        match self.works.get(&effect) {
            Some(Work::CallTool(_)) if self.shown != Some(effect) => self.call(effect),
            Some(Work::CallTool(call)) => inert(&call.tool),
            Some(Work::AskModel) => "model".to_owned(),
            Some(Work::Compact) => "summary".to_owned(),
            Some(Work::Provision { .. }) => "sandbox".to_owned(),
            None => "step".to_owned(),
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

    /// What a tool put out, or its end: what it came to stands there.
    fn excerpt(&self, text: &str) -> Vec<Line> {
        let clean = inert(text);
        let lines: Vec<&str> = clean.lines().collect();
        let (lines_max, chars_max) = match self.is_full {
            true => (usize::MAX, usize::MAX),
            false => (limits::OUTPUT_LINES_MAX, limits::OUTPUT_LINE_CHARS_MAX),
        };
        // To say that one is left out takes as much room as that one.
        let before = Some(lines.len().saturating_sub(lines_max)).filter(|it| *it > 1).unwrap_or(0);
        let line = |text: String| Line::new(Tone::Detail, format!("  │ {text}"));
        let more = (before > 0).then(|| line(format!("… {} before", count(before as u64, "line"))));
        let shown = lines[before..].iter().map(|text| line(cut(text, chars_max)));
        more.into_iter().chain(shown).collect()
    }
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let first = cut(&inert(lines.next().unwrap_or_default()), limits::BRIEF_CHARS_MAX);
    let more = lines.next().is_some() && !first.ends_with('…');
    format!("{first}{}", if more { " …" } else { "" })
}

/// The beginning of a line, with a mark if that is not all of it.
pub(super) fn cut(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Who did it, if it was somebody else than the person who reads it.
fn by_whom(by: &str) -> String {
    if by == WHO { String::new() } else { format!(" by {}", inert(by)) }
}

fn shared(with: &str, access: SharedAccess, by: &str) -> String {
    let how = match access {
        SharedAccess::None => "not shared any more",
        SharedAccess::Read => "shared, to read,",
        SharedAccess::TakePart => "shared, to take part,",
    };
    format!("● {how} with {with}{}", by_whom(by))
}

fn resumed(by: &str, model: Option<&ModelSpec>, network: Option<&[String]>) -> Line {
    let other = model.map_or_else(String::new, |model| {
        format!(", with the model {} of {}", inert(&model.name), inert(&model.provider))
    });
    let reach = network.map_or_else(String::new, |words| {
        format!("; commands may reach: {}", inert(&network::shown(words)))
    });
    Line::new(Tone::Detail, format!("● resumed{}{other}{reach}", by_whom(by)))
}

/// The argument that says most, in a few words.
fn brief(call: &Call) -> String {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let keys = ["command", "file_path", "pattern", "path", "agent", "task"];
    let found = keys.into_iter().filter_map(|key| arguments.get(key)?.as_str());
    found.map(|text| format!("  {}", first_line(text))).collect()
}

fn why(failure: &Failure) -> String {
    match failure {
        Failure::Model { detail, retry_at_ms: Some(at_ms), .. } => {
            format!("{}. It is asked again at {}", inert(detail), when(*at_ms))
        }
        Failure::Model { detail, .. } | Failure::Sandbox { detail } => inert(detail),
        Failure::Denied { reason } => inert(reason),
        Failure::Budget => "it would exceed the budget".to_owned(),
        Failure::Call(fault) => match fault {
            CallFault::Malformed { detail } => format!("malformed arguments: {}", inert(detail)),
            CallFault::Cut => "cut off at the limit of the model's output".to_owned(),
            CallFault::Duplicated => "a second call with the same id".to_owned(),
            CallFault::Unknown { .. } => "there is no such tool".to_owned(),
            CallFault::Oversized { bytes } => format!("{bytes} bytes of arguments"),
            CallFault::Cyclic { times } => format!("the same call, {times} times in a row"),
            CallFault::TooMany => "too many calls in one reply".to_owned(),
        },
    }
}

/// How a turn ended, as a line.
/// Files of memory or of skills that were changed or reached for, and what labels they brought.
fn touched(touched: &Touched) -> Vec<Line> {
    let changes = touched.changes.iter().map(|change| {
        let did = if change.removed { "removed" } else { "wrote" };
        let (path, revision) = (inert(&change.path), change.revision);
        Line::new(Tone::Detail, format!("  {did} {path} (revision {revision})"))
    });
    let refused = touched.refused.iter().map(|refused| {
        let not = if refused.kind == "file_not_found" { "not seen" } else { "not changed" };
        let text = format!("  ! {not}: {}: {}", refused.path, refused.reason);
        Line::new(Tone::Warning, inert(&text))
    });
    let more = (touched.refused_more > 0).then(|| {
        let text = format!("  ! and {} more were not seen or not changed", touched.refused_more);
        Line::new(Tone::Warning, text)
    });
    let labels = (!touched.labels.is_empty()).then(|| {
        let labels: Vec<_> = touched.labels.iter().map(|label| inert(label)).collect();
        Line::new(
            Tone::Detail,
            format!("  what was read labels the session: {}", labels.join(", ")),
        )
    });
    changes.chain(refused).chain(more).chain(labels).collect()
}

/// What a sandbox reached, in one line, and what was refused to it, each in one.
fn reached(report: &EgressReport) -> Vec<Line> {
    let (refused, passed): (Vec<_>, Vec<_>) =
        report.flows.iter().partition(|flow| flow.refusal.is_some());
    let hosts = passed.iter().map(|flow| {
        let port =
            if matches!(flow.port, 80 | 443) { String::new() } else { format!(":{}", flow.port) };
        let bytes = size(flow.sent_bytes.saturating_add(flow.received_bytes));
        format!("{}{port} {bytes}", inert(&flow.host))
    });
    let hosts: Vec<String> = hosts.collect();
    let line = (!hosts.is_empty())
        .then(|| Line::new(Tone::Detail, format!("  reached {}", hosts.join(", "))));
    let refused = refused.into_iter().filter_map(|flow| {
        let why = flow.refusal.as_deref()?;
        Some(Line::new(Tone::Warning, format!("  ! {}", inert(why))))
    });
    let more = (report.more > 0)
        .then(|| Line::new(Tone::Detail, format!("  and {} more hosts", report.more)));
    line.into_iter().chain(refused).chain(more).collect()
}

fn ended(end: &TurnEnd) -> Line {
    match end {
        TurnEnd::Answered => Line::new(Tone::Good, "● done"),
        TurnEnd::Refused { reason } => {
            Line::new(Tone::Error, format!("● refused: {}", inert(reason)))
        }
        TurnEnd::OutputLimit => {
            Line::new(Tone::Warning, "● the answer was cut at the output limit")
        }
        TurnEnd::Empty => Line::new(Tone::Error, "● the model said nothing"),
        TurnEnd::StepsExhausted => Line::new(Tone::Warning, "● out of steps"),
        TurnEnd::TimeExhausted => Line::new(Tone::Warning, "● out of time"),
        TurnEnd::BudgetExhausted => Line::new(Tone::Warning, "● out of budget"),
        TurnEnd::OutOfBudget(shortfall) => {
            Line::new(Tone::Warning, format!("● out of budget: {}", inert(&shortfall.to_string())))
        }
        TurnEnd::ModelFailed { .. } => Line::new(Tone::Error, "● the model could not be asked"),
        TurnEnd::SandboxFailed { .. } => Line::new(Tone::Error, "● no sandbox could be made"),
        TurnEnd::Interrupted => Line::new(Tone::Warning, "● interrupted"),
        TurnEnd::Cancelled => Line::new(Tone::Warning, "● cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::{Value, json};

    fn spent(tokens: u64) -> Value {
        json!({ "steps": 1, "tokens": tokens })
    }

    /// A call that was proposed as event `seq`.
    fn proposed(seq: u64, index: u32, tool: &str) -> (u64, Value) {
        let work = json!({ "reply": 1, "index": index, "call": format!("c{index}"), "tool": tool, "arguments": "0".repeat(64) });
        (seq, json!({ "proposed": { "call_tool": work } }))
    }

    fn started(seq: u64, effect: u64) -> (u64, Value) {
        let event = json!({ "effect": effect, "attempt": 1, "reserved": spent(0), "place": null });
        (seq, json!({ "started": event }))
    }

    fn settled(seq: u64, effect: u64, outcome: Value) -> (u64, Value) {
        (seq, json!({ "settled": { "effect": effect, "outcome": outcome, "spent": spent(0) } }))
    }

    fn output(text: &str, exit_code: Option<i32>) -> Value {
        let mut output = json!({ "status": "ok", "text": text, "hidden_bytes": 0 });
        if let Some(code) = exit_code {
            output["exit_code"] = json!(code);
        }
        json!({ "done": { "output": output } })
    }

    /// The lines, and after those of each event what is waited for.
    fn played(events: Vec<(u64, Value)>) -> String {
        let mut timeline = Timeline::default();
        let mut text = String::new();
        for (seq, event) in events {
            let record = json!({ "seq": seq, "at_ms": 250 * seq, "event": event });
            let record: Record = serde_json::from_value(record).unwrap();
            for line in timeline.lines(&record) {
                text.push_str(&format!("{}\n", line.text));
            }
            if let Some((_, what)) = timeline.waiting() {
                text.push_str(&format!("        ({what})\n"));
            }
        }
        text
    }

    #[test]
    fn results_of_concurrent_calls_name_theirs() {
        let calls = [
            json!({ "call": { "id": "c0", "name": "grep", "arguments": "{\"pattern\": \"a|b\", \"path\": \"lib\"}" } }),
            json!({ "call": { "id": "c1", "name": "execute", "arguments": "{\"command\": \"make\\nmake check\"}" } }),
        ];
        let origin =
            json!({ "api": "scripted", "provider": "scripted", "model": "m", "response_id": null });
        let usage = json!({ "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0 });
        let reply = json!({ "origin": origin, "parts": calls, "native": [], "fingerprint": "0".repeat(64), "stop": "end", "usage": usage });
        let text = played(vec![
            (1, json!({ "proposed": "ask_model" })),
            started(2, 1),
            settled(3, 1, json!({ "done": { "reply": reply } })),
            proposed(4, 0, "grep"),
            proposed(5, 1, "execute"),
            started(6, 4),
            started(7, 5),
            settled(8, 5, output(&"x".repeat(200), Some(2))),
            settled(9, 4, output("lib/a: a\x1b[2J", None)),
            proposed(10, 0, "grep"),
            started(11, 10),
            settled(12, 10, json!("cancelled")),
        ]);
        expect![[r#"
                    (waiting for the model)
            ▸ grep  a|b  lib
                    (grep  a|b  lib)
            ▸ execute  make …
                    (grep  a|b  lib)
              ✗ execute · exit 2 · 0.25 s
              │ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
                    (grep  a|b  lib)
              ✓ grep  a|b  lib · 0.75 s
              │ lib/a: a�[2J
            ▸ grep  a|b  lib
                    (grep  a|b  lib)
              ✗ grep: stopped
        "#]]
        .assert_eq(&text);
    }
}
