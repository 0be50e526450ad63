//! Golden journals give the same spans for ever.

use expect_test::{Expect, expect};
use outrigger_agent::{Record, Seq, SessionId};
use outrigger_telemetry::{SessionTrace, Span, encode};

const ANSWERED: &str = include_str!("../../../agent/tests/golden/v1.jsonl");
const AMENDED: &str = include_str!("../../../agent/tests/golden/v2.jsonl");
const COMPACTED: &str = include_str!("../../../agent/tests/golden/v5.jsonl");

fn records(lines: &str) -> Vec<Record> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn spans(lines: &str, with_content: bool) -> Vec<Span> {
    let session = SessionId::new("s").unwrap();
    let mut trace = SessionTrace::new(session, None, with_content);
    records(lines).iter().filter_map(|record| trace.apply(record)).collect()
}

/// Each span on a line: what it is within, its name, its time and what went wrong.
fn check(lines: &str, expected: &Expect) {
    let all = spans(lines, false);
    let known = |span: &Span| span.parent.map(|id| all.iter().find(|it| it.id == id));
    let line = |span: &Span| {
        let parent = match known(span) {
            None => "-".to_owned(),
            Some(None) => "not over".to_owned(),
            Some(Some(parent)) => parent.seq.to_string(),
        };
        let (seq, name, took, error) = (span.seq, span.name(), span.took_ms(), span.error);
        format!(
            "{seq} in {parent}: {name}, {took} ms{}\n",
            error.map_or_else(String::new, |e| format!(", {e}"))
        )
    };
    expected.assert_eq(&all.iter().map(line).collect::<String>());
}

#[test]
fn a_turn_is_a_span_and_what_it_did_are_spans_in_it() {
    check(
        ANSWERED,
        &expect![[r#"
        4 in 2: chat m, 10 ms
        10 in 2: provision_sandbox work, 10 ms
        8 in 2: execute_tool execute, 20 ms
        17 in 2: chat m, 10 ms
        2 in -: invoke_agent default, 190 ms
    "#]],
    );
}

#[test]
fn how_long_a_person_was_waited_for_is_a_span_of_its_own() {
    check(
        AMENDED,
        &expect![[r#"
        3 in 2: chat m, 0 ms
        8 in 2: approval recall, 0 ms
        7 in 2: execute_tool recall, 0 ms, denied
        12 in 2: approval recall, 0 ms
        11 in 2: execute_tool recall, 0 ms
        16 in 2: chat m, 0 ms
        2 in -: invoke_agent default, 0 ms
    "#]],
    );
}

#[test]
fn a_summary_is_a_model_call() {
    check(
        COMPACTED,
        &expect![[r#"
        4 in 2: chat m, 0 ms
        8 in 2: execute_tool recall, 0 ms
        12 in 2: chat m, 0 ms, context_too_long
        16 in 2: chat m, 0 ms
        20 in 2: chat m, 0 ms
        24 in 2: chat m, 0 ms, cancelled
        2 in -: invoke_agent default, 0 ms, interrupted
    "#]],
    );
}

#[test]
fn what_was_said_is_in_no_span_unless_it_is_wanted() {
    for journal in [ANSWERED, AMENDED, COMPACTED] {
        let said = |with| spans(journal, with).iter().map(encode).collect::<String>();
        let (without, with) = (said(false), said(true));
        // Texts of messages, replies, arguments and output.
        let texts = records(journal).iter().flat_map(texts).collect::<Vec<_>>();
        assert!(texts.len() > 3, "{texts:?}");
        for text in &texts {
            let text = serde_json::to_string(text).unwrap();
            assert!(!without.contains(text.trim_matches('"')), "{text} is in {without}");
        }
        let found = texts.iter().filter(|text| {
            // A text is in JSON in a text of JSON.
            let once = serde_json::to_string(text).unwrap();
            let twice = serde_json::to_string(once.trim_matches('"')).unwrap();
            [once, twice].iter().any(|text| with.contains(text.trim_matches('"')))
        });
        assert!(found.count() > 2, "{with}");
        assert!(with.contains("gen_ai.output.messages"), "{with}");
        for name in ["input.messages", "output.messages", "tool.call.arguments", "tool.call.result"]
        {
            assert!(!without.contains(&format!("gen_ai.{name}")), "{without}");
        }
        // What was said is in the span of a turn, which there is once that is over.
        let is_over = journal.contains("turn_ended");
        assert_eq!(with.contains("gen_ai.input.messages"), is_over, "{with}");
    }
}

#[test]
fn a_tool_that_there_is_not_has_no_name() {
    let called = "\"tool\":\"execute\"";
    assert!(ANSWERED.contains(called), "{ANSWERED}");
    let made_up = ANSWERED.replace(called, "\"tool\":\"what only the model says\"");
    let all = spans(&made_up, false).iter().map(encode).collect::<String>();
    assert!(all.contains("execute_tool unknown") && !all.contains("what only"), "{all}");
}

/// What people, models and tools said in an event.
fn texts(record: &Record) -> Vec<String> {
    use outrigger_agent::{Event, Outcome, Part, Product};
    let all = match &record.event {
        Event::Said(message) => vec![message.text.clone()],
        Event::Settled { outcome: Outcome::Done(Product::Output(output)), .. } => {
            vec![output.text.clone()]
        }
        Event::Settled { outcome: Outcome::Done(Product::Reply(reply)), .. } => {
            let text = |part: &Part| match part {
                Part::Text(text) | Part::Thinking(text) => Some(text.clone()),
                Part::Call(call) => Some(call.arguments.clone()),
                Part::Opaque(_) => None,
            };
            reply.parts.iter().filter_map(text).collect()
        }
        _ => Vec::new(),
    };
    all.into_iter().filter(|text| text.len() > 3).collect()
}

#[test]
fn ids_are_of_the_session_and_the_event_alone() {
    let (whole, again) = (spans(AMENDED, false), spans(AMENDED, false));
    assert_eq!(whole, again);
    let of = |name: &str| {
        let mut trace = SessionTrace::new(SessionId::new(name).unwrap(), None, false);
        records(AMENDED).iter().for_each(|record| drop(trace.apply(record)));
        trace.context(Seq(5))
    };
    assert_eq!((of("s"), of("t").span != of("s").span), (of("s"), true));
    // All of a turn are of one trace, and no two have one id.
    let mut ids: Vec<_> = whole.iter().map(|span| span.id.to_string()).collect();
    assert!(whole.iter().all(|span| span.trace == whole[0].trace));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), whole.len());
    // A subagent's turn hangs below the call that started it, in its trace.
    let above = of("s");
    let mut below = SessionTrace::new(SessionId::new("s-1").unwrap(), Some(above), false);
    let spans: Vec<_> = records(ANSWERED).iter().filter_map(|it| below.apply(it)).collect();
    assert_eq!(spans.last().unwrap().parent, Some(above.span));
    assert!(spans.iter().all(|span| span.trace == above.trace));
}
