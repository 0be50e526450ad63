//! A person stops a turn while a driver that nobody hears of is about to begin a command.

use outrigger_agent::{Concurrency, Event, Outcome, Raw, Record, Seq, ToolSpec};
use outrigger_engine::Engine;
use outrigger_sandbox::{Backend, Command, End, ExecId, Execute, LifecycleState};
use outrigger_store::{Journal, SessionSummary, load_all};
use outrigger_tools::outside::{DeclaredEffect, Offer, ToolDescription};

use crate::model::{Step, call, done, run};
use crate::world::{World, drive, next_turn, session, work};

/// What the model says: two turns, the second with a command that shows.
fn steps() -> Vec<Step> {
    vec![run("true"), done(), run("append late x"), done()]
}

async fn records(world: &World) -> Vec<Record> {
    let mut records = Vec::new();
    load_all(&world.journal, &session("s1"), Seq(0), |record| records.push(record)).await.unwrap();
    records
}

/// A session with a cold sandbox, whose last event says that a command is about to be
/// begun in it; nobody has begun it. Gives the command's exec id.
async fn about_to_begin(steps: &[Step], tools: &[ToolSpec]) -> (World, Engine, ExecId) {
    let world = async || World::new().await.having(tools);
    let ahead = world().await;
    let (engine, id) = ahead.played(steps).await;
    next_turn(&engine, &id).await;
    let ahead = records(&ahead).await;

    let world = world().await;
    let (engine, id) = world.played(steps).await;
    assert_eq!(outrigger_engine::suspend(&engine, &id).await.unwrap(), []);
    let known = records(&world).await.len();
    let begins = |record: &Record| match &record.event {
        Event::Started { place: Some(place), .. } => Some(place.exec.clone()),
        _ => None,
    };
    let mut exec = None;
    for record in ahead.into_iter().skip(known) {
        exec = begins(&record);
        let (after, summary) = (Seq(record.seq.0 - 1), SessionSummary::default());
        world.journal.append(&id, after, record.at_ms, &[record.event], summary).await.unwrap();
        if exec.is_some() {
            break;
        }
    }
    (world, engine, ExecId::new(exec.unwrap()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_cold_sandbox_refuses_what_was_stopped_before_it_was_begun() {
    let (world, engine, exec) = about_to_begin(&steps(), &[]).await;
    let id = session("s1");
    let listed = Backend::list(&world.spy).await.unwrap();
    assert_eq!(listed[0].state, LifecycleState::Cold);
    engine.interrupt(&id, "person:test").await.unwrap();
    drive(&engine, &id).await;
    let stopped = |record: &Record| {
        matches!(&record.event, Event::Settled { outcome: Outcome::Cancelled, .. })
    };
    assert!(records(&world).await.iter().any(stopped));

    // The driver that was about to begin it goes on, and believes that it may.
    let sandbox = world.spy.find(&work(&id)).await.unwrap().unwrap();
    let late = Execute::new(exec, Command::Shell("append late x".to_owned()));
    let outcome = sandbox.execute(late, &()).await.unwrap();
    assert_eq!(outcome.end, End::Killed);
    assert_eq!(world.spy.inner.peek(&work(&id), "/workspace/late"), None);
}

/// A tool outside whose server is a program in the sandbox.
fn outside() -> ToolSpec {
    let schema = Raw::new("{\"type\":\"object\"}".to_owned()).unwrap();
    let (tool, description) = ("look".to_owned(), "Looks.".to_owned());
    let offer = Offer {
        server: "aside",
        described: &ToolDescription { tool, description, schema },
        changed: None,
        declared: DeclaredEffect::ReadOnly,
        concurrency: Concurrency::Exclusive,
        sandbox: Some("work"),
        timeout_ms: 60_000,
    };
    offer.spec().unwrap()
}

/// Each attempt at a call of a program outside runs by a name of its own.
#[tokio::test(start_paused = true)]
async fn every_attempt_at_a_program_outside_is_stopped() {
    let steps = [run("true"), done(), call("mcp__aside__look", serde_json::json!({})), done()];
    let (world, engine, exec) = about_to_begin(&steps, &[outside()]).await;
    let id = session("s1");
    let last = records(&world).await.pop().unwrap();
    let mut again = last.event.clone();
    let Event::Started { attempt, .. } = &mut again else { panic!("{last:?}") };
    *attempt = 3;
    let summary = SessionSummary::default();
    world.journal.append(&id, last.seq, last.at_ms, &[again], summary).await.unwrap();
    engine.interrupt(&id, "person:test").await.unwrap();
    drive(&engine, &id).await;
    let sandbox = world.spy.find(&work(&id)).await.unwrap().unwrap();
    for name in [exec.to_string(), format!("{exec}.2"), format!("{exec}.3")] {
        let exec = ExecId::new(name.clone()).unwrap();
        let late = Execute::new(exec, Command::Shell("append late x".to_owned()));
        let outcome = sandbox.execute(late, &()).await.unwrap();
        assert_eq!(outcome.end, End::Killed, "{name}");
    }
}
