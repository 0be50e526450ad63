//! Unsound calls become results that say what was wrong; sound ones run in order.

use expect_test::{Expect, expect};
use outrigger_agent::{
    Answer, Event, Item, Park, Part, Raw, Spec, Stop, TurnEnd, TurnLimits, Work, limits,
};
use outrigger_policy::Verdict;

use crate::bench::Bench;
use crate::build::{self, answer, call, output, reply, said, sandbox, spec};

/// What the model sees of one reply's calls when every sound one gives `fine`.
fn check(parts: Vec<Part>, expected: &Expect) {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(parts));
    while let outrigger_agent::Next::Perform(ids) = bench.run() {
        match &bench.state.effect(ids[0]).unwrap().work {
            Work::Provision { .. } => bench.settle(sandbox("g1")),
            Work::CallTool(_) => bench.settle(output("fine")),
            Work::AskModel | Work::Compact => break,
        };
    }
    expected.assert_eq(&bench.results());
}

#[test]
fn malformed_arguments() {
    check(
        vec![
            call("a", "recall", r#"{"q": "#),
            call("b", "recall", "[1]"),
            call("c", "recall", "null"),
            call("d", "recall", r#"{"q":1} and more"#),
            call("e", "recall", &"[".repeat(1_000)),
            call("f", "recall", ""),
            call("g", "recall", " {} "),
        ],
        &expect![[r#"
            result a Error "The arguments of this call are not valid: EOF while parsing a value at line 1 column 6. Send one JSON object that follows the tool's schema."
            result b Error "The arguments of this call are not valid: expected a JSON object. Send one JSON object that follows the tool's schema."
            result c Error "The arguments of this call are not valid: expected a JSON object. Send one JSON object that follows the tool's schema."
            result d Error "The arguments of this call are not valid: trailing characters at line 1 column 9. Send one JSON object that follows the tool's schema."
            result e Error "The arguments of this call are not valid: EOF while parsing a list at line 1 column 1000. Send one JSON object that follows the tool's schema."
            result f Ok "fine"
            result g Ok "fine"
        "#]],
    );
}

#[test]
fn arguments_that_readers_fail_on_or_differ_about() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    check(
        vec![
            call("a", "recall", r#"{"q":1,"q":2}"#),
            call("b", "recall", r#"{"q":{"r":1,"r":2}}"#),
            call("c", "recall", r#"{"q":"\ud800"}"#),
            call("d", "recall", &deep),
        ],
        &expect![[r#"
            result a Error "The arguments of this call are not valid: the key \"q\" stands there twice at line 1 column 13. Send one JSON object that follows the tool's schema."
            result b Error "The arguments of this call are not valid: the key \"r\" stands there twice at line 1 column 18. Send one JSON object that follows the tool's schema."
            result c Error "The arguments of this call are not valid: unexpected end of hex escape at line 1 column 13. Send one JSON object that follows the tool's schema."
            result d Error "The arguments of this call are not valid: nested more than 64 deep at line 1 column 69. Send one JSON object that follows the tool's schema."
        "#]],
    );
}

#[test]
fn a_call_that_was_cut_at_the_output_limit() {
    for (arguments, is_cut) in
        [(r#"{"q": "x"#, true), ("{}", true), ("", true), (r#"{"q":1}"#, false)]
    {
        let mut bench = Bench::with_task(spec());
        let parts = vec![call("a", "recall", "{"), call("b", "recall", arguments)];
        bench.reply(outrigger_agent::Reply { stop: Stop::OutputLimit, ..reply(parts) });
        let flying = bench.flying();
        if !is_cut {
            bench.settle_this(flying[0], output("fine"));
        }
        let results = bench.results();
        let last = results.lines().last().unwrap();
        assert_eq!(last.contains("reached its limit within this call"), is_cut, "{results}");
        assert!(results.contains("result a Error \"The arguments of this call"), "{results}");
    }
}

#[test]
fn a_reply_that_says_nothing_is_asked_about_once() {
    let mut bench = Bench::with_task(spec());
    bench.reply(answer(" \n")).reply(answer(""));
    assert_eq!((bench.park(), bench.state.ended()), (Park::Message, Some(&TurnEnd::Empty)));
    bench.append(said("And now?"));
    bench.reply(answer("")).reply(answer("Here."));
    assert_eq!((bench.park(), bench.state.ended()), (Park::Message, Some(&TurnEnd::Answered)));
    assert_eq!(bench.conversation().matches("Your last reply was empty").count(), 2);
}

/// In journals of before, nothing was an answer: their turns are read as they were.
#[test]
fn an_older_reply_that_says_nothing_stays_an_answer() {
    let mut bench = Bench::with_task(spec());
    let asked = bench.flying()[0];
    bench.append(build::settled(asked, build::done(answer("")), 1));
    bench.append(Event::TurnEnded(TurnEnd::Answered));
    bench.append(said("And now?"));
    bench.reply(answer("Here."));
    assert!(!bench.conversation().contains("was empty"), "{}", bench.conversation());
}

/// Neither a provider nor whoever reads the journal is given what they may fail on.
#[test]
fn items_of_older_journals_that_readers_fail_on_are_not_given_back() {
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    for (native, stays) in
        [(r#"{"x":"\ud83d\ude00"}"#, true), (r#"{"x":"\ud83d"}"#, false), (&*deep, false)]
    {
        let mut bench = Bench::with_task(spec());
        let native = vec![Raw::new(native.to_owned()).unwrap()];
        bench.reply(outrigger_agent::Reply { native, ..answer("Done.") });
        let Some(Item::Reply(last)) = bench.state.conversation().last() else { panic!() };
        assert_eq!(last.native.len(), usize::from(stays), "{:?}", last.native);
    }
}

#[test]
fn duplicated_ids() {
    check(
        vec![call("a", "recall", "{}"), call("a", "recall", r#"{"q":1}"#)],
        &expect![[r#"
        result a Ok "fine"
        result a Error "Another call of this reply has the same id; only the first was performed. Give every call its own id."
    "#]],
    );
}

#[test]
fn unknown_tools() {
    check(
        vec![call("a", "recal", "{}"), call("b", "", "{}")],
        &expect![[r#"
        result a Error "There is no such tool. The tools are: read, recall, write, bash."
        result b Error "There is no such tool. The tools are: read, recall, write, bash."
    "#]],
    );
}

#[test]
fn oversized_arguments() {
    let arguments = format!(r#"{{"q":"{}"}}"#, "x".repeat(limits::ARGUMENT_BYTES_MAX));
    check(
        vec![call("a", "recall", &arguments)],
        &expect![[r#"
        result a Error "The arguments are 4194312 bytes; at most 4194304 are accepted. Do it in smaller pieces."
    "#]],
    );
}

#[test]
fn too_many_calls() {
    let parts = 0..limits::CALLS_PER_REPLY_MAX + 2;
    let parts = parts.map(|n| call(&format!("c{n}"), "recall", &format!(r#"{{"n":{n}}}"#)));
    let turn = TurnLimits { steps_max: 1_000, ..spec().turn };
    let mut bench = Bench::with_task(Spec { turn, ..spec() });
    bench.reply(reply(parts.collect()));
    let ids = bench.flying();
    assert_eq!(ids.len(), limits::CALLS_PER_REPLY_MAX);
    for id in ids {
        bench.settle_this(id, output("fine"));
    }
    let results = bench.results();
    let last: Vec<&str> = results.lines().skip(limits::CALLS_PER_REPLY_MAX - 1).collect();
    expect![[r#"
        result c127 Ok "fine"
        result c128 Error "A reply may contain at most 128 tool calls; this one came after them and was not performed."
        result c129 Error "A reply may contain at most 128 tool calls; this one came after them and was not performed.""#]].assert_eq(&last.join("\n"));
}

#[test]
fn the_same_call_over_and_over() {
    let mut bench = Bench::with_task(spec());
    for n in 0..4 {
        bench.reply(reply(vec![call(&format!("a{n}"), "recall", r#"{"q":1}"#)]));
        bench.settle(output("fine"));
    }
    bench.reply(reply(vec![call("a4", "recall", r#"{"q":1}"#)]));
    bench.reply(reply(vec![call("a5", "recall", r#"{"q":1}"#), call("b", "recall", "{}")]));
    bench.settle(output("fine"));
    // Something else came between, so it counts anew.
    bench.reply(reply(vec![call("a6", "recall", r#"{"q":1}"#)])).settle(output("fine"));
    expect![[r#"
        result a0 Ok "fine"
        result a1 Ok "fine"
        result a2 Ok "fine"
        result a3 Ok "fine"
        result a4 Error "This is the same call, made 5 times in a row, so it was not performed again. Look at what the earlier ones returned and do something different."
        result a5 Error "This is the same call, made 6 times in a row, so it was not performed again. Look at what the earlier ones returned and do something different."
        result b Ok "fine"
        result a6 Ok "fine"
    "#]].assert_eq(&bench.results());
}

#[test]
fn shared_calls_run_beside_each_other_and_exclusive_ones_alone_in_call_order() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![
        call("a", "read", "{}"),
        call("b", "recall", "{}"),
        call("c", "bash", "{}"),
        call("d", "read", r#"{"n":1}"#),
        call("e", "nosuch", "{}"),
    ]));
    let first = bench.flying()[0];
    bench.settle_this(first, output("b, which needs no sandbox"));
    bench.log();
    bench.settle(sandbox("g1"));
    for text in ["a", "c", "d"] {
        bench.settle(output(text));
    }
    expect![[r#"
        settled provision work: done
        started call a read (attempt 1, 1 steps, 0 tokens)
        settled call a read: done
        started call c bash (attempt 1, 1 steps, 0 tokens)
        settled call c bash: done
        started call d read (attempt 1, 1 steps, 0 tokens)
        settled call d read: done
        started ask_model (attempt 1, 1 steps, 231 tokens)
    "#]]
    .assert_eq(&bench.log());
    expect![[r#"
        message "Do it."
        reply "" [a=read b=recall c=bash d=read e=nosuch]
        result a Ok "a"
        result b Ok "b, which needs no sandbox"
        result c Ok "c"
        result d Ok "d"
        result e Error "There is no such tool. The tools are: read, recall, write, bash."
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn what_the_rules_forbid_and_what_a_person_denies() {
    let mut bench = Bench::with_task(spec());
    bench.verdict = |work| match work {
        Work::CallTool(call) if call.call == "no" => {
            Some(Verdict::forbid(vec!["never".to_owned()]))
        }
        Work::CallTool(call) if call.call == "none" => Some(Verdict::forbid(vec![])),
        Work::CallTool(_) => Some(build::ask("careful")),
        Work::AskModel | Work::Compact | Work::Provision { .. } => None,
    };
    let calls = ["no", "none", "yes", "nay"].map(|id| call(id, "recall", "{}"));
    bench.reply(reply(calls.to_vec()));
    let Park::Answers(ids) = bench.park() else { panic!("nobody is asked") };
    bench.append(build::answered(ids[0], build::approved()));
    // What is permitted does not wait for what is asked.
    assert_eq!(bench.flying(), ids[..1]);
    let nay = Answer::Denied { reason: "not today".to_owned() };
    bench.append(build::answered(ids[1], nay));
    bench.settle(output("fine"));
    expect![[r#"
        result no Denied "Not performed. It is forbidden by: never."
        result none Denied "Not performed. No rule permits it."
        result yes Ok "fine"
        result nay Denied "Not performed. A person denied it: not today"
    "#]]
    .assert_eq(&bench.results());
}

#[test]
fn what_is_said_while_tools_run_is_heard_after_their_results() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "recall", "{}"), call("b", "recall", r#"{"n":1}"#)]));
    let ids = bench.flying();
    bench.settle_this(ids[0], output("first"));
    bench.append(said("Leave the tests alone."));
    bench.settle_this(ids[1], output("second"));
    bench.reply(answer("I left them alone."));
    expect![[r#"
        message "Do it."
        reply "" [a=recall b=recall]
        result a Ok "first"
        result b Ok "second"
        message "Leave the tests alone."
        reply "I left them alone." []
    "#]]
    .assert_eq(&bench.conversation());
    assert_eq!(bench.park(), Park::Message);
}

#[test]
fn what_is_said_while_the_model_answers_is_answered_too() {
    let mut bench = Bench::with_task(spec());
    bench.flying();
    bench.append(said("And that."));
    bench.reply(answer("Did it.")).reply(answer("And that."));
    expect![[r#"
        message "Do it."
        reply "Did it." []
        message "And that."
        reply "And that." []
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn calls_of_a_refused_reply_are_not_performed() {
    let mut bench = Bench::with_task(spec());
    let mut refused = reply(vec![call("a", "recall", "{}")]);
    refused.stop = Stop::Refused("too dangerous".to_owned());
    bench.reply(refused);
    expect![[r#"
        message "Do it."
        reply "" [a=recall]
        result a Denied "Not performed: the reply that asked for it was refused."
    "#]]
    .assert_eq(&bench.conversation());
    assert_eq!(bench.park(), Park::Message);
}
