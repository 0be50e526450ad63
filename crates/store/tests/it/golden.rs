//! Golden journals: what an earlier program wrote is read today, to the byte.
//!
//! The files of a format never change once a release wrote it. The ones of the
//! current format are written from [`crate::sample`]; run with `UPDATE_EXPECT=1`
//! after a variant or a field was added to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use outrigger_agent::{
    Answer, Author, CallFault, Cause, Concurrency, Digest, Event, FORMAT, Failure, Loss,
    ModelFault, Outcome, Part, Product, Record, Recovery, Replacement, SandboxScope, Seq,
    SessionId, Status, Stop, ToolKind, TurnEnd, Work,
};
use outrigger_audit::chain::{self, ChainLink};
use outrigger_policy::Verdict;
use outrigger_store::{Journal, Memory, SessionSummary, load_all};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::support::{open, session};

/// A line of a golden journal.
#[derive(Serialize, Deserialize)]
struct Line {
    session: SessionId,
    seq: Seq,
    at_ms: u64,
    format: u32,
    link: Digest,
    event: Box<RawValue>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// All golden journals of all formats.
fn golden() -> Vec<Vec<Line>> {
    let mut files = Vec::new();
    for format in std::fs::read_dir(directory()).unwrap() {
        for file in std::fs::read_dir(format.unwrap().path()).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            files.push(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect());
        }
    }
    assert!(files.len() >= 2, "the golden journals are there");
    files
}

fn write(name: &str, events: &[Event]) -> String {
    let session = session(&format!("golden-{name}"));
    let mut before = chain::origin(&session);
    let mut text = String::new();
    for (seq, event) in (1..).map(Seq).zip(events) {
        let event = serde_json::to_string(event).unwrap();
        let (session, at_ms) = (&session, 1_700_000_000_000 + 7 * seq.0);
        let digest = Digest::of(event.as_bytes());
        let link = ChainLink { session, seq, at_ms, format: FORMAT, text: &digest }.after(&before);
        before = link.clone();
        let event = RawValue::from_string(event).unwrap();
        let line = Line { session: session.clone(), seq, at_ms, format: FORMAT, link, event };
        text += &serde_json::to_string(&line).unwrap();
        text.push('\n');
    }
    text
}

#[test]
fn current_format_is_written() {
    for (name, events) in crate::sample::journals() {
        let path = directory().join(format!("v{FORMAT}/{name}.jsonl"));
        expect_file![path].assert_eq(&write(name, &events));
    }
}

/// Of older formats events and links can be made out as they were.
#[test]
fn older_formats_are_made_out() {
    for lines in golden().iter().filter(|lines| lines[0].format != FORMAT) {
        let mut before = chain::origin(&lines[0].session);
        for Line { session, seq, at_ms, format, link, event } in lines {
            let read: Event = serde_json::from_str(event.get()).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), event.get(), "{seq} of {session}");
            let text = Digest::of(event.get().as_bytes());
            let linked =
                ChainLink { session, seq: *seq, at_ms: *at_ms, format: *format, text: &text };
            before = linked.after(&before);
            assert_eq!(before, *link, "{seq} of {session}");
        }
    }
}

/// Texts go through events and come out the same, in both homes of the journal,
/// with the recorded links.
#[tokio::test]
async fn the_current_format_is_read() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path()).await;
    let memory = Memory::default();
    let homes: [&dyn Journal; 2] = [&store, &memory];
    for (home, lines) in
        homes.into_iter().flat_map(|home| golden().into_iter().map(move |l| (home, l)))
    {
        if lines[0].format != FORMAT {
            continue;
        }
        for line in &lines {
            let event: Event = serde_json::from_str(line.event.get()).unwrap();
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(text, line.event.get(), "event {} of {}", line.seq, line.session);
            let after = Seq(line.seq.0 - 1);
            let (events, summary) = ([event], SessionSummary::default());
            let append = home.append(&line.session, after, line.at_ms, &events, summary);
            assert_eq!(append.await.unwrap(), line.seq);
            assert_eq!(home.verify(&line.session).await.unwrap().link, line.link);
        }
        let mut records = Vec::new();
        let session = &lines[0].session;
        load_all(home, session, Seq(0), |record| records.push(record)).await.unwrap();
        let expected = lines.iter().map(|line| Record {
            seq: line.seq,
            at_ms: line.at_ms,
            event: serde_json::from_str(line.event.get()).unwrap(),
        });
        assert_eq!(records, expected.collect::<Vec<_>>());
    }
}

/// The names of an enum's variants, and which one a value is. A variant that is
/// added does not compile until it has a name here, and a name fails
/// [`everything_occurs`] until a golden journal has it.
macro_rules! variants {
    ($function:ident, $names:ident, $type:ty, $($pattern:pat => $name:literal,)*) => {
        const $names: &[&str] = &[$($name),*];
        fn $function(value: &$type) -> &'static str {
            match value { $($pattern => $name),* }
        }
    };
}

