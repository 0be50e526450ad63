//! Suspended sandboxes: what is kept, what is verified, what a crash leaves.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::*;
use outrigger_sandbox::{
    Backend, CreateOutcome, CreateSpec, Error, ExecId, LifecycleState, Lifetime, ListedSandbox,
    Sandbox, Suspend,
};

async fn state_of(world: &World, name: &str) -> Option<ListedSandbox> {
    let all = world.native.list().await.unwrap();
    all.into_iter().find(|listed| listed.id == sandbox_id(name))
}

async fn cold(world: &World, name: &str) {
    world.native.suspend(&sandbox_id(name), Suspend::Cold).await.unwrap();
}

fn disk(world: &World, name: &str) -> PathBuf {
    world.state.path().join("state/sandboxes").join(name)
}

/// Runs a line under a name; the name makes it run once.
async fn named(sandbox: &dyn Sandbox, id: &str, line: &str) -> Vec<u8> {
    let mut request = shell(line);
    request.id = ExecId::new(id).unwrap();
    sandbox.execute(request, &()).await.unwrap().stdout
}

/// Polls, because what is waited for happens in another process.
async fn soon(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !is().await {
        assert!(Instant::now() < limit, "it did not happen: {what}");
        // poll: the spawner acts by itself
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_cold_sandbox_goes_on_with_its_life_and_nothing_runs_twice() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    assert_eq!(sandbox.outcome(), CreateOutcome::Made);
    assert_eq!(named(&*sandbox, "a", "echo run >> count; echo said").await, b"said\n");
    assert_eq!(says(&*sandbox, "(sleep 300 > /dev/null 2>&1 &) ; echo kept > ~/file").await, "");
    cold(&world, "one").await;
    cold(&world, "one").await;
    let listed = state_of(&world, "one").await.unwrap();
    assert_eq!(
        (listed.state, listed.generation.as_ref()),
        (LifecycleState::Cold, Some(sandbox.generation()))
    );
    assert!(world.native.find(&sandbox_id("one")).await.unwrap().is_none());
    let lost = sandbox.execute(shell("true"), &()).await;
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    let again = world.sandbox("one").await;
    assert_eq!(
        (again.outcome(), again.generation()),
        (CreateOutcome::Resumed, sandbox.generation())
    );
    assert_eq!(named(&*again, "a", "echo another").await, b"said\n");
    assert_eq!(says(&*again, "cat count ~/file; pgrep -x sleep").await, "run\nkept\n[Exited(1)]");
    assert_eq!(world.sandbox("one").await.outcome(), CreateOutcome::Attached);
}

#[tokio::test]
async fn a_cold_sandbox_outlives_its_spawner_and_its_engine() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    assert_eq!(named(&*sandbox, "a", "echo run >> count; echo said").await, b"said\n");
    cold(&world, "one").await;
    kill_spawner(&world);
    let other = world.again().await;
    let listed = other.list().await.unwrap();
    assert_eq!(listed[0].state, LifecycleState::Cold);
    let again = other.create(&sandbox_id("one"), &CreateSpec::default()).await.unwrap();
    assert_eq!(
        (again.outcome(), again.generation()),
        (CreateOutcome::Resumed, sandbox.generation())
    );
    assert_eq!(named(&*again, "a", "echo another").await, b"said\n");
    assert_eq!(says(&*again, "cat count").await, "run\n");
}

#[tokio::test]
async fn one_that_a_command_runs_in_is_busy_for_every_rest() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    let waits = shell("echo up; until [ -e go ]; do sleep 0.01; done");
    let running = sandbox.execute(waits, &());
    let asks = async {
        let id = sandbox_id("one");
        soon("the command runs", async || {
            !matches!(says(&*sandbox, "pgrep -f 'until.*go' | wc -l").await.trim(), "0" | "1")
        })
        .await;
        for how in [Suspend::Frozen, Suspend::Cold] {
            let busy = world.native.suspend(&id, how).await;
            assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
        }
        let busy = world.native.snapshots().unwrap().take(&id, &snapshot_id("s")).await;
        assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
        says(&*sandbox, "touch go").await
    };
    let (ended, _) = tokio::join!(running, asks);
    assert_eq!(ended.unwrap().exit_code(), Some(0));
    cold(&world, "one").await;
}

