//! Sandboxes are made when something needs one, and the model is told what was lost.

use expect_test::expect;
use outrigger_agent::{
    Event, Failure, Outcome, Product, Recover, Replacement, SandboxReady, SnapshotRef, TurnEnd,
    Work,
};
use outrigger_policy::Verdict;

use crate::bench::Bench;
use crate::build::{answer, call, lost, output, reply, said, sandbox, spec};

#[test]
fn a_sandbox_is_made_at_the_first_call_that_needs_it_and_once() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    bench.reply(reply(vec![call("b", "read", "{}"), call("c", "read", r#"{"n":1}"#)]));
    assert_eq!(bench.flying().len(), 1, "both wait for one sandbox");
    bench.settle(sandbox("g1"));
    assert_eq!(bench.flying().len(), 2);
    bench.settle(output("b")).settle(output("c"));
    bench.reply(reply(vec![call("d", "bash", "{}")])).settle(output("d"));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: done
        started provision work (attempt 1, 0 steps, 0 tokens)
        settled provision work: done
        started call b read (attempt 1, 1 steps, 0 tokens)
        started call c read (attempt 1, 1 steps, 0 tokens)
        settled call b read: done
        settled call c read: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: done
        started call d bash (attempt 1, 1 steps, 0 tokens)
        settled call d bash: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
}

/// The model is told, and what needs no sandbox goes on.
#[test]
fn what_needs_a_sandbox_that_may_not_be_made_is_refused_and_the_turn_goes_on() {
    let mut bench = Bench::with_task(spec());
    bench.verdict = |work| match work {
        Work::Provision { .. } => Some(Verdict::forbid(vec!["nowhere".to_owned()])),
        Work::AskModel | Work::Compact | Work::CallTool(_) => None,
    };
    let calls = vec![call("a", "read", "{}"), call("b", "recall", "{}"), call("c", "bash", "{}")];
    bench.reply(reply(calls)).settle(output("b")).reply(answer("I can't."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        decided provision work: Forbid { rules: ["nowhere"], reasons: [] }
        settled provision work: Denied { reason: "It is forbidden by: nowhere." }
        settled call a read: Denied { reason: "Its sandbox `work` may not be made. It is forbidden by: nowhere." }
        settled call c bash: Denied { reason: "Its sandbox `work` may not be made. It is forbidden by: nowhere." }
        started call b recall (attempt 1, 1 steps, 0 tokens)
        settled call b recall: done
        started ask_model (attempt 1, 1 steps, 253 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]].assert_eq(&bench.log());
}

#[test]
fn a_command_carries_the_life_that_it_runs_in_and_its_exec_id() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "bash", "{}")])).settle(sandbox("g1"));
    let started = bench.journal.iter().rev().find_map(|record| match &record.event {
        Event::Started { place: Some(place), .. } => Some(place.clone()),
        _ => None,
    });
    expect![[r#"
        Some(
            Place {
                sandbox: "work",
                generation: "g1",
                exec: "s1.7",
            },
        )
    "#]]
    .assert_debug_eq(&started);
}

#[test]
fn a_lost_sandbox_is_told_of_and_made_anew() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "bash", "{}"), call("b", "bash", r#"{"n":1}"#)]));
    bench.settle(sandbox("g1"));
    bench.append(lost("g1"));
    bench.settle(Outcome::Unknown { evidence: "It may have run.".to_owned() });
    bench.settle(sandbox("g2"));
    // Late news of a life that is over already takes nothing from the one that follows.
    bench.append(lost("g1"));
    assert_eq!(bench.state.sandbox("work").unwrap().generation, "g2");
    bench.settle(output("b"));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started provision work (attempt 1, 0 steps, 0 tokens)
        settled provision work: done
        started call a bash (attempt 1, 1 steps, 0 tokens)
        lost g1
        settled call a bash: unknown: It may have run.
        started provision work (attempt 1, 0 steps, 0 tokens)
        settled provision work: done
        started call b bash (attempt 1, 1 steps, 0 tokens)
        lost g1
        settled call b bash: done
        started ask_model (attempt 1, 1 steps, 250 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
    expect![[r#"
        message "Do it."
        reply "" [a=bash b=bash]
        result a Unknown "It may have run."
        result b Ok "b"
        notice "The sandbox `work` was lost (it is gone) and was made again: every process in it is gone. Look at its files before you rely on them."
        reply "Done." []
    "#]]
    .assert_eq(&bench.conversation());
}

fn kept(at_ms: u64) -> SnapshotRef {
    SnapshotRef { snapshot: format!("s{at_ms}"), at_ms }
}

fn keep(at_ms: u64, dropped: &[&str]) -> Event {
    let dropped = dropped.iter().map(|name| (*name).to_owned()).collect();
    Event::SandboxKept { sandbox: "work".to_owned(), kept: kept(at_ms), dropped }
}

/// A life in the place of one that was lost.
fn replaced(generation: &str, replaces: Replacement) -> Outcome {
    let Outcome::Done(Product::Sandbox(ready)) = sandbox(generation) else { unreachable!() };
    Outcome::Done(Product::Sandbox(SandboxReady { replaces: Some(replaces), ..ready }))
}

#[test]
fn the_model_is_told_once_what_a_loss_took_and_what_is_there() {
    for (replaces, told) in [
        (Replacement::Disk, "files are as they were left"),
        (Replacement::Snapshot(kept(60_000)), "from its snapshot of 00:01 UTC"),
        (Replacement::Start, "back at its starting content"),
    ] {
        let mut bench = Bench::with_task(spec());
        bench.reply(reply(vec![call("a", "bash", "{}")])).settle(sandbox("g1"));
        bench.append(keep(60_000, &[]));
        bench.settle(output("a"));
        bench.append(lost("g1"));
        assert_eq!(bench.state.sandbox("work"), None);
        bench.reply(reply(vec![call("b", "read", r#"{"n":1}"#)]));
        let emptied = replaces == Replacement::Start;
        bench.settle(replaced("g2", replaces));
        assert_eq!(bench.state.kept("work"), [kept(60_000)], "what was kept stays");
        assert_eq!(bench.state.unkept("work").is_some(), emptied, "{told}");
        bench.settle(output("b"));
        bench.reply(answer("Done."));
        let conversation = bench.conversation();
        let notices: Vec<&str> =
            conversation.lines().filter(|line| line.starts_with("notice")).collect();
        let [notice] = notices[..] else { panic!("{conversation}") };
        assert!(notice.contains(told), "{notice}");
        assert!(notice.contains("(it is gone)"), "{notice}");
    }
}

#[test]
fn what_is_kept_is_known_until_it_is_dropped_or_something_changes() {
    let mut bench = Bench::with_task(spec());
    bench.append(keep(1, &[]));
    assert_eq!(bench.state.kept("work"), [], "a sandbox that never was has no disk");
    bench.reply(reply(vec![call("a", "bash", "{}")])).settle(sandbox("g1"));
    assert!(bench.state.unkept("work").is_some(), "it was just filled, and its call runs");
    bench.settle(output("a"));
    bench.append(keep(1, &[]));
    bench.append(keep(2, &[]));
    assert_eq!(bench.state.unkept("work"), None);
    bench.reply(reply(vec![call("b", "read", "{}")])).settle(output("b"));
    assert_eq!(bench.state.unkept("work"), None, "it only read");
    bench.reply(reply(vec![call("c", "write", "{}")]));
    let changed = bench.state.unkept("work");
    assert!(changed.is_some());
    bench.settle(output("c"));
    assert_eq!(bench.state.unkept("work"), changed);
    bench.append(keep(3, &["s1", "s9"]));
    bench.append(keep(3, &[]));
    assert_eq!(bench.state.kept("work"), [kept(2), kept(3)]);
    bench.append(lost("g1"));
    assert_eq!(bench.state.unkept("work"), None, "nothing is there to keep");
    assert_eq!(bench.state.kept("work"), [kept(2), kept(3)]);
}

#[test]
fn a_sandbox_that_can_t_be_made_ends_the_turn_and_is_tried_again_in_the_next() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "read", "{}")]));
    let detail = "No user namespaces here.".to_owned();
    bench.settle(Outcome::Failed(Failure::Sandbox { detail }));
    bench.append(said("Try again."));
    bench.settle(sandbox("g1")).settle(output("a"));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started provision work (attempt 1, 0 steps, 0 tokens)
        settled provision work: Sandbox { detail: "No user namespaces here." }
        ended SandboxFailed { detail: "No user namespaces here." }
        said "Try again."
        started provision work (attempt 1, 0 steps, 0 tokens)
        settled provision work: done
        started call a read (attempt 1, 1 steps, 0 tokens)
        settled call a read: done
        started ask_model (attempt 1, 1 steps, 204 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn a_sandbox_of_which_nothing_is_known_is_not_made_again_unasked() {
    for outcome in [Outcome::Unknown { evidence: "No answer.".to_owned() }, output("odd")] {
        let mut bench = Bench::with_task(spec());
        bench.reply(reply(vec![call("a", "read", "{}")]));
        bench.settle(outcome);
        let ended = bench.state.ended();
        assert!(matches!(ended, Some(TurnEnd::SandboxFailed { .. })), "{ended:?}");
    }
}

#[test]
fn after_a_crash_each_effect_goes_on_as_its_tool_says() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "read", "{}")]));
    assert!(matches!(&bench.crash()[..], [Recover::Again(_)]), "a sandbox is asked for again");
    bench.settle(sandbox("g1"));
    let how = bench.crash().remove(0);
    let Recover::Again(Event::Started { attempt: 2, place: Some(place), .. }) = &how else {
        panic!("{how:?}");
    };
    assert_eq!(place.generation, "g1");

    // The sandbox died with the harness: what only reads is not sent into a dead one.
    bench.append(lost("g1"));
    let how = bench.crash().remove(0);
    let Recover::Over(over) = how else { panic!("{how:?}") };
    bench.append(over);
    expect![[r#"
        result a Error "The sandbox was lost while this ran. It only reads, so it can be done again."
    "#]].assert_eq(&bench.results());

    bench.reply(reply(vec![call("b", "bash", "{}")])).settle(sandbox("g2"));
    assert_eq!(bench.crash(), [Recover::Reattach]);
    let id = bench.flying()[0];
    assert!(matches!(bench.state.effect(id).unwrap().work, Work::CallTool(_)));
}
