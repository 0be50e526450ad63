//! What people answer, and what an answer is bound to.

use expect_test::expect;
use outrigger_agent::{Answer, Approvals, Event, Next, Park, Seq, Spec, Unanswerable, Work};
use outrigger_policy::{RuleSetHash, Verdict};

use crate::bench::Bench;
use crate::build::{self, answered, approved, call, digest, output, reply, session, spec};

const ARGUMENTS: &str = r#"{"q":1}"#;

/// A session in which one call is asked about.
fn asked_in(spec: Spec) -> (Bench, Seq) {
    let mut bench = Bench::with_task(spec);
    bench.verdict = |work| matches!(work, Work::CallTool(_)).then(|| build::ask("careful"));
    bench.reply(reply(vec![call("a", "recall", ARGUMENTS)]));
    let Park::Answers(ids) = bench.park() else { panic!("nobody is asked") };
    (bench, ids[0])
}

fn asked() -> (Bench, Seq) {
    asked_in(spec())
}

fn denied() -> Answer {
    Answer::Denied { reason: "no".to_owned() }
}

fn amended(arguments: &str) -> Answer {
    Answer::Amended { arguments: arguments.to_owned() }
}

fn other_rules() -> RuleSetHash {
    serde_json::from_value("ee".repeat(32).into()).unwrap()
}

/// What becomes of the call, in a word.
fn standing(bench: &mut Bench) -> &'static str {
    match bench.run() {
        Next::Perform(_) => "performed",
        Next::Park(Park::Answers(_)) => "waits",
        _ => "over",
    }
}