variants! { event, EVENTS, Event,
    Event::Opened(_) => "opened", Event::Said(_) => "said", Event::Proposed(_) => "proposed",
    Event::Decided { .. } => "decided", Event::Answered { .. } => "answered",
    Event::Withheld { .. } => "withheld",
    Event::Started { .. } => "started", Event::Settled { .. } => "settled",
    Event::SandboxLost { .. } => "sandbox lost", Event::SandboxKept { .. } => "sandbox kept",
    Event::Interrupted { .. } => "interrupted",
    Event::CompactionRequested { .. } => "compaction requested",
    Event::Shared { .. } => "shared",
    Event::Cancelled { .. } => "cancelled", Event::Resumed { .. } => "resumed",
    Event::TurnEnded(_) => "turn ended", Event::Forked { .. } => "forked",
    Event::Rewound { .. } => "rewound", Event::Touched(_) => "touched",
    Event::Reached(_) => "reached",
}
variants! { work, WORKS, Work,
    Work::AskModel => "work: ask model", Work::Compact => "work: compact",
    Work::Provision { .. } => "work: provision", Work::CallTool(_) => "work: call tool",
}
variants! { verdict, VERDICTS, Verdict,
    Verdict::Permit { .. } => "permit", Verdict::Forbid { .. } => "forbid",
    Verdict::Ask { .. } => "ask",
}
variants! { answer, ANSWERS, Answer,
    Answer::Approved { .. } => "approved", Answer::Denied { .. } => "answer: denied",
    Answer::Amended { .. } => "amended",
}
variants! { author, AUTHORS, Author,
    Author::Person(_) => "person", Author::Untrusted(_) => "untrusted",
    Author::Agent(_) => "agent", Author::Trusted(_) => "trusted",
}
variants! { outcome, OUTCOMES, Outcome,
    Outcome::Done(_) => "done", Outcome::Failed(_) => "failed",
    Outcome::Cancelled => "outcome: cancelled", Outcome::Unknown { .. } => "unknown",
}
variants! { product, PRODUCTS, Product,
    Product::Reply(_) => "reply", Product::Sandbox(_) => "sandbox", Product::Output(_) => "output",
}
variants! { failure, FAILURES, Failure,
    Failure::Model { .. } => "failure: model", Failure::Call(_) => "failure: call",
    Failure::Denied { .. } => "failure: denied", Failure::Sandbox { .. } => "failure: sandbox",
    Failure::Budget => "failure: budget",
}
variants! { model_fault, MODEL_FAULTS, ModelFault,
    ModelFault::Auth => "auth", ModelFault::Invalid => "invalid",
    ModelFault::ContextTooLong => "context too long", ModelFault::RateLimited => "rate limited",
    ModelFault::Unavailable => "unavailable", ModelFault::Garbled => "garbled",
    ModelFault::Script => "script",
}
variants! { call_fault, CALL_FAULTS, CallFault,
    CallFault::Malformed { .. } => "malformed", CallFault::Duplicated => "duplicated",
    CallFault::Unknown { .. } => "no such tool", CallFault::Oversized { .. } => "oversized",
    CallFault::Cyclic { .. } => "cyclic", CallFault::TooMany => "too many",
    CallFault::Cut => "cut off",
}
variants! { part, PARTS, Part,
    Part::Text(_) => "text", Part::Thinking(_) => "thinking", Part::Call(_) => "call",
    Part::Opaque(_) => "opaque",
}
variants! { stop, STOPS, Stop,
    Stop::End => "stop: end", Stop::OutputLimit => "stop: output limit",
    Stop::Refused(_) => "stop: refused", Stop::Paused => "stop: paused",
}
variants! { status, STATUSES, Status,
    Status::Ok => "ok", Status::Error => "error", Status::Denied => "status: denied",
    Status::Unknown => "status: unknown",
}
variants! { turn_end, TURN_ENDS, TurnEnd,
    TurnEnd::Answered => "end: answered", TurnEnd::Refused { .. } => "end: refused",
    TurnEnd::OutputLimit => "end: output limit", TurnEnd::StepsExhausted => "end: steps",
    TurnEnd::TimeExhausted => "end: time", TurnEnd::BudgetExhausted => "end: budget",
    TurnEnd::OutOfBudget(_) => "end: out of budget",
    TurnEnd::ModelFailed { .. } => "end: model", TurnEnd::SandboxFailed { .. } => "end: sandbox",
    TurnEnd::Empty => "end: empty",
    TurnEnd::Interrupted => "end: interrupted", TurnEnd::Cancelled => "end: cancelled",
}
variants! { kind, KINDS, ToolKind,
    ToolKind::Execute => "execute", ToolKind::ReadFiles => "read files",
    ToolKind::WriteFiles => "write files", ToolKind::Outside => "outside",
    ToolKind::Subagent => "subagent",
}
variants! { concurrency, CONCURRENCIES, Concurrency,
    Concurrency::Shared => "shared", Concurrency::Exclusive => "exclusive",
}
variants! { cause, CAUSES, Cause,
    Cause::Limit(_) => "cause: limit", Cause::Soft(_) => "cause: soft",
    Cause::Unpriced => "cause: unpriced", Cause::Stopped { .. } => "cause: stopped",
}
variants! { loss, LOSSES, Loss,
    Loss::Gone => "loss: gone", Loss::Replaced => "loss: replaced", Loss::Died(_) => "loss: died",
    Loss::Altered(_) => "loss: altered", Loss::SetBack => "loss: set back",
}
variants! { replacement, REPLACEMENTS, Replacement,
    Replacement::Disk => "replacement: disk", Replacement::Snapshot(_) => "replacement: snapshot",
    Replacement::Start => "replacement: start",
}
variants! { scope, SCOPES, SandboxScope,
    SandboxScope::Thread => "scope: thread", SandboxScope::Assistant(_) => "scope: assistant",
}
variants! { recovery, RECOVERIES, Recovery,
    Recovery::Repeat => "repeat", Recovery::Reattach => "reattach",
    Recovery::Unknown => "recovery: unknown",
}

