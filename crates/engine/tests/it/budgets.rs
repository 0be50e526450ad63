//! Accounts that have no room: what began is not begun again, and each is told its own cause.

use outrigger_agent::{
    AccountId, Answer, Cause, Event, Limit, Measure, Park, Record, Seq, Shortfall, TurnEnd,
    Unanswerable, limits,
};
use outrigger_engine::{AnswerRequest, Engine, Error, ResumeChange};
use outrigger_policy::RuleSet;
use outrigger_store::{AccountStop, Accounts, Terms, TermsChange, load_all};
use serde_json::json;
use std::time::Duration;
use tokio::sync::Notify;

use crate::model::{Step, done};
use crate::world::{World, drive, session};

/// Each is shared, is done again after a crash, and reserves a step.
fn look(count: usize) -> Step {
    let path = |number| json!({ "file_path": format!("/workspace/{number}") });
    Step::of((0..count).map(|number| ("read_file", path(number))))
}

async fn set(world: &World, change: TermsChange) {
    world.journal.set_terms(&AccountId::organisation(), change).await.unwrap();
}

fn steps(steps: u64) -> Limit {
    Limit { steps: Some(steps), ..Limit::NONE }
}

fn hard(limit: Limit) -> TermsChange {
    TermsChange::Set(Terms { limit, ..Terms::default() })
}

fn soft(soft: Limit) -> TermsChange {
    TermsChange::Set(Terms { soft, ..Terms::default() })
}

fn stop() -> TermsChange {
    TermsChange::Stop(AccountStop { by: "p".to_owned(), reason: "enough".to_owned(), at_ms: 0 })
}

fn of_org(cause: Cause) -> Shortfall {
    Shortfall { account: Some(AccountId::organisation()), cause }
}

async fn records(world: &World) -> Vec<Record> {
    let mut records = Vec::new();
    load_all(&world.journal, &session("s1"), Seq(0), |record| records.push(record)).await.unwrap();
    records
}

fn again(records: &[Record]) -> usize {
    let again = |record: &&Record| matches!(record.event, Event::Started { attempt: 2.., .. });
    records.iter().filter(again).count()
}

#[tokio::test(start_paused = true)]
async fn what_began_before_an_account_was_full_is_not_begun_again() {
    for room in 0..4 {
        let world = World::new().await;
        set(&world, hard(steps(1 + room))).await;
        let (engine, session) = world.played(&[look(3), done()]).await;
        let state = engine.state(&session).await.unwrap();
        let full = TurnEnd::OutOfBudget(of_org(Cause::Limit(Measure::Steps)));
        assert_eq!(state.ended(), Some(&full), "{room}");
        assert_eq!((state.spent().steps, again(&records(&world).await)), (1 + room, 0), "{room}");
        let charged = world.journal.charged(&session).await.unwrap().unwrap();
        assert_eq!((charged.spent, charged.reserved.steps), (state.spent(), 0));
        // What was withheld is tried again when there is room, and nothing else is.
        set(&world, hard(steps(100))).await;
        engine.resume(&session, "p", ResumeChange::default()).await.unwrap();
        drive(&engine, &session).await;
        let state = engine.state(&session).await.unwrap();
        assert_eq!((state.ended(), state.spent().steps), (Some(&TurnEnd::Answered), 5), "{room}");
    }
}

/// A session whose driver was lost while the model was thinking.
async fn lost(world: &World) -> Engine {
    let steps = [done().after(10_000)];
    let engine = world.engine(&steps);
    let session = world.open(&engine, "s1").await;
    let poke = Notify::new();
    let driving = outrigger_engine::drive(&engine, &session, &poke);
    let cut = tokio::time::timeout(Duration::from_millis(1_000), driving).await;
    assert!(cut.is_err(), "it was still thinking");
    drop(engine);
    world.engine(&steps)
}

/// Two accounts leave less than is usual, and one refusal says what both do.
#[tokio::test(start_paused = true)]
async fn a_start_is_as_large_as_all_accounts_have_room_for() {
    let world = World::new().await;
    let tokens = Limit { tokens: Some(2_300), ..Limit::NONE };
    set(&world, hard(tokens)).await;
    let wall = hard(Limit { wall_ms: Some(30_000), ..Limit::NONE });
    world.journal.set_terms(&AccountId::user("person:test"), wall).await.unwrap();
    let (engine, id) = world.played(&[done()]).await;
    let state = engine.state(&id).await.unwrap();
    assert_eq!(state.ended(), Some(&TurnEnd::Answered));
    let records = records(&world).await;
    let withheld = |record: &Record| matches!(record.event, Event::Withheld { .. });
    assert!(!records.iter().any(withheld), "{records:?}");
    let started = records.iter().find_map(|record| match &record.event {
        Event::Started { reserved, .. } => Some(*reserved),
        _ => None,
    });
    let started = started.unwrap();
    assert_eq!((started.tokens, started.wall_ms), (2_300, 30_000));
}

