//! Cuts through a session: where there are some, and how another one stands on them.

use expect_test::expect;
use outrigger_agent::{
    Amounts, Cut, Event, Outcome, Park, Product, Recover, Replacement, SnapshotRef, Work,
};
use outrigger_policy::Verdict;
use std::sync::Arc;

use crate::bench::Bench;
use crate::build::{self, answer, call, output, reply, said, sandbox, session, spec};

fn keep(bench: &mut Bench, name: &str) {
    let kept = SnapshotRef { snapshot: name.to_owned(), at_ms: 43_440_000 };
    let (sandbox, dropped) = ("work".to_owned(), Vec::new());
    bench.append(Event::SandboxKept { sandbox, kept, dropped });
}

fn cut(bench: &Bench) -> Option<Cut> {
    bench.state.cut(&session(), bench.now_ms)
}

/// A turn in which a command ran and its disk was kept.
fn worked() -> Bench {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "bash", "{}")])).settle(sandbox("g1"));
    bench.settle(output("a")).reply(answer("Done."));
    keep(&mut bench, "s1.work.8");
    bench
}

fn forked(cut: Cut) -> Bench {
    let mut bench = Bench::new(spec());
    bench.append(Event::Forked { by: "person:local".to_owned(), cut: Arc::new(cut) });
    bench
}

#[test]
fn a_session_is_cut_where_it_waits_and_its_disks_are_kept() {
    let mut bench = Bench::new(spec());
    assert!(cut(&bench).is_some(), "before anything was said");
    bench.append(said("Do it."));
    assert!(cut(&bench).is_none(), "a turn runs");
    bench.reply(reply(vec![call("a", "bash", "{}")])).settle(sandbox("g1"));
    assert!(cut(&bench).is_none(), "a command runs");
    bench.settle(output("a")).reply(answer("Done."));
    assert!(cut(&bench).is_none(), "its disk may have changed since it was kept");
    keep(&mut bench, "s1.work.8");
    let kept = cut(&bench).unwrap();
    assert_eq!(kept.sandboxes["work"].kept.as_ref().unwrap().snapshot, "s1.work.8");
    bench.append(Event::Cancelled { by: "p".to_owned(), reason: String::new() });
    assert!(cut(&bench).is_none(), "it was ended");
}