#[test]
fn an_answer_is_bound_to_the_arguments_that_were_looked_at() {
    for (arguments, expected) in [
        (None, "performed"),
        (Some(digest(ARGUMENTS)), "performed"),
        (Some(digest(r#"{"q":2}"#)), "waits"),
    ] {
        let (mut bench, effect) = asked();
        let (by, answer) = ("person:ada".to_owned(), approved());
        bench.append(Event::Answered { effect, by, arguments: arguments.clone(), answer });
        assert_eq!(standing(&mut bench), expected, "{arguments:?}");
    }
}

#[test]
fn of_two_who_disagree_the_one_who_denies_wins() {
    for answers in [[approved(), denied()], [denied(), approved()]] {
        let (mut bench, effect) = asked();
        answers.into_iter().for_each(|answer| bench.append(answered(effect, answer)));
        assert_eq!(standing(&mut bench), "performed", "the model is told, and asked again");
        let results = bench.results();
        assert!(results.contains("A person denied it: no"), "{results}");
    }
}

#[test]
fn who_answers_twice_does_it_once() {
    let (mut bench, effect) = asked();
    bench.append(answered(effect, approved()));
    bench.append(answered(effect, approved()));
    assert_eq!(bench.flying(), [effect]);
    bench.append(answered(effect, approved()));
    bench.append(answered(effect, denied()));
    assert_eq!(bench.flying(), [effect], "it has begun");
    bench.settle_this(effect, output("fine"));
    bench.append(answered(effect, approved()));
    assert_eq!(bench.state.effect(effect), None);
    let now = bench.now_ms;
    let refused = bench.state.answerable(effect, None, &approved(), now);
    assert_eq!(refused, Err(Unanswerable::Over));
}

#[test]
fn an_approval_is_void_under_other_rules() {
    let (mut bench, effect) = asked();
    bench.append(answered(effect, approved()));
    // As the engine does when the rules ask again right before it starts.
    let verdict = build::ask("new");
    bench.append(Event::Decided { effect, verdict, rule_set: other_rules() });
    assert_eq!(standing(&mut bench), "waits");
    let waiting = bench.state.effect(effect).unwrap();
    assert!(waiting.approved.is_empty());
    assert_eq!(waiting.asked.as_ref().map(|asked| asked.rules.clone()), Some(vec!["new".into()]));
}

#[test]
fn a_second_approver_is_waited_for_and_the_first_is_not_forgotten() {
    let (mut bench, effect) = asked();
    bench.append(answered(effect, approved()));
    let verdict = build::ask("careful");
    bench.append(Event::Decided { effect, verdict, rule_set: build::rule_set() });
    assert_eq!(standing(&mut bench), "waits");
    assert_eq!(bench.state.effect(effect).unwrap().approved.len(), 1);
    bench.append(answered(effect, approved()));
    assert_eq!(bench.state.effect(effect).unwrap().approved.len(), 2);
}

#[test]
fn what_nobody_answers_is_denied_in_time() {
    let spec =
        Spec { approvals: Approvals { expire_ms: Some(10_000), escalate_ms: None }, ..spec() };
    let (mut bench, effect) = asked_in(spec.clone());
    let since = bench.now_ms;
    assert_eq!(bench.state.next_expiry_ms(), Some(since + 10_000));
    bench.now_ms = since + 9_999;
    assert_eq!(standing(&mut bench), "waits");
    bench.now_ms = since + 10_000;
    let late = bench.state.answerable(effect, None, &approved(), bench.now_ms);
    assert_eq!(late, Err(Unanswerable::Expired));
    bench.append(answered(effect, approved()));
    assert_eq!(standing(&mut bench), "performed", "the model is asked again");
    assert!(bench.results().contains("Nobody approved it in time."), "{}", bench.results());
    // What was approved in time is done, however late it starts.
    let (mut bench, effect) = asked_in(spec);
    bench.append(answered(effect, approved()));
    bench.now_ms += 20_000;
    assert_eq!(bench.flying(), [effect]);
}

/// Whether an approval counts as one of those to whom it escalates is the journal's to
/// say: from the moment of the answer, and not from when it is looked at.
#[test]
fn an_approval_is_escalated_if_it_was_given_late_enough() {
    for (setting, names, waited, expected) in [
        (Some(10_000), &["group:leads"][..], 9_999, false),
        (Some(10_000), &["group:leads"], 10_000, true),
        (Some(10_000), &[], 10_000, false),
        (None, &["group:leads"], 10_000, false),
    ] {
        let approvals = Approvals { escalate_ms: setting, ..Approvals::default() };
        let (mut bench, effect) = asked_in(Spec { approvals, ..spec() });
        let rules = vec!["late".to_owned()];
        let escalates = names.iter().map(|&name| name.to_owned()).collect();
        let verdict = Verdict::Ask { rules, approvers: vec![], escalates };
        let rule_set = other_rules();
        bench.append(Event::Decided { effect, verdict, rule_set });
        let waiting = bench.state.effect(effect).unwrap();
        let since_ms = waiting.asked.as_ref().unwrap().since_ms;
        let at = setting.filter(|_| !names.is_empty()).map(|ms| since_ms + ms);
        assert_eq!(waiting.escalates_ms(approvals), at, "{setting:?} {names:?}");
        bench.now_ms = since_ms + waited;
        assert_eq!(waiting.is_escalated(approvals, rule_set, bench.now_ms), expected);
        assert!(!waiting.is_escalated(approvals, build::rule_set(), bench.now_ms), "not by others");
        bench.append(answered(effect, Answer::Approved { rule_set, seen: None, standing: None }));
        bench.now_ms += 100_000;
        let approved = &bench.state.effect(effect).unwrap().approved;
        let found: Vec<_> = approved.iter().map(|approved| approved.escalated).collect();
        assert_eq!(found, [expected], "{setting:?} {names:?} {waited}");
    }
}

#[test]
fn changed_arguments_are_a_new_effect_that_is_asked_about_anew() {
    let (mut bench, effect) = asked();
    for (arguments, refused) in [("", true), ("[]", true), ("{", true), (r#"{"q":3}"#, false)] {
        let answer = amended(arguments);
        let refusal = bench.state.answerable(effect, None, &answer, bench.now_ms);
        assert_eq!(refusal.is_err(), refused, "{arguments}");
    }
    bench.append(answered(effect, amended(r#"{"q":3}"#)));
    let Park::Answers(ids) = bench.park() else { panic!("nobody is asked") };
    let [new] = ids[..] else { panic!("{ids:?}") };
    assert_ne!(new, effect);
    let Work::CallTool(work) = bench.state.effect(new).unwrap().work.clone() else { panic!() };
    assert_eq!((work.amends, &work.arguments), (Some(effect), &digest(r#"{"q":3}"#)));
    assert_eq!(bench.state.call(&work).unwrap().arguments, r#"{"q":3}"#);
    // The old one is over, and the new one is not what the model wrote.
    assert_eq!(bench.state.effect(effect), None);
    let forged = outrigger_agent::ToolCall { arguments: digest(ARGUMENTS), ..work.clone() };
    assert_eq!(bench.state.call(&forged), None);
    // Changed once more, then approved.
    bench.append(answered(new, amended(r#"{"q":4}"#)));
    let Park::Answers(ids) = bench.park() else { panic!("nobody is asked") };
    bench.append(answered(ids[0], approved()));
    assert_eq!(bench.flying(), ids);
    bench.settle_this(ids[0], output("fine"));
    expect![[r#"
        result a Ok "A person changed the arguments of this call before it was performed, to: {\"q\":4}\nfine"
    "#]]
    .assert_eq(&bench.results());
    assert!(matches!(bench.state.decide(&session(), bench.now_ms), Next::Perform(_)));
}

#[test]
fn an_amendment_that_nobody_made_proposes_nothing() {
    let (mut bench, effect) = asked();
    let Work::CallTool(work) = bench.state.effect(effect).unwrap().work.clone() else { panic!() };
    for (arguments, amends) in
        [(ARGUMENTS, Some(effect)), (r#"{"q":3}"#, Some(effect)), (ARGUMENTS, Some(Seq(1)))]
    {
        let forged =
            outrigger_agent::ToolCall { arguments: digest(arguments), amends, ..work.clone() };
        bench.append(Event::Proposed(Work::CallTool(forged)));
        assert_eq!(bench.state.effect(bench.state.seq()), None);
    }
    assert_eq!(standing(&mut bench), "waits");
}