/// The time that went by until it was found lost is charged, and the rest is for the next.
#[tokio::test(start_paused = true)]
async fn what_was_lost_is_begun_again_with_what_an_account_has_left() {
    let (world, id) = (World::new().await, session("s1"));
    let engine = lost(&world).await;
    let wall_ms = limits::MODEL_MS_MAX + 500;
    set(&world, hard(Limit { wall_ms: Some(wall_ms), ..Limit::NONE })).await;
    drive(&engine, &id).await;
    let state = engine.state(&id).await.unwrap();
    assert_eq!((state.ended(), state.spent().steps), (Some(&TurnEnd::Answered), 2));
    let again = records(&world).await.into_iter().find_map(|record| match record.event {
        Event::Started { attempt: 2, reserved, .. } => Some(reserved),
        _ => None,
    });
    let reserved_ms = again.unwrap().wall_ms;
    assert!((wall_ms - 2_000..limits::MODEL_MS_MAX).contains(&reserved_ms), "{reserved_ms}");
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_is_refused_with_its_own_cause() {
    let (world, id) = (World::new().await, session("s1"));
    let engine = lost(&world).await;
    set(&world, stop()).await;
    drive(&engine, &id).await;
    let state = engine.state(&id).await.unwrap();
    let stopped = of_org(Cause::Stopped { reason: "enough".to_owned() });
    assert_eq!(state.ended(), Some(&TurnEnd::OutOfBudget(stopped)));
    assert_eq!((state.spent().steps, state.reserved().steps), (1, 0), "the lost one is charged");
    let charged = world.journal.charged(&id).await.unwrap().unwrap();
    assert_eq!((charged.spent, charged.reserved.steps), (state.spent(), 0));

    let world = World::new().await;
    let engine = lost(&world).await;
    set(&world, soft(steps(1))).await;
    let park = outrigger_engine::drive(&engine, &id, &Notify::new()).await.unwrap();
    let Park::Answers(asked) = park else { panic!("nobody is asked: {park:?}") };
    let state = engine.state(&id).await.unwrap();
    let (_, effect, question) = state.asked().next().unwrap();
    assert_eq!(question.budget, Some(of_org(Cause::Soft(Measure::Steps))));
    let answer = Answer::Approved { rule_set: effect.judged.unwrap(), seen: None, standing: None };
    let by = "person:test".to_owned();
    let given = AnswerRequest { effect: asked[0], by, arguments: None, asked: None, answer };
    engine.answer(&id, given).await.unwrap();
    drive(&engine, &id).await;
    let state = engine.state(&id).await.unwrap();
    assert_eq!((state.ended(), state.spent().steps), (Some(&TurnEnd::Answered), 2));
}

const ASKS: &str = r#"
@id("all") permit (principal, action, resource);
@id("careful") @approvable("anyone") forbid (principal, action == Action::"read_files", resource);
"#;

#[tokio::test(start_paused = true)]
async fn a_yes_to_the_rules_is_none_to_a_budget() {
    let mut world = World::new().await;
    world.rules = RuleSet::from_cedar(ASKS).unwrap();
    set(&world, soft(steps(1))).await;
    let engine = world.engine(&[look(1), done()]);
    let id = world.open(&engine, "s1").await;
    let mut questions = Vec::new();
    for _ in 0..2 {
        let park = outrigger_engine::drive(&engine, &id, &Notify::new()).await.unwrap();
        assert!(matches!(park, Park::Answers(_)), "{park:?}");
        let state = engine.state(&id).await.unwrap();
        let (effect, _, asked) = state.asked().next().unwrap();
        questions.push(asked.clone());
        let yes = |asked: &outrigger_agent::ApprovalRequest| AnswerRequest {
            effect,
            by: "person:test".to_owned(),
            arguments: None,
            asked: Some(asked.clone()),
            answer: Answer::Approved { rule_set: asked.rule_set, seen: None, standing: None },
        };
        if let [stale, now] = &questions[..] {
            assert_eq!((stale.budget.is_some(), now.budget.is_some()), (false, true));
            let error = engine.answer(&id, yes(stale)).await.unwrap_err();
            let Error::Unanswerable { source, .. } = error else { panic!("{error}") };
            assert_eq!(source, Unanswerable::OtherQuestion);
        }
        engine.answer(&id, yes(asked)).await.unwrap();
    }
    drive(&engine, &id).await;
}

/// Three seconds of a call that may take half an hour.
#[tokio::test(start_paused = true)]
async fn what_a_person_stops_is_charged_with_what_it_took() {
    let wait = |tool: &str, arguments| crate::model::call(tool, arguments);
    let command = json!({ "command": "sleep 999", "timeout": 600_000 });
    for (steps, least_steps) in [
        (vec![done().after(1_800_000)], 1),
        (vec![wait("execute", command), done().after(1_800_000)], 2),
    ] {
        let mut world = World::new().await;
        world.budget = Limit { wall_ms: Some(1_800_000), ..Limit::NONE };
        let engine = world.engine(&steps);
        let id = world.open(&engine, "s1").await;
        let poke = Notify::new();
        let stopping = async {
            tokio::time::sleep(Duration::from_secs(3)).await; // poll: none; the clock is paused, this is a person
            engine.interrupt(&id, "person:test").await.unwrap();
            poke.notify_one();
        };
        let (park, ()) = tokio::join!(outrigger_engine::drive(&engine, &id, &poke), stopping);
        assert_eq!(park.unwrap(), Park::Message);
        let stopped =
            records(&world).await.into_iter().rev().find_map(|record| match record.event {
                Event::Settled { spent, estimated, outcome, .. } => {
                    Some((spent, estimated, outcome))
                }
                _ => None,
            });
        let (spent, estimated, outcome) = stopped.unwrap();
        let wall_ms = engine.state(&id).await.unwrap().spent().wall_ms;
        assert!((2_900..4_000).contains(&wall_ms), "{wall_ms} ms: {spent:?} {outcome:?}");
        let model_call = steps.len() == 1;
        assert_eq!(estimated, model_call, "{outcome:?}");
        assert!(spent.tokens < 5_000 && (spent.tokens > 0) == model_call, "{spent:?}");
        assert_eq!(engine.state(&id).await.unwrap().spent().steps, least_steps);
    }
}
