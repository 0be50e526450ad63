//! Money, time and processors, soft limits, and accounts that have no room.

use expect_test::expect;
use outrigger_agent::{
    AccountId, Amounts, Answer, Cause, Deadline, Event, Limit, Measure, Next, Park, Price, Record,
    Recover, Shortage, Shortfall, Spec, State, TurnEnd, Work, command_ms_max, limits, shrunk,
};

use crate::bench::Bench;
use crate::build::{answer, answered, approved, call, deadline, output, reply, sandbox, spec};

/// A dollar for a million tokens in, two for a million out.
const PRICE: Price =
    Price { input: 1_000_000, output: 2_000_000, cache_read: 100_000, cache_write: 1_250_000 };

fn priced(budget: Limit, soft: Limit) -> Spec {
    let mut spec = Spec { budget, soft, ..spec() };
    spec.model.price = Some(PRICE);
    spec.tools[3].deadline = Some(deadline());
    spec
}

fn money(nanos: u64) -> Limit {
    Limit { money_nanos: Some(nanos), ..Limit::NONE }
}

fn denied() -> Answer {
    Answer::Denied { reason: "too much".to_owned() }
}

#[test]
fn a_model_call_reserves_what_it_may_cost_at_most() {
    let mut bench = Bench::with_task(priced(money(1_000_000), Limit::NONE));
    let id = bench.flying()[0];
    let reserved = bench.state.reserved_for(id);
    // 48 tokens in at the price of writing the cache, which is the highest; 100 out.
    assert_eq!(reserved.money_nanos, 48 * 1_250 + 100 * 2_000);
    assert_eq!(reserved.wall_ms, 3_600_000);
    for (limit, starts) in [(reserved.money_nanos, true), (reserved.money_nanos - 1, false)] {
        let mut bench = Bench::with_task(priced(money(limit), Limit::NONE));
        bench.run();
        assert_eq!(bench.state.reserved().money_nanos > 0, starts, "{limit}");
        let ended = bench.state.ended() == Some(&TurnEnd::BudgetExhausted);
        assert_eq!(ended, !starts, "{limit}");
    }
}

/// A crash costs the time that went by, and not the hour that a call could have taken.
#[test]
fn what_is_begun_again_after_a_crash_has_the_time_that_is_left() {
    let limit = Limit { wall_ms: Some(600_000), ..Limit::NONE };
    let mut bench = Bench::with_task(priced(limit, Limit::NONE));
    let id = bench.flying()[0];
    assert_eq!(bench.state.reserved_for(id).wall_ms, 600_000);
    bench.now_ms += 5_000;
    let [Recover::Again(started)] = &bench.crash()[..] else { panic!("it is not begun again") };
    bench.append(started.clone());
    assert_eq!(bench.state.spent().wall_ms, 5_000);
    assert_eq!(bench.state.reserved_for(id).wall_ms, 595_000);
    bench.now_ms += 595_000;
    let [Recover::Over(_)] = &bench.crash()[..] else { panic!("there is time for it") };
}

