//! Several sandboxes of one session, and how well each has to be isolated.

use outrigger_agent::{SandboxScope, TurnEnd};
use outrigger_engine::{Notice, Warning};
use outrigger_sandbox::Backend;
use serde_json::json;

use crate::model::{call, done, run};
use crate::spy::Spy;
use crate::world::{World, asked, results};

#[tokio::test(start_paused = true)]
async fn each_sandbox_has_its_own_tools_disk_and_backend() {
    let mut world = World::new().await;
    let other = Spy::new("other");
    let mut second = asked("fetch", SandboxScope::Thread);
    second.backend = "other".to_owned();
    world.sandboxes.push((second, other.clone()));
    let steps = [
        run("append both work"),
        call("execute_fetch", json!({ "command": "append both fetch" })),
        call("read_file_fetch", json!({ "file_path": "both" })),
        call("read_file_fetch", json!({ "file_path": "seed" })),
        run("cat both"),
        done(),
    ];
    let (engine, session) = world.played(&steps).await;
    let state = engine.state(&session).await.unwrap();
    let results = results(&state);
    assert!(results[2].contains("fetch") && !results[2].contains("work"), "{results:?}");
    assert!(results[3].contains("file_not_found"), "it has no workspace: {results:?}");
    assert!(results[4].starts_with("work"), "{results:?}");
    for (spy, name) in [(&world.spy, "s1.work"), (&other, "s1.fetch")] {
        let there = Backend::list(spy).await.unwrap();
        let there: Vec<&str> = there.iter().map(|listed| listed.id.as_str()).collect();
        assert_eq!(there, [name]);
    }
    assert_eq!(outrigger_engine::discard(&engine, &session, &state).await, []);
    for spy in [&world.spy, &other] {
        assert_eq!(Backend::list(spy).await.unwrap(), []);
        assert_eq!(outrigger_sandbox::Snapshots::list(spy).await.unwrap(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn less_isolation_than_the_session_accepts_is_refused_with_advice() {
    for (least, backend, part) in [
        ("rootless_single", "fake", "isolates as `fake` on this machine"),
        ("root_range", "fake", "no less than `root_range`"),
        ("of_the_future", "fake", "set `sandbox.isolation_min` to `fake`"),
        ("fake", "docker", "is in the backend `docker`"),
    ] {
        let mut world = World::new().await;
        world.sandboxes[0].0.isolation_min = least.to_owned();
        world.sandboxes[0].0.backend = backend.to_owned();
        let (engine, session) = world.played(&[run("true")]).await;
        let state = engine.state(&session).await.unwrap();
        let Some(TurnEnd::SandboxFailed { detail }) = state.ended() else { panic!("{state:?}") };
        assert!(detail.contains(part), "{detail}");
        assert_eq!(world.spy.noted(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_is_not_configured_any_more_is_named() {
    let world = World::new().await;
    let session = world.open(&world.engine(&[]), "s1").await;
    let mut without = world.clone();
    without.sandboxes.clear();
    let engine = without.engine(&[run("true")]);
    crate::world::drive(&engine, &session).await;
    let state = engine.state(&session).await.unwrap();
    let Some(TurnEnd::SandboxFailed { detail }) = state.ended() else { panic!("{state:?}") };
    assert!(detail.contains("no sandbox `work` is configured here"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn what_was_made_for_a_project_elsewhere_is_gone_and_that_is_told() {
    let mut world = World::new().await;
    world.sandboxes[0].0.template = Some("host-tools.made-elsewhere".to_owned());
    let engine = world.engine(&[run("append a 1"), done()]);
    let mut notices = engine.feed().listen();
    let session = world.open(&engine, "s1").await;
    crate::world::drive(&engine, &session).await;
    assert_eq!(engine.state(&session).await.unwrap().ended(), Some(&TurnEnd::Answered));
    let mut told = 0;
    while let Ok((_, notice)) = notices.try_recv() {
        let warning = matches!(notice, Notice::Warning(Warning::WithoutProject { .. }));
        told += usize::from(warning);
    }
    assert_eq!(told, 1);

    // Another image than the configured one is nothing to begin over.
    let mut world = World::new().await;
    world.sandboxes[0].0.template = Some("elsewhere".to_owned());
    let (engine, session) = world.played(&[run("true")]).await;
    let state = engine.state(&session).await.unwrap();
    let Some(TurnEnd::SandboxFailed { detail }) = state.ended() else { panic!("{state:?}") };
    assert!(detail.contains("elsewhere"), "{detail}");
}
