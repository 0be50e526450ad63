//! Interruption and cancellation: what runs is stopped, nothing else starts.

use expect_test::expect;
use outrigger_agent::{Event, Failure, ModelFault, Next, Outcome, Park, Recover, Spec, TurnLimits};

use crate::bench::Bench;
use crate::build::{answer, call, done, output, reply, said, said_after_turn, sandbox, spec};

fn interrupted() -> Event {
    Event::Interrupted { by: "person:local".to_owned() }
}

fn cancelled() -> Event {
    Event::Cancelled { by: "person:local".to_owned(), reason: "enough".to_owned() }
}

fn resumed() -> Event {
    Event::Resumed {
        by: "person:local".to_owned(),
        budget: None,
        turn: None,
        model: None,
        network: None,
    }
}

/// A session with one command in flight and another waiting for it.
fn commanding() -> Bench {
    let mut bench = Bench::with_task(spec());
    let calls = vec![call("a", "bash", "{}"), call("b", "bash", r#"{"n":1}"#)];
    bench.reply(reply(calls)).settle(sandbox("g1"));
    bench.log();
    bench
}

#[test]
fn an_interrupted_turn_leaves_a_whole_conversation_and_the_session_goes_on() {
    let mut bench = commanding();
    bench.append(interrupted());
    let Next::Stop(ids) = bench.run() else { panic!("the command is not stopped") };
    bench.settle_this(ids[0], Outcome::Cancelled);
    expect![[r#"
        interrupted
        settled call b bash: cancelled
        settled call a bash: cancelled
        ended Interrupted
        park Message
    "#]]
    .assert_eq(&bench.log());
    bench.append(said("Do something else."));
    bench.reply(answer("Did."));
    expect![[r#"
        message "Do it."
        reply "" [a=bash b=bash]
        result a Unknown "Stopped by a person while it ran. It may have happened fully, partly or not at all."
        result b Denied "Not performed: a person stopped the turn."
        message "Do something else."
        reply "Did." []
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn a_reply_that_arrives_after_the_interruption_gets_results_too() {
    let mut bench = Bench::with_task(spec());
    let ids = bench.flying();
    bench.append(interrupted());
    bench.settle_this(ids[0], done(reply(vec![call("a", "bash", "{}")])));
    assert_eq!(bench.park(), Park::Message);
    expect![[r#"
        message "Do it."
        reply "" [a=bash]
        result a Denied "Not performed: a person stopped the turn."
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn what_is_said_right_after_an_interruption_begins_the_next_turn() {
    let mut bench = commanding();
    bench.append(interrupted());
    bench.append(said("Rather this."));
    bench.settle(Outcome::Cancelled);
    bench.reply(answer("This."));
    expect![[r#"
        interrupted
        said "Rather this."
        settled call b bash: cancelled
        settled call a bash: cancelled
        ended Interrupted
        started ask_model (attempt 1, 1 steps, 246 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn what_was_said_before_an_interruption_waits_for_the_next_message() {
    let mut bench = commanding();
    bench.append(said("Hurry."));
    bench.append(interrupted());
    bench.settle(Outcome::Cancelled);
    assert_eq!(bench.park(), Park::Message);
    bench.append(said("Go on."));
    bench.reply(answer("Done."));
    expect![[r#"
        message "Do it."
        reply "" [a=bash b=bash]
        result a Unknown "Stopped by a person while it ran. It may have happened fully, partly or not at all."
        result b Denied "Not performed: a person stopped the turn."
        message "Hurry."
        message "Go on."
        reply "Done." []
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn a_cancelled_session_starts_nothing_whatever_comes() {
    let mut bench = commanding();
    bench.append(cancelled());
    bench.append(said("Wait!"));
    bench.append(resumed());
    assert!(matches!(bench.run(), Next::Stop(_)), "a resumption does not forget what runs");
    bench.settle(output("it came to its end"));
    bench.append(resumed());
    expect![[r#"
        cancelled
        said "Wait!"
        resumed
        settled call b bash: cancelled
        settled call a bash: done
        ended Cancelled
        resumed
        park Cancelled
    "#]]
    .assert_eq(&bench.log());
    assert!(bench.state.is_cancelled());
}

#[test]
fn after_a_crash_what_is_being_stopped_is_not_done_again() {
    for stop in [interrupted(), cancelled()] {
        let mut bench = Bench::with_task(spec());
        let ids = bench.flying();
        bench.append(stop);
        let reserved = bench.state.reserved_for(ids[0]);
        bench.now_ms += reserved.wall_ms;
        let how = bench.crash();
        let [Recover::Over(Event::Settled { outcome: Outcome::Cancelled, spent, .. })] = &how[..]
        else {
            panic!("{how:?}");
        };
        assert_eq!(*spent, reserved, "the lost attempt stays charged");
    }
}

#[test]
fn an_interrupt_is_not_forgotten_over_a_failure() {
    let mut bench = Bench::with_task(spec());
    let ids = bench.flying();
    bench.log();
    bench.append(interrupted());
    let (fault, detail) = (ModelFault::Unavailable, "gone".to_owned());
    bench.settle_this(ids[0], Outcome::Failed(Failure::Model { fault, detail, retry_at_ms: None }));
    assert_eq!(bench.park(), Park::Message);
    expect![[r#"
        interrupted
        settled ask_model: Model { fault: Unavailable, detail: "gone", retry_at_ms: None }
        ended Interrupted
        park Message
    "#]]
    .assert_eq(&bench.log());
}

/// What a provider says that takes no more requests, with when the turn asks again.
fn rate_limited(bench: &Bench, asked_ms: u64) -> (Option<u64>, Outcome) {
    let retry_at_ms = bench.state.retry_at_ms(asked_ms, bench.now_ms);
    let (fault, detail) = (ModelFault::RateLimited, "slow down".to_owned());
    (retry_at_ms, Outcome::Failed(Failure::Model { fault, detail, retry_at_ms }))
}

fn patient() -> Spec {
    let day = 86_400_000;
    Spec { turn: TurnLimits { steps_max: 100, wall_ms_max: day }, ..spec() }
}

#[test]
fn a_turn_waits_for_a_provider_that_takes_no_more_requests() {
    let mut bench = Bench::with_task(patient());
    let mut waits = Vec::new();
    for asked_ms in [0, 0, 0, 7_200_000, 0, 0, 0] {
        let id = bench.flying()[0];
        let (retry_at_ms, outcome) = rate_limited(&bench, asked_ms);
        let until_ms = retry_at_ms.expect("the turn has time");
        waits.push((until_ms - bench.now_ms) / 1_000);
        bench.settle_this(id, outcome);
        assert_eq!(bench.run(), Next::Wait(until_ms));
        // Neither a message nor a crash makes it ask earlier.
        bench.append(said("And?"));
        assert_eq!(bench.crash(), []);
        bench.now_ms = until_ms - 1;
        assert_eq!(bench.run(), Next::Wait(until_ms));
        bench.now_ms = until_ms;
    }
    assert_eq!(waits, [60, 120, 240, 7_200, 960, 1_920, 3_600]);
    bench.reply(answer("Done."));
    assert_eq!(bench.park(), Park::Message);
    bench.append(said("More."));
    bench.flying();
    assert_eq!(bench.state.retry_at_ms(0, bench.now_ms), Some(bench.now_ms + 60_000));
}

#[test]
fn who_waits_for_a_provider_can_be_stopped_and_asks_at_once_when_resumed() {
    let mut bench = Bench::with_task(patient());
    let id = bench.flying()[0];
    let (_, outcome) = rate_limited(&bench, 600_000);
    bench.settle_this(id, outcome);
    bench.append(interrupted());
    assert_eq!(bench.park(), Park::Message);
    bench.append(resumed());
    assert_eq!(bench.flying().len(), 1);
}

#[test]
fn a_turn_without_the_time_to_wait_ends() {
    let mut bench = Bench::with_task(spec());
    let id = bench.flying()[0];
    let (retry_at_ms, outcome) = rate_limited(&bench, 60_001);
    assert_eq!(retry_at_ms, None, "it has a minute");
    bench.log();
    bench.settle_this(id, outcome);
    expect![[r#"
        settled ask_model: Model { fault: RateLimited, detail: "slow down", retry_at_ms: None }
        ended ModelFailed { fault: RateLimited, detail: "slow down" }
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn what_is_said_for_after_a_turn_begins_the_next_one() {
    let mut bench = commanding();
    bench.append(said_after_turn("Then the docs."));
    bench.append(said("In small steps."));
    let ids = bench.flying();
    bench.settle_this(ids[0], output("did"));
    bench.settle(output("did"));
    bench.reply(answer("Done."));
    bench.reply(answer("And the docs."));
    assert_eq!(bench.park(), Park::Message);
    expect![[r#"
        message "Do it."
        reply "" [a=bash b=bash]
        result a Ok "did"
        result b Ok "did"
        message "In small steps."
        reply "Done." []
        message "Then the docs."
        reply "And the docs." []
    "#]]
    .assert_eq(&bench.conversation());
    // Where nothing runs there is nothing to wait for.
    bench.append(said_after_turn("And now?"));
    bench.reply(answer("Nothing."));
    assert_eq!(bench.park(), Park::Message);
}

#[test]
fn a_turn_that_is_stopped_is_followed_by_what_waits() {
    let mut bench = commanding();
    bench.append(said_after_turn("Then the docs."));
    bench.append(interrupted());
    let Next::Stop(ids) = bench.run() else { panic!("the command is not stopped") };
    bench.settle_this(ids[0], Outcome::Cancelled);
    bench.reply(answer("The docs."));
    assert_eq!(bench.park(), Park::Message);
    let last = bench.conversation();
    assert!(last.ends_with("message \"Then the docs.\"\nreply \"The docs.\" []\n"), "{last}");
}
