//! Nothing but the last reply can propose a call, and each of its calls only once.

use outrigger_agent::{Event, Next, Outcome, Product, Recover, Seq, ToolCall, Work};
use outrigger_policy::Verdict;

use crate::bench::Bench;
use crate::build::{self, call, digest, output, reply, rule_set, session, spec};

/// A session with one call in flight, and that call.
fn calling() -> (Bench, Seq, ToolCall) {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "recall", r#"{"q":1}"#)]));
    let id = bench.flying()[0];
    let Work::CallTool(call) = bench.state.effect(id).unwrap().work.clone() else { panic!() };
    (bench, id, call)
}

fn altered(call: &ToolCall) -> Vec<(&'static str, ToolCall)> {
    let call = || call.clone();
    vec![
        ("reply", ToolCall { reply: call().reply.next(), ..call() }),
        ("index", ToolCall { index: 1, ..call() }),
        ("call", ToolCall { call: "b".to_owned(), ..call() }),
        ("tool", ToolCall { tool: "bash".to_owned(), ..call() }),
        ("arguments", ToolCall { arguments: digest(r#"{"q":2}"#), ..call() }),
    ]
}

#[test]
fn an_altered_call_is_not_the_model_s() {
    let (bench, _, call) = calling();
    assert_eq!(bench.state.call(&call).unwrap().arguments, r#"{"q":1}"#);
    for (what, call) in altered(&call) {
        assert_eq!(bench.state.call(&call), None, "{what}");
    }
}

#[test]
fn a_call_of_an_earlier_reply_is_over() {
    let (mut bench, id, call) = calling();
    bench.settle_this(id, output("fine"));
    assert_eq!(bench.state.call(&call), None);
}

#[test]
fn a_forged_or_repeated_proposal_is_passed_over() {
    let (mut bench, _, call) = calling();
    let mut forged = altered(&call);
    forged.push(("nothing", call));
    for (what, call) in forged {
        bench.append(Event::Proposed(Work::CallTool(call)));
        let id = bench.state.seq();
        assert_eq!(bench.state.effect(id), None, "{what}");
    }
    assert_eq!(bench.flying().len(), 1);
}

#[test]
fn a_verdict_on_what_runs_or_is_refused_changes_nothing() {
    let (mut bench, id, _) = calling();
    let permit = Verdict::Permit { rules: vec!["late".to_owned()] };
    bench.append(Event::Decided { effect: id, verdict: permit, rule_set: rule_set() });
    assert_eq!(bench.state.decide(&session(), 0), Next::Perform(vec![id]));
    assert!(matches!(Recover::of(&bench.state, id, 0), Some(Recover::Again(_))));
}

#[test]
fn a_second_opening_raises_no_budget() {
    let (mut bench, ..) = calling();
    let (budget, tokens) = (bench.state.budget(), bench.state.input_tokens_estimate());
    let mut richer = spec();
    richer.budget = outrigger_agent::Limit::NONE;
    bench.append(Event::Opened(std::sync::Arc::new(richer)));
    assert_eq!((bench.state.budget(), bench.state.input_tokens_estimate()), (budget, tokens));
}

#[test]
fn a_call_gets_a_result_even_if_its_outcome_is_none() {
    let (mut bench, id, _) = calling();
    let reply = std::sync::Arc::new(build::answer("what?"));
    bench.settle_this(id, Outcome::Done(Product::Reply(reply)));
    expect_test::expect![[r#"
        result a Unknown "The tool gave something that is no tool's output."
    "#]]
    .assert_eq(&bench.results());
}
