//! What no journal names is destroyed, and nothing else.

use outrigger_sandbox::{Backend, SandboxId, SnapshotId, Snapshots};
use outrigger_sandbox_testing::fake::Fake;
use std::time::Duration;

use crate::model::{done, run};
use crate::world::{World, session, work};

const HOUR_MS: u64 = 3_600_000;

#[tokio::test(start_paused = true)]
async fn only_what_is_old_and_nobodys_goes() {
    let world = World::new().await;
    let (engine, live) = world.played(&[run("append a 1"), done()]).await;
    assert_eq!(outrigger_engine::suspend(&engine, &live).await.unwrap(), []);
    engine.say(&live, crate::world::said("more")).await.unwrap();
    let ended = world.open(&engine, "s2").await;
    let make = async |name: &str| {
        let id = SandboxId::new(name).unwrap();
        world.spy.create(&id, &Fake::spec()).await.unwrap();
        id
    };
    for name in ["s2.work", "gone.work", "s1.other", "mine", "assistant.ann.work"] {
        make(name).await;
    }
    let keep = async |sandbox: &SandboxId, name: &str| {
        Snapshots::take(&world.spy, sandbox, &SnapshotId::new(name).unwrap()).await.unwrap();
    };
    let gone = SandboxId::new("gone.work").unwrap();
    for name in ["gone.work.7", "gone.work.mine"] {
        keep(&gone, name).await;
    }
    // Taken, and never journalled: a crash came in between.
    keep(&work(&live), "s1.work.4711").await;
    engine.cancel(&ended, "person:test", "done").await.unwrap();
    let kept = engine.state(&live).await.unwrap().kept("work").len();
    assert_eq!(outrigger_engine::gc(&engine, HOUR_MS).await, outrigger_engine::GcReport::default());
    tokio::time::advance(Duration::from_millis(2 * HOUR_MS)).await;
    make("young.work").await;
    let collected = outrigger_engine::gc(&engine, HOUR_MS).await;
    let ids: Vec<&str> = collected.sandboxes.iter().map(SandboxId::as_str).collect();
    assert_eq!(ids, ["gone.work", "s1.other", "s2.work"]);
    assert_eq!(collected.snapshots, ["gone.work.7", "s1.work.4711"]);
    assert_eq!(collected.warnings, []);
    let there = Backend::list(&world.spy).await.unwrap();
    let there: Vec<&str> = there.iter().map(|listed| listed.id.as_str()).collect();
    assert_eq!(there, ["assistant.ann.work", "mine", "s1.work", "young.work"]);
    assert_eq!(Snapshots::list(&world.spy).await.unwrap().len(), kept + 1);
    assert_eq!(outrigger_engine::gc(&engine, HOUR_MS).await, outrigger_engine::GcReport::default());
    assert!(engine.state(&session("gone")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_a_session_answered_from_goes_when_nobody_came_back() {
    let world = World::new().await;
    let (engine, answered) = world.played(&[run("append a 1"), done(), done()]).await;
    assert_eq!(outrigger_engine::suspend(&engine, &answered).await.unwrap(), []);
    tokio::time::advance(Duration::from_millis(HOUR_MS / 2)).await;
    assert_eq!(outrigger_engine::gc(&engine, HOUR_MS).await, outrigger_engine::GcReport::default());
    tokio::time::advance(Duration::from_millis(2 * HOUR_MS)).await;
    let collected = outrigger_engine::gc(&engine, HOUR_MS).await;
    assert_eq!((collected.sandboxes.len(), collected.snapshots.len()), (1, 2), "{collected:?}");
    // Somebody comes back after all, and is told.
    crate::world::next_turn(&engine, &answered).await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_came_back_to_meanwhile_stays() {
    let world = World::new().await;
    let (engine, answered) = world.played(&[run("append a 1"), done(), done()]).await;
    assert_eq!(outrigger_engine::suspend(&engine, &answered).await.unwrap(), []);
    // Nobody wants this one, and while it goes somebody wants the next one after all.
    world.spy.create(&SandboxId::new("s1.older").unwrap(), &Fake::spec()).await.unwrap();
    tokio::time::advance(Duration::from_millis(2 * HOUR_MS)).await;
    world.spy.come_back(&world.journal, &answered);
    let collected = outrigger_engine::gc(&engine, HOUR_MS).await;
    let ids: Vec<&str> = collected.sandboxes.iter().map(SandboxId::as_str).collect();
    assert_eq!((ids, collected.snapshots.len()), (vec!["s1.older"], 0), "{:?}", collected.warnings);
}
