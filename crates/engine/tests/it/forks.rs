//! Sessions that begin where others stood, and sessions that go back.

use outrigger_agent::{Seq, TurnEnd};
use outrigger_engine::{Error, SnapshotPolicy};
use outrigger_sandbox::{Backend, FileOp, FileReply, Snapshots};
use outrigger_store::Journal;

use crate::model::{done, run};
use crate::world::{World, drive, next_turn, notices, results, said, session, work};

const BY: &str = "person:test";
/// What each turn does: another `x`, and a look at all of them.
const ADD: &str = "append /workspace/a x; cat /workspace/a";

/// How many there were in the last turn.
async fn looked(engine: &outrigger_engine::Engine, session: &outrigger_agent::SessionId) -> usize {
    let found = results(&engine.state(session).await.unwrap()).last().cloned().unwrap();
    found.bytes().take_while(|byte| *byte == b'x').count()
}

/// A session after two turns.
async fn worked(world: &World) -> (outrigger_engine::Engine, outrigger_agent::SessionId) {
    let steps = [run(ADD), done(), run(ADD), done(), run(ADD), done()];
    let (engine, session) = world.played(&steps).await;
    next_turn(&engine, &session).await;
    assert_eq!(outrigger_engine::suspend(&engine, &session).await.unwrap(), []);
    (engine, session)
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_a_session_of_its_own() {
    let world = World::new().await;
    let (engine, one) = worked(&world).await;
    let checkpoints = engine.checkpoints(&one).await.unwrap();
    let said_then: Vec<&str> = checkpoints.iter().map(|it| it.said.as_str()).collect();
    assert_eq!(said_then, ["", "go", "go on"].split_at(3 - checkpoints.len()).1);
    let two = session("s2");
    let first = checkpoints.iter().find(|it| it.said == "go").unwrap();
    let forked = engine.fork(&one, Some(first.at), &two, BY).await.unwrap();
    world.spy.noted();
    let error = engine.fork(&one, Some(first.at), &two, BY).await.unwrap_err();
    assert!(matches!(error, Error::Journal { .. }), "{error}");
    assert_eq!(world.spy.noted(), Vec::<String>::new(), "its disks are its own");
    assert_eq!(forked.at, first.at);
    assert!(Backend::find(&world.spy, &work(&two)).await.unwrap().is_none(), "lazily");
    // Nothing that happens to the first one takes anything from the second.
    let state = engine.state(&one).await.unwrap();
    assert_eq!(outrigger_engine::discard(&engine, &one, &state).await, []);
    engine.cancel(&one, BY, "done with it").await.unwrap();
    let collected = outrigger_engine::gc(&engine, 3_600_000).await;
    assert_eq!((collected.snapshots, collected.warnings), (vec![], vec![]));
    engine.say(&two, said("look")).await.unwrap();
    drive(&engine, &two).await;
    assert_eq!(looked(&engine, &two).await, 2, "one of before, and its own");
    let state = engine.state(&two).await.unwrap();
    let [notice] = &notices(&state)[..] else { panic!("{:?}", notices(&state)) };
    assert!(notice.contains("its files are as they were at 00:00 UTC"), "{notice}");
    assert_eq!(state.ended(), Some(&TurnEnd::Answered));
    let rows = world.journal.sessions(None, 10).await.unwrap();
    let row = rows.iter().find(|row| row.session == two).unwrap();
    assert_eq!(row.title, "go (fork)");
    assert!(world.journal.verify(&two).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_rewind_puts_the_disk_back_also_after_a_crash_in_the_middle() {
    for crash in [false, true] {
        let world = World::new().await;
        let (engine, session) = worked(&world).await;
        let before = engine.state(&session).await.unwrap();
        if crash {
            // It was journalled, and nothing else came about.
            world.spy.break_destroy();
        }
        let (checkpoint, warnings) = engine.rewind(&session, None, BY).await.unwrap();
        assert_eq!((checkpoint.said.as_str(), warnings.len()), ("go", usize::from(crash)));
        let there = Backend::find(&world.spy, &work(&session)).await.unwrap().is_some();
        let state = engine.state(&session).await.unwrap();
        let revisited =
            outrigger_engine::reattach(&engine, &session, &state, "work").await.unwrap();
        assert!(crash || !there);
        assert_eq!(revisited.is_none(), crash, "what was given up and is there is nobody's work");
        world.spy.mend();
        let state = engine.state(&session).await.unwrap();
        assert_eq!(state.spent(), before.spent());
        assert!(state.conversation().len() < before.conversation().len());
        engine.say(&session, said("look")).await.unwrap();
        drive(&engine, &session).await;
        assert_eq!(looked(&engine, &session).await, 2, "one of before, and another one");
        // And once more, to before anything was said: the disk begins anew.
        assert_eq!(outrigger_engine::suspend(&engine, &session).await.unwrap(), []);
        let left = engine.checkpoints(&session).await.unwrap();
        let places: Vec<u64> = left.iter().map(|it| it.at.0).collect();
        assert!(places.is_sorted() && left.iter().all(|it| it.said != "go on"), "{left:?}");
        engine.rewind(&session, Some(Seq(1)), BY).await.unwrap();
        engine.say(&session, said("look again")).await.unwrap();
        drive(&engine, &session).await;
        assert_eq!(looked(&engine, &session).await, 1);
        assert!(world.journal.verify(&session).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn each_rewind_shows_its_own_files_before_anything_runs() {
    let world = World::new().await;
    let (engine, session) = worked(&world).await;
    next_turn(&engine, &session).await;
    for expected in ["xx", "x"] {
        assert_eq!(outrigger_engine::suspend(&engine, &session).await.unwrap(), []);
        engine.rewind(&session, None, BY).await.unwrap();
        let state = engine.state(&session).await.unwrap();
        // Whoever looks again sees the same.
        for _ in 0..2 {
            let found = outrigger_engine::reattach(&engine, &session, &state, "work").await;
            let path = "/workspace/a".to_owned();
            let read = FileOp::Read { path, offset: 0, bytes_max: 16 };
            let read = found.unwrap().unwrap().sandbox.files(read).await.unwrap();
            let FileReply::Bytes { bytes, .. } = &read else { panic!("{read:?}") };
            assert_eq!(bytes, expected.as_bytes());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_t_be_cut_is_said_with_what_can() {
    use Error::NoCheckpoint;
    let mut world = World::new().await;
    world.retention.snapshots = SnapshotPolicy::Turn { kept_max: 1 };
    let (engine, one) = worked(&world).await;
    let checkpoints = engine.checkpoints(&one).await.unwrap();
    let gone = checkpoints.iter().find(|it| !it.gone.is_empty()).expect("one was given up");
    for (at, why) in [(gone.at, "is not kept any more"), (Seq(3), "its checkpoints are 1, ")] {
        let error = engine.fork(&one, Some(at), &session("s2"), BY).await.unwrap_err();
        assert!(matches!(error, NoCheckpoint { .. }) && error.to_string().contains(why), "{error}");
        let error = engine.rewind(&one, Some(at), BY).await.unwrap_err();
        assert!(matches!(error, NoCheckpoint { .. }) && error.to_string().contains(why), "{error}");
    }
    engine.say(&one, said("more")).await.unwrap();
    let error = engine.rewind(&one, None, BY).await.unwrap_err();
    assert!(error.to_string().contains("something runs in it"), "{error}");
    assert!(engine.state(&session("s2")).await.is_err(), "nothing came of it");
    engine.cancel(&one, BY, "").await.unwrap();
    assert!(engine.rewind(&one, None, BY).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_can_t_copy_a_disk_is_none() {
    let world = World::new().await;
    let (engine, one) = worked(&world).await;
    world.spy.fill();
    let two = session("s2");
    let error = engine.fork(&one, None, &two, BY).await.unwrap_err();
    assert!(matches!(error, Error::Sandbox(_)), "{error}");
    assert!(engine.state(&two).await.is_err());
    let there = Snapshots::list(&world.spy).await.unwrap();
    assert!(there.iter().all(|snapshot| !snapshot.name.as_str().starts_with("s2")));
}