#[tokio::test]
async fn a_frozen_sandbox_stands_still_and_thaws_when_asked() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    let line = "(while :; do date +%s%N > tick; sleep 0.01; done) > /dev/null 2>&1 & \
                until [ -e tick ]; do sleep 0.01; done";
    assert_eq!(says(&*sandbox, line).await, "");
    let id = sandbox_id("one");
    for _ in 0..2 {
        world.native.suspend(&id, Suspend::Frozen).await.unwrap();
        assert_eq!(state_of(&world, "one").await.unwrap().state, LifecycleState::Frozen);
    }
    let tick = disk(&world, "one").join("upper/workspace/tick");
    let before = std::fs::metadata(&tick).unwrap().modified().unwrap();
    assert_eq!(std::fs::metadata(&tick).unwrap().modified().unwrap(), before);
    assert!(world.native.find(&id).await.unwrap().is_some());
    assert_eq!(state_of(&world, "one").await.unwrap().state, LifecycleState::Frozen);
    assert_eq!(world.sandbox("one").await.outcome(), CreateOutcome::Attached);
    assert_eq!(state_of(&world, "one").await.unwrap().state, LifecycleState::Running);
    soon("it ticks", async || std::fs::metadata(&tick).unwrap().modified().unwrap() > before).await;
    world.native.suspend(&id, Suspend::Frozen).await.unwrap();
    // What is frozen can still go cold, and be deleted.
    cold(&world, "one").await;
    world.native.suspend(&id, Suspend::Frozen).await.unwrap();
    world.sandbox("one").await;
    world.native.suspend(&id, Suspend::Frozen).await.unwrap();
    world.native.destroy(&id).await.unwrap();
    for how in [Suspend::Frozen, Suspend::Cold] {
        let absent = world.native.suspend(&id, how).await;
        assert!(matches!(absent, Err(Error::Absent { .. })), "{absent:?}");
    }
}

#[tokio::test]
async fn a_disk_that_was_changed_is_not_started() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    // More than the spawner looks at by itself.
    assert_eq!(
        says(&*sandbox, "mkdir many; cd many; touch $(seq 400); echo x > ../file").await,
        ""
    );
    let id = sandbox_id("one");
    let upper = disk(&world, "one").join("upper/workspace");
    let changes: [&dyn Fn(); 4] = [
        &|| std::fs::write(upper.join("file"), "y\n").unwrap(),
        &|| std::fs::write(upper.join("many/401"), "").unwrap(),
        &|| std::fs::remove_file(upper.join("many/7")).unwrap(),
        &|| std::fs::write(disk(&world, "one").join("kept"), "nonsense").unwrap(),
    ];
    for (number, change) in changes.iter().enumerate() {
        cold(&world, "one").await;
        change();
        for _ in 0..2 {
            let refused = world.native.create(&id, &CreateSpec::default()).await;
            assert!(
                matches!(&refused, Err(Error::Altered { detail, .. }) if detail.contains("destroy")),
                "change {number}: {refused:?}"
            );
        }
        let taken = world.native.snapshots().unwrap().take(&id, &snapshot_id("s")).await;
        assert!(matches!(taken, Err(Error::Altered { .. })), "{taken:?}");
        assert_eq!(state_of(&world, "one").await.unwrap().state, LifecycleState::Cold);
        world.native.destroy(&id).await.unwrap();
        let sandbox = world.sandbox("one").await;
        assert_eq!(sandbox.outcome(), CreateOutcome::Made);
        assert_eq!(
            says(&*sandbox, "mkdir many; cd many; touch $(seq 400); echo x > ../file").await,
            ""
        );
    }
    cold(&world, "one").await;
    assert_eq!(world.sandbox("one").await.outcome(), CreateOutcome::Resumed);
}

#[tokio::test]
async fn another_boot_ends_a_suspended_life_and_keeps_its_disk() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    assert_eq!(says(&*sandbox, "echo kept > file").await, "");
    cold(&world, "one").await;
    // As a record is after a loss of power, or of another version.
    std::fs::write(disk(&world, "one").join("cold"), "nonsense").unwrap();
    let again = world.sandbox("one").await;
    assert_eq!(again.outcome(), CreateOutcome::Restarted);
    assert_ne!(again.generation(), sandbox.generation());
    assert_eq!(says(&*again, "cat file").await, "kept\n");
}