#[test]
fn a_fork_goes_on_with_everything_and_a_disk_of_its_own() {
    let bench = worked();
    let mut cut = cut(&bench).unwrap();
    cut.sandboxes.get_mut("work").unwrap().kept.as_mut().unwrap().snapshot = "s2.work.2".into();
    let mut fork = forked(cut);
    assert_eq!(fork.state.spent(), bench.state.spent());
    assert_eq!(fork.state.conversation(), bench.state.conversation());
    assert_eq!(fork.state.input_tokens_estimate(), bench.state.input_tokens_estimate());
    assert_eq!(fork.park(), Park::Message);
    assert!(fork.state.is_set_back("work") && fork.state.sandbox("work").is_none());
    fork.append(said("And now?"));
    fork.reply(reply(vec![call("b", "bash", "{}")]));
    let kept = fork.state.kept("work")[0].clone();
    assert_eq!(kept.snapshot, "s2.work.2");
    let Outcome::Done(Product::Sandbox(mut ready)) = sandbox("g2") else { unreachable!() };
    ready.replaces = Some(Replacement::Snapshot(kept));
    fork.settle(Outcome::Done(Product::Sandbox(ready))).settle(output("b"));
    assert!(!fork.state.is_set_back("work"));
    fork.reply(answer("Yes."));
    expect![[r#"
        message "Do it."
        reply "" [a=bash]
        result a Ok "a"
        reply "Done." []
        message "And now?"
        reply "" [b=bash]
        result b Ok "b"
        notice "The sandbox `work` was started anew: its files are as they were at 12:04 UTC, and no process of before runs in it."
        reply "Yes." []
    "#]]
    .assert_eq(&fork.conversation());
}

#[test]
fn a_rewind_takes_back_what_was_said_and_not_what_was_spent() {
    let mut bench = worked();
    let before = cut(&bench).unwrap();
    let conversation = bench.conversation();
    bench.append(said("More."));
    bench.reply(reply(vec![call("b", "bash", "{}")])).settle(output("b")).reply(answer("Did."));
    keep(&mut bench, "s1.work.20");
    let spent = bench.state.spent();
    bench.append(Event::Rewound { by: "p".to_owned(), cut: Arc::new(before) });
    assert_eq!(bench.conversation(), conversation);
    assert_eq!(bench.state.spent(), spent);
    assert_eq!(bench.state.status(), "answered");
    let kept: Vec<&str> = bench.state.kept("work").iter().map(|k| &*k.snapshot).collect();
    assert_eq!(kept, ["s1.work.8"], "what was kept later is given up");
    assert!(bench.state.is_set_back("work"));
    assert_eq!(bench.park(), Park::Message);
    assert!(bench.crash().is_empty());
    bench.append(said("Otherwise."));
    bench.reply(reply(vec![call("c", "bash", "{}")]));
    let flying = bench.flying()[0];
    let work = &bench.state.effect(flying).unwrap().work;
    assert!(matches!(work, Work::Provision { .. }), "the disk of later is not its own: {work:?}");
}

#[test]
fn what_waits_for_a_person_waits_again_and_what_was_done_is_not_done_again() {
    let mut bench = Bench::with_task(spec());
    bench.verdict = |work| match work {
        Work::CallTool(call) if call.tool == "write" => Some(build::ask("careful")),
        _ => None,
    };
    bench.reply(reply(vec![call("a", "recall", "{}"), call("b", "write", "{}")]));
    bench.settle(output("found"));
    let Park::Answers(asked) = bench.park() else { panic!("nobody is asked") };
    let cut = cut(&bench).unwrap();
    // An answer that was given does not go along: who approved did so for one effect.
    bench.append(build::answered(asked[0], build::approved()));
    for mut other in [forked(cut.clone()), {
        bench.append(Event::Rewound { by: "p".to_owned(), cut: Arc::new(cut) });
        bench
    }] {
        other.verdict = |work| match work {
            Work::CallTool(call) if call.tool == "write" => Some(Verdict::Ask {
                rules: vec!["careful".to_owned()],
                approvers: vec!["group:ops".to_owned()],
                escalates: Vec::new(),
            }),
            _ => None,
        };
        let Park::Answers(asked) = other.park() else { panic!("nobody is asked again") };
        assert_eq!(asked.len(), 1);
        assert_eq!(other.state.status(), outrigger_agent::State::WAITS);
        let (_, effect, ask) = other.state.asked().next().unwrap();
        assert_eq!(ask.approvers, ["group:ops"], "under the rules of now");
        assert!(matches!(&effect.work, Work::CallTool(call) if call.call == "b"));
        let denied = outrigger_agent::Answer::Denied { reason: "no".to_owned() };
        other.append(build::answered(asked[0], denied));
        other.run();
        other.reply(answer("Then not."));
        expect![[r#"
            result a Ok "found"
            result b Denied "Not performed. A person denied it: no"
        "#]]
        .assert_eq(&other.results());
    }
}

#[test]
fn neither_spends_twice_nor_makes_unspent() {
    let bench = worked();
    let mut cut = cut(&bench).unwrap();
    cut.spent = Amounts::default();
    // Not where a fork begins: what is said to be spent there is not believed.
    let mut late = worked();
    let spent = late.state.spent();
    late.append(Event::Forked { by: "p".to_owned(), cut: Arc::new(cut.clone()) });
    assert_eq!(late.state.spent(), spent);
    assert!(!late.state.is_set_back("work"));
    // What is reserved when it goes back counts as spent: it may have been.
    let mut running = worked();
    running.append(said("More."));
    let flying = running.flying()[0];
    let reserved = running.state.reserved_for(flying);
    assert!(reserved.tokens > 0);
    running.append(Event::Rewound { by: "p".to_owned(), cut: Arc::new(cut) });
    assert_eq!(running.state.spent(), spent.plus(reserved));
    assert_eq!(Recover::of(&running.state, flying, running.now_ms), None::<Recover>);
    assert_eq!(running.park(), Park::Message);
}

#[test]
fn what_is_shared_is_not_the_sessions_to_cut() {
    let mut spec = spec();
    spec.sandboxes = vec![outrigger_agent::SandboxSpec {
        network: Vec::new(),
        name: "work".to_owned(),
        backend: "fake".to_owned(),
        isolation_min: "none".to_owned(),
        workspace: false,
        template: None,
        scope: outrigger_agent::SandboxScope::Assistant("ann".to_owned()),
    }];
    let mut bench = Bench::with_task(spec);
    bench.reply(reply(vec![call("a", "bash", "{}")])).settle(sandbox("g1"));
    bench.settle(output("a")).reply(answer("Done."));
    let cut = cut(&bench).unwrap();
    assert!(cut.sandboxes.is_empty());
    bench.append(Event::Rewound { by: "p".to_owned(), cut: Arc::new(cut) });
    assert!(bench.state.sandbox("work").is_some(), "it lives on");
}