#[test]
fn a_command_reserves_its_deadline_and_its_share_of_processors_for_so_long() {
    for (arguments, wall_ms) in [
        (r"{}", 3_000),
        (r#"{"timeout":4000}"#, 6_000),
        (r#"{"timeout":99999999}"#, 12_000),
        (r#"{"timeout":null}"#, 3_000),
        (r#"{"text":"\u00e9 \"timeout\": 9","timeout":4000}"#, 6_000),
        // The tool takes a whole number however it is written, or none at all.
        (r#"{"timeout":9000.0}"#, 12_000),
        (r#"{"timeout":9e3}"#, 12_000),
        (r#"{"timeout":-1}"#, 12_000),
        (r#"{"timeout":"9000"}"#, 12_000),
    ] {
        let mut bench = Bench::with_task(priced(Limit::NONE, Limit::NONE));
        bench.reply(reply(vec![call("a", "bash", arguments)]));
        bench.settle(sandbox("g1"));
        let id = bench.flying()[0];
        let reserved = bench.state.reserved_for(id);
        assert_eq!((reserved.wall_ms, reserved.cpu_ms), (wall_ms, wall_ms / 2), "{arguments}");
    }
}

/// No argument says how long a call of a tool outside may take, whatever a model calls one.
#[test]
fn a_deadline_that_no_argument_says_is_reserved_whole() {
    let mut spec = priced(Limit::NONE, Limit::NONE);
    spec.tools[3].deadline = Some(Deadline { argument: String::new(), ..deadline() });
    let mut bench = Bench::with_task(spec);
    bench.reply(reply(vec![call("a", "bash", r#"{"":1}"#)]));
    bench.settle(sandbox("g1"));
    let id = bench.flying()[0];
    assert_eq!(bench.state.reserved_for(id).wall_ms, 3_000);
}

/// A reply is asked for that fits into what is left, down to the least that is of use.
#[test]
fn a_reply_is_as_long_as_what_is_left_allows() {
    let whole = Amounts { tokens: 48 + 16_000, ..Amounts::STEP };
    let with = |budget: Limit| {
        let mut spec = priced(budget, Limit::NONE);
        spec.model.output_tokens_max = 16_000;
        spec.model.context_tokens = 200_000;
        spec
    };
    let tokens = |tokens| Limit { tokens: Some(tokens), ..Limit::NONE };
    let (input, least) = (48 * 1_250, limits::OUTPUT_TOKENS_MIN);
    for (budget, output) in [
        (Limit::NONE, Some(16_000)),
        (tokens(whole.tokens), Some(16_000)),
        (tokens(whole.tokens - 1), Some(15_999)),
        (tokens(48 + least), Some(least)),
        (tokens(48 + least - 1), None),
        (money(input + 2_000 * 3_000), Some(3_000)),
        (money(input + 2_000 * 3_000 + 1_999), Some(3_000)),
        (money(input + 2_000 * least), Some(least)),
        (money(input + 2_000 * least - 1), None),
        (money(0), None),
    ] {
        let mut bench = Bench::with_task(with(budget));
        let Next::Perform(ids) = bench.run() else {
            assert_eq!(output, None, "{budget:?}");
            let Shortage { measure, needed, left } = Shortage::of(&bench.state).unwrap();
            assert_eq!(Some(left), budget.of(measure));
            let enough = match measure {
                Measure::Money => money(needed),
                _ => tokens(needed),
            };
            let mut bench = Bench::with_task(with(enough));
            assert!(matches!(bench.run(), Next::Perform(_)), "what is needed is enough");
            continue;
        };
        let (work, reserved) = (Work::AskModel, bench.state.reserved_for(ids[0]));
        let asked = bench.state.output_tokens_max(&work);
        assert_eq!((Some(asked), reserved.tokens), (output, 48 + asked), "{budget:?}");
        assert!(reserved.fits(budget) && Shortage::of(&bench.state).is_none());
    }
}

/// A state, and the start that it leads to.
fn about_to_start(mut bench: Bench) -> (State, Event) {
    bench.flying();
    let started = bench.journal.pop().unwrap().event;
    assert!(matches!(started, Event::Started { .. }), "{started:?}");
    let fold = |state: State, record: &Record| state.apply(record);
    (bench.journal.iter().fold(State::default(), fold), started)
}

fn reserved(started: &Event) -> Amounts {
    let Event::Started { reserved, .. } = started else { panic!("{started:?}") };
    *reserved
}

/// As where the session's own budget leaves that much.
#[test]
fn a_reply_is_as_long_as_accounts_have_room_for() {
    let tokens = |tokens| Limit { tokens: Some(tokens), ..Limit::NONE };
    let (input, least) = (48 * 1_250, limits::OUTPUT_TOKENS_MIN);
    for (charged_max, output) in [
        (tokens(48 + 15_999), Some(15_999)),
        (tokens(48 + least), Some(least)),
        (tokens(48 + least - 1), None),
        (money(input + 2_000 * 3_000 + 1_999), Some(3_000)),
        (money(input + 2_000 * least - 1), None),
        (tokens(48 + 4_000).and(money(input + 2_000 * 3_000)), Some(3_000)),
        (Limit { steps: Some(0), ..Limit::NONE }, None),
        // What there is room for was not refused, and is not asked for a second time.
        (tokens(48 + 16_000), None),
    ] {
        let mut spec = priced(Limit::NONE, Limit::NONE);
        spec.model.output_tokens_max = 16_000;
        spec.model.context_tokens = 200_000;
        let (state, started) = about_to_start(Bench::with_task(spec));
        let smaller = shrunk(&state, &started, charged_max, 0);
        assert_eq!(smaller.is_some(), output.is_some(), "{charged_max:?}");
        let Some(event) = smaller else { continue };
        assert!(reserved(&event).fits(charged_max), "{charged_max:?}: {event:?}");
        // From the journal alone.
        let record = Record { seq: state.seq().next(), at_ms: 0, event };
        let state = state.apply(&record);
        assert_eq!(Some(state.output_tokens_max(&Work::AskModel)), output, "{charged_max:?}");
    }
}

#[test]
fn a_command_has_as_much_time_as_accounts_have_room_for() {
    let wall = |ms| Limit { wall_ms: Some(ms), ..Limit::NONE };
    let cpu = |ms| Limit { cpu_ms: Some(ms), ..Limit::NONE };
    for (room, command_ms) in [
        (wall(5_000), Some(3_000)),
        (wall(3_000), Some(1_000)),
        (wall(2_999), None),
        (cpu(2_000), Some(2_000)),
        (cpu(1_499), None),
    ] {
        let mut bench = Bench::with_task(priced(Limit::NONE, Limit::NONE));
        bench.reply(reply(vec![call("a", "bash", r#"{"timeout":4000}"#)]));
        bench.settle(sandbox("g1"));
        let (state, started) = about_to_start(bench);
        let smaller = shrunk(&state, &started, room.plus(state.charged()), 0);
        assert_eq!(smaller.is_some(), command_ms.is_some(), "{room:?}");
        let Some(event) = smaller else { continue };
        let Event::Started { effect, .. } = event else { panic!("{event:?}") };
        let record = Record { seq: state.seq().next(), at_ms: 0, event };
        let state = state.apply(&record);
        assert_eq!(command_ms_max(&state, effect), command_ms, "{room:?}");
    }
}

/// The lost attempt stays charged, and the next one is as long as that was at the least.
#[test]
fn what_is_begun_again_is_as_long_as_accounts_have_room_for() {
    let whole = 48 + 2_000;
    for (tokens, wall_ms, again) in [
        (2 * whole, 3_604_999, Some(3_599_999)),
        (2 * whole, 5_001, Some(1)),
        (2 * whole, 5_000, None),
        (2 * whole - 1, 3_604_999, None),
    ] {
        let mut spec = priced(Limit::NONE, Limit::NONE);
        spec.model.output_tokens_max = 2_000;
        let mut bench = Bench::with_task(spec);
        bench.flying();
        bench.now_ms += 5_000;
        let [Recover::Again(started)] = &bench.crash()[..] else { panic!("it is begun again") };
        let room = Limit { tokens: Some(tokens), wall_ms: Some(wall_ms), ..Limit::NONE };
        let smaller = shrunk(&bench.state, started, room, bench.now_ms);
        assert_eq!(smaller.map(|event| reserved(&event).wall_ms), again, "{room:?}");
    }
}

/// Whoever began a call before may live, and its reply is as long as it was let be then.
#[test]
fn what_is_begun_again_is_given_no_less_than_before() {
    let whole = 48 + 2_000;
    for (tokens, again) in [(2 * whole, true), (2 * whole - 1, false)] {
        let limit = Limit { tokens: Some(tokens), ..Limit::NONE };
        let mut spec = priced(limit, Limit::NONE);
        spec.model.output_tokens_max = 2_000;
        let mut bench = Bench::with_task(spec);
        let id = bench.flying()[0];
        assert_eq!(bench.state.reserved_for(id).tokens, whole);
        match &bench.crash()[..] {
            [Recover::Again(started)] if again => {
                bench.append(started.clone());
                assert_eq!(bench.state.reserved_for(id).tokens, whole);
            }
            [Recover::Over(_)] if !again => {}
            other => panic!("{tokens}: {other:?}"),
        }
    }
}

/// A command is killed earlier where less time is left, and not refused.
#[test]
fn a_command_has_as_much_time_as_is_left() {
    let wall = |ms| Limit { wall_ms: Some(ms), ..Limit::NONE };
    let cpu = |ms| Limit { cpu_ms: Some(ms), ..Limit::NONE };
    // Half a processor; two seconds until the last of its processes is dead.
    for (budget, command_ms) in [
        (Limit::NONE, Some(4_000)),
        (wall(6_000), Some(4_000)),
        (wall(5_000), Some(3_000)),
        (wall(3_000), Some(1_000)),
        (wall(2_999), None),
        (cpu(3_000), Some(4_000)),
        (cpu(2_000), Some(2_000)),
        (cpu(1_499), None),
    ] {
        let mut bench = Bench::with_task(priced(budget, Limit::NONE));
        bench.reply(reply(vec![call("a", "bash", r#"{"timeout":4000}"#)]));
        bench.settle(sandbox("g1"));
        let Next::Perform(ids) = bench.run() else {
            assert_eq!(command_ms, None, "{budget:?}");
            let needed = Shortage::of(&bench.state).unwrap();
            let least = if budget.cpu_ms.is_some() { 1_500 } else { 3_000 };
            assert_eq!((Some(needed.left), needed.needed), (budget.of(needed.measure), least));
            continue;
        };
        assert_eq!(command_ms_max(&bench.state, ids[0]), command_ms, "{budget:?}");
        assert!(bench.state.reserved_for(ids[0]).fits(budget), "{budget:?}");
    }
}

#[test]
fn a_model_call_has_no_more_time_than_is_left() {
    let budget = Limit { wall_ms: Some(5_000), ..Limit::NONE };
    let mut bench = Bench::with_task(priced(budget, Limit::NONE));
    let id = bench.flying()[0];
    assert_eq!(bench.state.reserved_for(id).wall_ms, 5_000);
}

#[test]
fn money_without_a_price_is_an_error_and_not_zero() {
    let limit = money(u64::MAX - 1);
    for (budget, soft) in [(limit, Limit::NONE), (Limit::NONE, limit)] {
        let mut bench = Bench::with_task(Spec { budget, soft, ..spec() });
        expect![[r#"
            said "Do it."
            withheld: the money of the session is limited, and the model's price is not known
            ended OutOfBudget(Shortfall { account: None, cause: Unpriced })
            park Message
        "#]]
        .assert_eq(&bench.log());
    }
}

#[test]
fn a_soft_limit_asks_once_and_then_the_hard_one_holds() {
    let mut bench = Bench::with_task(priced(money(600_000), money(100_000)));
    let Park::Answers(ids) = bench.park() else { panic!("nobody is asked") };
    let asked = bench.state.effect(ids[0]).unwrap().asked.clone().unwrap();
    assert_eq!(asked.rules, [Shortfall::RULE]);
    assert_eq!(asked.budget, Some(Shortfall::of_session(Cause::Soft(Measure::Money))));
    bench.append(answered(ids[0], approved()));
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        withheld: the next step crosses the soft limit on the money of the session
        answered ask_model: Approved { rule_set: RuleSetHash([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), seen: None, standing: None }
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn a_denial_ends_the_turn_and_resumed_it_asks_again() {
    let mut bench = Bench::with_task(priced(money(600_000), money(100_000)));
    let Park::Answers(ids) = bench.park() else { panic!("nobody is asked") };
    bench.append(answered(ids[0], denied()));
    assert_eq!(bench.park(), Park::Message);
    let soft = Shortfall::of_session(Cause::Soft(Measure::Money));
    assert_eq!(bench.state.ended(), Some(&TurnEnd::OutOfBudget(soft)));
    let by = || "person:local".to_owned();
    bench.append(Event::Resumed { by: by(), budget: None, turn: None, model: None, network: None });
    assert_eq!(bench.park(), Park::Answers(ids));
    // Who raises the budget has said yes, and who lowers it has not.
    for (budget, starts) in [(500_000, false), (500_000, false), (900_000, true)] {
        bench.append(Event::Interrupted { by: by() });
        assert_eq!(bench.park(), Park::Message);
        bench.append(Event::Resumed {
            by: by(),
            budget: Some(money(budget)),
            turn: None,
            model: None,
            network: None,
        });
        assert_eq!(matches!(bench.run(), Next::Perform(_)), starts, "{budget}");
    }
}

#[test]
fn one_yes_is_for_all_that_the_level_asks_about_and_for_no_other_level() {
    let mut bench = Bench::with_task(priced(Limit::NONE, Limit::NONE));
    let calls = ["a", "b"].map(|id| call(id, "recall", &format!(r#"{{"n":"{id}"}}"#)));
    bench.reply(reply(calls.to_vec()));
    // What an account says comes instead of the start.
    let mut again = Bench::with_task(priced(Limit::NONE, Limit::NONE));
    let calls = bench.flying();
    for record in &bench.journal[2..bench.journal.len() - 2] {
        again.append(record.event.clone());
    }
    let (account, cause) = (Some(AccountId::organisation()), Cause::Soft(Measure::Tokens));
    for effect in &calls {
        let (account, cause) = (account.clone(), cause.clone());
        let shortfall = Shortfall { account, cause };
        again.append(Event::Withheld { effect: *effect, shortfall });
    }
    assert_eq!(again.park(), Park::Answers(calls.clone()));
    again.append(answered(calls[1], approved()));
    assert_eq!(again.flying(), calls);
    assert!(again.state.soft_lifted_ms("org").is_some());
    assert!(again.state.soft_lifted_ms("session").is_none());
}

#[test]
fn an_account_without_room_ends_the_turn_when_what_runs_is_over() {
    let mut bench = Bench::with_task(priced(Limit::NONE, Limit::NONE));
    let id = {
        let by = bench.flying();
        by[0]
    };
    let shortfall = || Shortfall {
        account: Some(AccountId::user("person:ada")),
        cause: Cause::Stopped { reason: "enough".to_owned() },
    };
    // Said of what had started, it was lost in a crash: it stays charged, and the cause is told.
    let reserved = bench.state.reserved_for(id);
    bench.now_ms += reserved.wall_ms;
    bench.append(Event::Withheld { effect: id, shortfall: shortfall() });
    assert_eq!((bench.state.spent(), bench.state.reserved()), (reserved, Amounts::default()));
    assert_eq!(bench.park(), Park::Message);
    assert_eq!(bench.state.out_of_budget(), Some(&shortfall()));
    bench.append(Event::Resumed {
        by: "p".to_owned(),
        budget: None,
        turn: None,
        model: None,
        network: None,
    });
    assert_eq!(bench.flying(), [id]);
    let mut bench = Bench::with_task(priced(Limit::NONE, Limit::NONE));
    bench.flying();
    let (head, started) = bench.journal.split_at(bench.journal.len() - 1);
    assert!(matches!(started[0].event, Event::Started { .. }));
    let mut again = Bench::with_task(priced(Limit::NONE, Limit::NONE));
    head[2..].iter().for_each(|record| again.append(record.event.clone()));
    again.append(Event::Withheld { effect: id, shortfall: shortfall() });
    assert_eq!(again.park(), Park::Message);
    assert_eq!(again.state.out_of_budget(), Some(&shortfall()));
    again.append(Event::Resumed {
        by: "p".to_owned(),
        budget: None,
        turn: None,
        model: None,
        network: None,
    });
    assert_eq!(again.flying(), [id]);
}

#[test]
fn whom_a_session_is_charged_to() {
    let names = |spec: Spec| {
        let bench = Bench::new(spec);
        let names = bench.state.accounts();
        names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(spec()), ["org", "user:local"], "also one of before there were accounts");
}

/// What a parent reserves for a child is all that the child may spend.
#[test]
fn a_reservation_becomes_a_limit_of_everything() {
    let reserved =
        Amounts { steps: 3, tokens: 9, money_nanos: 7, wall_ms: 5, cpu_ms: 1, egress_bytes: 2 };
    let limit = Limit::from(reserved);
    assert!(reserved.fits(limit));
    for measure in Measure::ALL {
        assert_eq!(limit.of(measure), Some(reserved.of(measure)));
    }
    let none = Limit::from(Amounts::default());
    assert!(!Amounts { cpu_ms: 1, ..Amounts::default() }.fits(none));
}
