//! What takes the place of a sandbox that was lost, and what the model is told.

use outrigger_agent::{Event, Loss, Seq, TurnEnd};
use outrigger_engine::{Notice, SnapshotPolicy, Warning};
use outrigger_sandbox_testing::fake::Disk;
use outrigger_store::load_all;

use crate::model::{done, run};
use crate::world::{World, drive, next_turn, notices, results, said, work};

/// One word in the first turn; then the loss, and a look at what is there.
const LOOK: &str = "cat /workspace/a; cat /workspace/seed";

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_is_replaced_by_the_best_that_is_there() {
    use SnapshotPolicy::{Off, Turn};
    for (keep, disk, told, found) in [
        (Turn { kept_max: 3 }, Disk::Kept, "files are as they were left", "aseed\n"),
        (Turn { kept_max: 3 }, Disk::Dropped, "from its snapshot of 00:00 UTC", "aseed\n"),
        (Off, Disk::Kept, "files are as they were left", "aseed\n"),
        (Off, Disk::Dropped, "back at its starting content", "seed\n"),
    ] {
        let mut world = World::new().await;
        world.retention.snapshots = keep;
        let steps = [run("append /workspace/a a"), done(), run(LOOK), run(LOOK)];
        let (engine, session) = world.played(&steps).await;
        assert_eq!(outrigger_engine::suspend(&engine, &session).await.unwrap(), []);
        world.spy.inner.lose(&work(&session), disk);
        engine.say(&session, said("go on")).await.unwrap();
        drive(&engine, &session).await;
        let state = engine.state(&session).await.unwrap();
        let (results, notices) = (results(&state), notices(&state));
        assert!(results[1].starts_with("Not run: the sandbox was not there"), "{results:?}");
        assert!(results[2].contains(found), "{results:?}");
        assert_eq!(results[2].contains("aseed"), found == "aseed\n");
        let [notice] = &notices[..] else { panic!("{notices:?}") };
        assert!(notice.contains(told), "{notice}");
        assert_eq!(state.ended(), Some(&TurnEnd::Answered));
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_was_changed_while_it_was_cold_is_not_used() {
    let world = World::new().await;
    let steps = [run("append /workspace/a a"), done(), run(LOOK), run(LOOK)];
    let (engine, session) = world.played(&steps).await;
    assert_eq!(outrigger_engine::suspend(&engine, &session).await.unwrap(), []);
    world.spy.alter();
    engine.say(&session, said("go on")).await.unwrap();
    drive(&engine, &session).await;
    let state = engine.state(&session).await.unwrap();
    assert!(results(&state)[2].starts_with('a'), "{:?}", results(&state));
    let notices = notices(&state);
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("/workspace/a differs"), "{notices:?}");
    assert!(notices[0].contains("from its snapshot"), "{notices:?}");
    let mut losses = Vec::new();
    load_all(&world.journal, &session, Seq::default(), |record| {
        if let Event::SandboxLost { loss, .. } = record.event {
            losses.push(loss);
        }
    })
    .await
    .unwrap();
    assert_eq!(losses, [Loss::Altered("/workspace/a differs".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn only_what_changed_is_kept_and_only_so_much_of_it() {
    let mut world = World::new().await;
    world.retention.snapshots = SnapshotPolicy::Turn { kept_max: 2 };
    let steps = [run("append a 1"), done(), run("append a 2"), done(), done(), run("append a 3")];
    let (engine, session) = world.played(&steps).await;
    for _ in 0..4 {
        next_turn(&engine, &session).await;
    }
    let state = engine.state(&session).await.unwrap();
    let kept: Vec<&str> = state.kept("work").iter().map(|kept| kept.snapshot.as_str()).collect();
    assert_eq!(kept.len(), 2);
    let there = outrigger_sandbox::Snapshots::list(&world.spy).await.unwrap();
    let there: Vec<&str> = there.iter().map(|snapshot| snapshot.name.as_str()).collect();
    assert_eq!(there.len(), 2, "{there:?}");
    assert!(kept.iter().all(|name| there.contains(name)), "{kept:?} {there:?}");
    let notes = world.spy.noted();
    let taken = notes.iter().filter(|note| note.starts_with("keep")).count();
    assert_eq!(taken, 4, "when it was filled, and after each turn that changed it: {notes:?}");
}

#[tokio::test(start_paused = true)]
async fn what_can_t_be_kept_is_told_and_fails_nothing() {
    let world = World::new().await;
    let engine = world.engine(&[run("append a 1"), done()]);
    let mut notices = engine.feed().listen();
    let session = world.open(&engine, "s1").await;
    world.spy.fill();
    drive(&engine, &session).await;
    let warnings = outrigger_engine::suspend(&engine, &session).await.unwrap();
    let [Warning::NotKept { sandbox, .. }] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(sandbox, "work");
    assert_eq!(engine.state(&session).await.unwrap().ended(), Some(&TurnEnd::Answered));
    let mut told = 0;
    while let Ok((_, notice)) = notices.try_recv() {
        told += usize::from(matches!(notice, Notice::Warning(Warning::NotKept { .. })));
    }
    assert_eq!(told, 2, "when it was filled, and at the end of the turn");
}