fn names_in(record: &Event, names: &mut BTreeSet<&'static str>) {
    names.insert(event(record));
    match record {
        Event::Opened(spec) => {
            names.extend(spec.sandboxes.iter().map(|sandbox| scope(&sandbox.scope)));
            for tool in &spec.tools {
                names.extend([
                    kind(&tool.kind),
                    concurrency(&tool.concurrency),
                    recovery(&tool.recovery),
                ]);
            }
        }
        Event::Said(message) => _ = names.insert(author(&message.author)),
        Event::Proposed(proposed) => _ = names.insert(work(proposed)),
        Event::Decided { verdict: said, .. } => _ = names.insert(verdict(said)),
        Event::Answered { answer: said, .. } => _ = names.insert(answer(said)),
        Event::Settled { outcome: settled, .. } => names_in_outcome(settled, names),
        Event::TurnEnded(end) => _ = names.insert(turn_end(end)),
        Event::SandboxLost { loss: how, .. } => _ = names.insert(loss(how)),
        Event::Withheld { shortfall, .. } => _ = names.insert(cause(&shortfall.cause)),
        Event::Started { .. }
        | Event::SandboxKept { .. }
        | Event::Interrupted { .. }
        | Event::CompactionRequested { .. }
        | Event::Shared { .. }
        | Event::Cancelled { .. }
        | Event::Resumed { .. }
        | Event::Forked { .. }
        | Event::Touched(_)
        | Event::Reached(_)
        | Event::Rewound { .. } => {}
    }
}

fn names_in_outcome(settled: &Outcome, names: &mut BTreeSet<&'static str>) {
    names.insert(outcome(settled));
    match settled {
        Outcome::Done(done) => {
            names.insert(product(done));
            match done {
                Product::Reply(reply) => {
                    names.insert(stop(&reply.stop));
                    names.extend(reply.parts.iter().map(part));
                }
                Product::Output(output) => _ = names.insert(status(&output.status)),
                Product::Sandbox(ready) => names.extend(ready.replaces.as_ref().map(replacement)),
            }
        }
        Outcome::Failed(failed) => {
            names.insert(failure(failed));
            match failed {
                Failure::Model { fault, .. } => _ = names.insert(model_fault(fault)),
                Failure::Call(fault) => _ = names.insert(call_fault(fault)),
                Failure::Denied { .. } | Failure::Sandbox { .. } | Failure::Budget => {}
            }
        }
        Outcome::Cancelled | Outcome::Unknown { .. } => {}
    }
}

#[test]
fn everything_occurs() {
    let mut found = BTreeSet::new();
    for line in golden().iter().flatten().filter(|line| line.format == FORMAT) {
        names_in(&serde_json::from_str(line.event.get()).unwrap(), &mut found);
    }
    let all = [
        EVENTS,
        WORKS,
        VERDICTS,
        ANSWERS,
        AUTHORS,
        OUTCOMES,
        PRODUCTS,
        FAILURES,
        MODEL_FAULTS,
        CALL_FAULTS,
        PARTS,
        STOPS,
        STATUSES,
        TURN_ENDS,
        CAUSES,
        KINDS,
        CONCURRENCIES,
        RECOVERIES,
        LOSSES,
        REPLACEMENTS,
        SCOPES,
    ];
    let missing: Vec<_> = all.into_iter().flatten().filter(|name| !found.contains(*name)).collect();
    assert!(missing.is_empty(), "no golden journal has: {missing:?}");
}
