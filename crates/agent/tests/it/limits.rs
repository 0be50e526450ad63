//! Steps, time and budget: what does not fit is not started, and can be resumed.

use expect_test::expect;
use outrigger_agent::{
    Amounts, Event, Limit, Outcome, Park, Recover, Reply, Spec, TurnEnd, TurnLimits, Usage,
};

use crate::bench::Bench;
use crate::build::{answer, call, output, reply, said, settled, spec};

pub(crate) fn limit(steps: u64, tokens: u64) -> Limit {
    Limit { steps: Some(steps), tokens: Some(tokens), ..Limit::NONE }
}

fn resumed(budget: Option<Limit>, turn: Option<TurnLimits>) -> Event {
    Event::Resumed { by: "person:local".to_owned(), budget, turn, model: None, network: None }
}

#[test]
fn a_turn_without_steps_stops_and_goes_on_with_what_was_open() {
    let turn = TurnLimits { steps_max: 3, wall_ms_max: 1_000 };
    let mut bench = Bench::with_task(Spec { turn, ..spec() });
    let calls = ["a", "b", "c"].map(|id| call(id, "recall", &format!(r#"{{"n":"{id}"}}"#)));
    bench.reply(reply(calls.to_vec()));
    let ids = bench.flying();
    assert_eq!(ids.len(), 2, "the third call is step 4");
    bench.settle_this(ids[0], output("a")).settle_this(ids[1], output("b"));
    assert_eq!(bench.park(), Park::Message);
    assert_eq!(bench.state.ended(), Some(&TurnEnd::StepsExhausted));
    bench.append(resumed(None, None));
    bench.settle(output("c"));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        started call b recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        settled call b recall: done
        ended StepsExhausted
        resumed
        started call c recall (attempt 1, 1 steps, 0 tokens)
        settled call c recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn a_message_to_an_exhausted_turn_is_in_the_very_next_request() {
    let turn = TurnLimits { steps_max: 2, wall_ms_max: 1_000 };
    let mut bench = Bench::with_task(Spec { turn, ..spec() });
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    // The next model call is proposed and permitted, and does not fit.
    assert_eq!(bench.park(), Park::Message);
    bench.append(said("Just tell me."));
    bench.flying();
    expect![[r#"
        message "Do it."
        reply "" [a=recall]
        result a Ok "a"
        message "Just tell me."
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn a_turn_without_time_stops_and_a_person_s_time_is_not_the_turn_s() {
    let turn = TurnLimits { steps_max: 9, wall_ms_max: 1_000 };
    let mut bench = Bench::with_task(Spec { turn, ..spec() });
    bench.now_ms += 1_000;
    bench.reply(reply(vec![call("a", "recall", "{}")]));
    bench.now_ms += 1;
    bench.settle(output("a"));
    bench.append(resumed(None, None));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        ended TimeExhausted
        resumed
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
}

/// Waiting for people is not the turn's time; what was used before it is not given back.
#[test]
fn an_answer_does_not_give_a_turn_its_time_anew() {
    let turn = TurnLimits { steps_max: 99, wall_ms_max: 1_000 };
    let mut bench = Bench::with_task(Spec { turn, ..spec() });
    bench.verdict = |work| {
        matches!(work, outrigger_agent::Work::CallTool(_)).then(|| crate::build::ask("careful"))
    };
    let mut ended = None;
    for round in 0..9 {
        bench.now_ms += 300;
        let arguments = format!("{{\"n\":{round}}}");
        bench.reply(reply(vec![call(&format!("{round}"), "recall", &arguments)]));
        let Park::Answers(ids) = bench.park() else { panic!("nobody is asked") };
        bench.now_ms += 3_600_000;
        bench.append(crate::build::answered(ids[0], crate::build::approved()));
        if bench.park_or_fly().is_some() {
            ended = bench.state.ended().map(|end| (round, end.clone()));
            break;
        }
        bench.settle(output("a"));
    }
    assert_eq!(ended, Some((3, TurnEnd::TimeExhausted)));
}

#[test]
fn a_model_call_reserves_its_worst_case_and_waits_for_a_raise() {
    let budget = limit(2, 300);
    let mut bench = Bench::with_task(Spec { budget, ..spec() });
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    assert_eq!((bench.state.spent().steps, bench.state.spent().tokens), (2, 200));
    assert_eq!(bench.state.ended(), Some(&TurnEnd::BudgetExhausted));
    bench.append(said("Please."));
    bench.append(resumed(Some(limit(9, 1_000)), None));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        ended BudgetExhausted
        said "Please."
        resumed
        started ask_model (attempt 1, 1 steps, 203 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn beside_each_other_calls_start_only_while_the_budget_holds_them_all() {
    let budget = limit(3, 10_000);
    let mut bench = Bench::with_task(Spec { budget, ..spec() });
    let calls = ["a", "b", "c"].map(|id| call(id, "recall", &format!(r#"{{"n":"{id}"}}"#)));
    bench.reply(reply(calls.to_vec()));
    assert_eq!(bench.flying().len(), 2, "one step was spent on the model");
}

/// An estimate can be short; what was really spent counts, and nothing more starts.
#[test]
fn what_cost_more_than_it_reserved_is_counted_in_full() {
    let budget = limit(9, 500);
    let mut bench = Bench::with_task(Spec { budget, ..spec() });
    let id = bench.flying()[0];
    bench.append(settled(id, crate::build::done(reply(vec![call("a", "recall", "{}")])), 9_000));
    assert_eq!(bench.park(), Park::Message);
    assert_eq!(bench.state.spent().tokens, 9_000);
    assert_eq!(bench.state.ended(), Some(&TurnEnd::BudgetExhausted));
}

#[test]
fn a_lost_attempt_stays_charged_and_a_further_one_must_fit_beside_it() {
    let mut bench = Bench::with_task(Spec { budget: limit(9, 320), ..spec() });
    let id = bench.flying()[0];
    let worst = bench.state.reserved_for(id);
    assert_eq!(bench.state.spent(), Amounts::default());
    let again = bench.crash().remove(0);
    let Recover::Again(started) = again else { panic!("{again:?}") };
    bench.now_ms += worst.wall_ms;
    bench.append(started);
    assert_eq!(bench.state.spent(), worst);
    assert_eq!(bench.state.reserved_for(id), worst);
    // A third would be more than there is.
    bench.now_ms += worst.wall_ms;
    let over = bench.crash().remove(0);
    let Recover::Over(over) = over else { panic!("{over:?}") };
    bench.append(over);
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        started ask_model (attempt 2, 1 steps, 148 tokens)
        settled ask_model: Budget
        ended BudgetExhausted
        park Message
    "#]]
    .assert_eq(&bench.log());
    assert_eq!(bench.state.spent(), worst.plus(worst));
}

/// What may take two hours may be cut off more than twice: of each lost attempt the time is
/// charged that went by, not the hour that a model call may take.
#[test]
fn lost_attempts_take_no_more_time_than_went_by() {
    let budget = Limit { wall_ms: Some(7_200_000), ..Limit::NONE };
    let mut bench = Bench::with_task(Spec { budget, ..spec() });
    let id = bench.flying()[0];
    for _ in 0..9 {
        let again = bench.crash().remove(0);
        let Recover::Again(started) = again else { panic!("{again:?}") };
        bench.now_ms += 250;
        bench.append(started);
    }
    assert_eq!((bench.state.spent().wall_ms, bench.state.spent().steps), (9 * 250, 9));
    assert!(bench.state.reserved_for(id).wall_ms <= 3_600_000);
}

/// Numbers of a provider are not to be trusted to add up.
#[test]
fn absurd_usage_is_survived() {
    let mut bench = Bench::with_task(spec());
    let usage = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
    bench.reply(Reply { usage, ..reply(vec![call("a", "recall", "{}")]) });
    bench.settle(output("a"));
    assert_eq!(bench.state.ended(), Some(&TurnEnd::BudgetExhausted));
}

#[test]
fn an_effect_whose_outcome_is_unknown_is_not_repeated_unasked() {
    let mut bench = Bench::with_task(spec());
    bench.settle(Outcome::Unknown { evidence: "the line broke".to_owned() });
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: unknown: the line broke
        ended ModelFailed { fault: Garbled, detail: "What became of the last model call is not known." }
        park Message
    "#]].assert_eq(&bench.log());
}
