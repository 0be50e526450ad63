//! No sandbox before one is needed, and none that runs for nothing.

use outrigger_agent::{SandboxScope, TurnEnd};
use outrigger_engine::{EmbeddedHost, Host};
use outrigger_sandbox::{Backend, LifecycleState, Suspend};

use crate::model::{call, done, run};
use crate::spy::Spy;
use crate::world::{World, drive, next_turn, results, said, work};

#[tokio::test(start_paused = true)]
async fn no_sandbox_is_made_before_a_call_needs_one() {
    let world = World::new().await;
    let (engine, session) = world.played(&[done(), run("echo hi"), done()]).await;
    assert_eq!(outrigger_engine::suspend(&engine, &session).await.unwrap(), []);
    assert_eq!(world.spy.noted(), [""; 0]);
    engine.say(&session, said("go on")).await.unwrap();
    drive(&engine, &session).await;
    assert_eq!(world.spy.noted()[0], "create s1.work: Made");
}

#[tokio::test(start_paused = true)]
async fn an_idle_sandbox_is_frozen_while_the_model_thinks_and_thaws_by_itself() {
    let world = World::new().await;
    let steps = [run("echo a > a; sleep 9"), run("cat a").after(1_900), run("cat a").after(2_100)];
    let (engine, session) = world.played(&steps).await;
    let suspended: Vec<String> =
        world.spy.noted().into_iter().filter(|note| note.starts_with("frozen")).collect();
    assert_eq!(suspended, ["frozen s1.work"], "not while a command runs, nor for a short thought");
    let state = engine.state(&session).await.unwrap();
    assert!(results(&state)[1..].iter().all(|text| text.starts_with("a\n")), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_goes_as_deep_as_is_wanted_and_offered() {
    let cold = || Spy::new("fake");
    for (spy, wanted, state, notes) in [
        (cold(), Some(Suspend::Cold), LifecycleState::Cold, "cold s1.work"),
        (cold(), Some(Suspend::Frozen), LifecycleState::Frozen, "frozen s1.work"),
        (
            cold().without(Suspend::Cold),
            Some(Suspend::Cold),
            LifecycleState::Frozen,
            "frozen s1.work",
        ),
        (cold(), None, LifecycleState::Running, ""),
    ] {
        let mut world = World::with(spy, SandboxScope::Thread).await;
        world.retention.suspend = wanted;
        let (engine, session) = world.played(&[run("echo a > a"), done(), run("cat a")]).await;
        let running = Backend::list(&world.spy).await.unwrap().remove(0);
        assert_eq!(running.state, LifecycleState::Running, "whoever waits still has use for it");
        world.spy.noted();
        assert_eq!(outrigger_engine::suspend(&engine, &session).await.unwrap(), []);
        let suspended = Backend::list(&world.spy).await.unwrap().remove(0);
        assert_eq!(suspended.state, state);
        assert_eq!(world.spy.noted().get(1).map_or("", String::as_str), notes);
        next_turn(&engine, &session).await;
        let after = engine.state(&session).await.unwrap();
        assert!(results(&after)[1].starts_with("a\n"));
        assert_eq!(
            after.sandbox("work").map(|ready| ready.generation.clone()),
            running.generation.map(|life| life.to_string()),
            "it is the same life"
        );
        assert_eq!(after.ended(), Some(&TurnEnd::Answered));
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_told_to_looks_after_them_by_itself() {
    let world = World::new().await;
    let engine = world.engine(&[run("echo a > a"), done()]);
    let session = world.open(&engine, "s1").await;
    let host = EmbeddedHost::suspending(engine);
    host.poke(&session).unwrap();
    host.parked(&session).await.unwrap();
    let id = work(&session);
    for _ in 0..1_000 {
        let listed = Backend::list(&world.spy).await.unwrap();
        if listed.iter().any(|listed| listed.id == id && listed.state == LifecycleState::Cold) {
            return;
        }
        // poll: the host's task goes on after it said that the session waits
        tokio::task::yield_now().await;
    }
    panic!("it is still not cold: {:?}", world.spy.noted());
}

#[tokio::test(start_paused = true)]
async fn a_file_tool_resumes_a_cold_sandbox_as_well() {
    let world = World::new().await;
    let read = call("read_file", serde_json::json!({ "file_path": "seed" }));
    let (engine, session) = world.played(&[read.clone(), done(), read]).await;
    next_turn(&engine, &session).await;
    let state = engine.state(&session).await.unwrap();
    assert!(results(&state)[1].contains("seed"), "{:?}", results(&state));
    let notes = world.spy.noted();
    assert!(notes.contains(&"create s1.work: Resumed".to_owned()), "{notes:?}");
}