#[tokio::test]
async fn a_spawner_that_ends_at_any_moment_leaves_something_to_go_on_from() {
    let world = world().await;
    let id = sandbox_id("one");
    for round in 0..12_u64 {
        let sandbox = world.sandbox("one").await;
        let line =
            format!("echo {round} >> rounds; mkdir -p d{round}; cd d{round}; touch $(seq 300)");
        assert_eq!(says(&*sandbox, &line).await, "");
        let (suspended, ()) = tokio::join!(
            async {
                if round % 2 == 0 {
                    world.native.suspend(&id, Suspend::Cold).await
                } else {
                    let name = snapshot_id(&format!("s{round}"));
                    world.native.snapshots().unwrap().take(&id, &name).await.map(drop)
                }
            },
            async {
                // poll: one moment after the other
                tokio::time::sleep(Duration::from_micros(round * 400)).await;
                kill_spawner(&world);
            }
        );
        let again = world.sandbox("one").await;
        let rounds: String = (0..=round).map(|round| format!("{round}\n")).collect();
        assert_eq!(says(&*again, "cat rounds").await, rounds, "{suspended:?}");
        assert_eq!(says(&*again, &format!("ls d{round} | wc -l")).await, "300\n");
    }
}

#[tokio::test]
async fn a_tree_that_was_left_without_its_owner_is_given_to_it() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    assert_eq!(says(&*sandbox, "echo kept > kept").await, "");
    let disk = world.state.path().join("state/sandboxes/one");
    let owner = || std::os::unix::fs::MetadataExt::uid(&disk.join("upper").metadata().unwrap());
    let before = owner();
    // As by a spawner that ended between the two.
    std::fs::create_dir(disk.join("blank")).unwrap();
    for name in ["first", "second"] {
        let snapshots = world.native.snapshots().unwrap();
        snapshots.take(&sandbox_id("one"), &snapshot_id(name)).await.unwrap();
        assert_eq!(owner(), before);
        let again = world.sandbox("one").await;
        assert_eq!(says(&*again, "cat kept; touch new; stat -c %u new").await, "kept\n1000\n");
    }
}

#[tokio::test]
async fn an_idle_sandbox_goes_cold_and_a_used_one_does_not() {
    let world = world().await;
    let lifetime = Lifetime { idle_ms_max: Some(5_000), age_ms_max: None };
    let spec = CreateSpec { lifetime, ..CreateSpec::default() };
    let id = sandbox_id("idle");
    let idle = world.native.create(&id, &spec).await.unwrap();
    let busy = world.native.create(&sandbox_id("busy"), &spec).await.unwrap();
    let running = busy.execute(shell("until [ -e go ]; do sleep 0.01; done"), &());
    let watch = async {
        soon("it goes cold", async || {
            state_of(&world, "idle").await.unwrap().state == LifecycleState::Cold
        })
        .await;
        assert_eq!(state_of(&world, "busy").await.unwrap().state, LifecycleState::Running);
        assert_eq!(says(&*busy, "touch go").await, "");
    };
    let (ended, ()) = tokio::join!(running, watch);
    assert_eq!(ended.unwrap().exit_code(), Some(0));
    let again = world.native.create(&id, &spec).await.unwrap();
    assert_eq!((again.outcome(), again.generation()), (CreateOutcome::Resumed, idle.generation()));
}

#[tokio::test]
async fn an_old_sandbox_is_deleted_whatever_it_does_and_whoever_lives() {
    let world = world().await;
    let lifetime = Lifetime { idle_ms_max: None, age_ms_max: Some(5_000) };
    let spec = CreateSpec { lifetime, ..CreateSpec::default() };
    for name in ["runs", "cold", "later"] {
        world.native.create(&sandbox_id(name), &spec).await.unwrap();
    }
    cold(&world, "cold").await;
    soon("they are deleted", async || world.native.list().await.unwrap().is_empty()).await;
    world.native.create(&sandbox_id("later"), &spec).await.unwrap();
    kill_spawner(&world);
    soon("the next spawner deletes it", async || world.native.list().await.unwrap().is_empty())
        .await;
}
