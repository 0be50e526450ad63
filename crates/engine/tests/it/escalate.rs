//! Those to whom a rule escalates approve from the time on that was set, and not before.

use outrigger_agent::{Answer, Event, Park, Seq, TurnEnd};
use outrigger_engine::{AnswerRequest, Engine, Error};
use outrigger_policy::{Directory, RulePart, RuleSet, Source};
use outrigger_store::{Journal, SessionSummary};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::Notify;

use crate::model::{Step, done};
use crate::world::{World, drive, results, session};

const RULES: &str = r#"
@id("all") permit (principal, action, resource);
@id("looks") @approvable("person:bob") @escalates("group:leads")
forbid (principal, action == Action::"read_files", resource);
"#;

const HOUR: Duration = Duration::from_secs(3_600);

fn rules() -> RuleSet {
    let leads = BTreeSet::from(["person:ada".parse().unwrap()]);
    let groups = BTreeMap::from([("leads".to_owned(), leads)]);
    let directory = Directory { groups, ..Directory::default() };
    let (name, text) = ("rules".to_owned(), RULES.to_owned());
    RuleSet::new(&[Source { name, text, part: RulePart::Rules }], directory).unwrap()
}

/// A session that waits, and the effect.
async fn asked(world: &mut World) -> (Engine, Seq) {
    world.rules = rules();
    world.approvals.escalate_ms = Some(u64::try_from(HOUR.as_millis()).unwrap());
    let look = Step::of([("read_file", json!({ "file_path": "/workspace/seed" }))]);
    let engine = world.engine(&[look, done()]);
    let id = world.open(&engine, "s1").await;
    let park = outrigger_engine::drive(&engine, &id, &Notify::new()).await.unwrap();
    let Park::Answers(asked) = park else { panic!("nobody is asked: {park:?}") };
    (engine, asked[0])
}

async fn approve(engine: &Engine, effect: Seq, by: &str) -> Result<(), Error> {
    let (by, rule_set) = (by.to_owned(), rules().hash());
    let answer = Answer::Approved { rule_set, seen: None, standing: None };
    let given = AnswerRequest { effect, by, arguments: None, asked: None, answer };
    engine.answer(&session("s1"), given).await
}

#[tokio::test(start_paused = true)]
async fn it_takes_its_time_and_then_counts() {
    let mut world = World::new().await;
    let (engine, effect) = asked(&mut world).await;
    tokio::time::advance(HOUR - Duration::from_millis(1)).await;
    let error = approve(&engine, effect, "person:ada").await.unwrap_err();
    let said = "person:ada may not approve this; the rules ask person:bob";
    assert_eq!(error.to_string(), said);
    tokio::time::advance(Duration::from_millis(1)).await;
    let error = approve(&engine, effect, "person:eve").await.unwrap_err();
    let said = "person:eve may not approve this; the rules ask person:bob, group:leads";
    assert_eq!(error.to_string(), said);
    approve(&engine, effect, "person:ada").await.unwrap();
    drive(&engine, &session("s1")).await;
    let state = engine.state(&session("s1")).await.unwrap();
    assert_eq!(state.ended(), Some(&TurnEnd::Answered));
    assert!(results(&state).concat().contains("seed"), "{:?}", results(&state));
}

/// What is in the journal is no proof that somebody was entitled when they answered.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_given_too_early_is_worth_nothing_later() {
    let mut world = World::new().await;
    let (engine, effect) = asked(&mut world).await;
    let id = session("s1");
    let state = engine.state(&id).await.unwrap();
    let (by, rule_set) = ("person:ada".to_owned(), rules().hash());
    let answer = Answer::Approved { rule_set, seen: None, standing: None };
    tokio::time::advance(HOUR / 2).await;
    let early = Event::Answered { effect, by, arguments: None, answer };
    let (now_ms, summary) = (world.now_ms(), SessionSummary::default());
    world.journal.append(&id, state.seq(), now_ms, &[early], summary).await.unwrap();
    tokio::time::advance(HOUR / 2).await;
    let park = outrigger_engine::drive(&engine, &id, &Notify::new()).await.unwrap();
    assert_eq!(park, Park::Answers(vec![effect]), "it is asked again");
    approve(&engine, effect, "person:ada").await.unwrap();
    drive(&engine, &id).await;
    assert!(!results(&engine.state(&id).await.unwrap()).is_empty());
}
