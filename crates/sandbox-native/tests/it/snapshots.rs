//! Snapshots: kept, restored, forked, forgotten.

use std::path::Path;

use crate::support::*;
use outrigger_sandbox::{
    Backend, CreateOutcome, CreateSpec, DiskOrigin, Error, ExecId, LifecycleState, Sandbox,
    Snapshot, Suspend,
};
use std::sync::Arc;
use std::time::Duration;

async fn take(world: &World, sandbox: &str, name: &str) -> Snapshot {
    let snapshots = world.native.snapshots().unwrap();
    snapshots.take(&sandbox_id(sandbox), &snapshot_id(name)).await.unwrap()
}

async fn from(world: &World, snapshot: &str, name: &str) -> Result<Arc<dyn Sandbox>, Error> {
    let spec =
        CreateSpec { origin: DiskOrigin::Snapshot(snapshot_id(snapshot)), ..CreateSpec::default() };
    world.native.create(&sandbox_id(name), &spec).await
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_sandbox_goes_on_after_its_snapshot_and_forks_go_their_own_way() {
    let world = world().await;
    let one = world.sandbox("one").await;
    let line = "echo old > file; echo gone > away; mkdir -p d/e; echo deep > d/e/f; ln -s file link; \
                chmod 640 file; echo home > ~/h; echo t > /tmp/t";
    assert_eq!(says(&*one, line).await, "");
    let mut request = shell("echo once >> count");
    request.id = ExecId::new("once").unwrap();
    run(&*one, request.clone()).await;
    let taken = take(&world, "one", "s").await;
    assert_eq!((taken.sandbox.as_str(), taken.layers), ("one", 1));
    assert_eq!(take(&world, "one", "s").await, taken, "taking it again");
    let again = world.sandbox("one").await;
    assert_eq!((again.outcome(), again.generation()), (CreateOutcome::Attached, one.generation()));
    run(&*again, request.clone()).await;
    assert_eq!(
        says(&*again, "cat count; echo new > file; rm away; rm -r d; mkdir d; touch d/n").await,
        "once\n"
    );
    let fork = from(&world, "s", "fork").await.unwrap();
    assert_eq!(fork.outcome(), CreateOutcome::Made);
    assert_ne!(fork.generation(), one.generation());
    let look = "cat file away d/e/f link ~/h /tmp/t; stat -c '%a %U' file";
    assert_eq!(says(&*fork, look).await, "old\ngone\ndeep\nold\nhome\nt\n640 agent\n");
    assert_eq!(says(&*fork, "echo fork > file; rm ~/h; echo mine > d/e/f").await, "");
    assert_eq!(
        says(&*again, "cat file ~/h; ls d; test -e away").await,
        "new\nhome\nn\n[Exited(1)]"
    );
    let second = from(&world, "s", "second").await.unwrap();
    assert_eq!(says(&*second, look).await, "old\ngone\ndeep\nold\nhome\nt\n640 agent\n");
    // A fork of a fork, which stands on two.
    assert_eq!(take(&world, "fork", "s2").await.layers, 2);
    let third = from(&world, "s2", "third").await.unwrap();
    assert_eq!(says(&*third, "cat file d/e/f; ls ~").await, "fork\nmine\n");
    let names: Vec<_> = world
        .native
        .snapshots()
        .unwrap()
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|s| s.name)
        .collect();
    assert_eq!(names, [snapshot_id("s"), snapshot_id("s2")]);
}

#[tokio::test]
async fn a_snapshot_outlives_its_sandbox_and_layers_go_with_the_last_that_stands_on_them() {
    let world = world().await;
    let one = world.sandbox("one").await;
    assert_eq!(says(&*one, "echo kept > file").await, "");
    take(&world, "one", "s").await;
    world.native.destroy(&sandbox_id("one")).await.unwrap();
    kill_spawner(&world);
    let restored = from(&world, "s", "one").await.unwrap();
    assert_eq!(says(&*restored, "cat file; echo more >> file").await, "kept\n");
    let snapshots = world.native.snapshots().unwrap();
    snapshots.remove(&snapshot_id("s")).await.unwrap();
    snapshots.remove(&snapshot_id("s")).await.unwrap();
    let layers = world.state.path().join("state/layers");
    assert_eq!(entries(&layers), 1, "the sandbox stands on it");
    assert_eq!(says(&*restored, "cat file").await, "kept\nmore\n");
    let gone = from(&world, "s", "two").await.unwrap_err();
    assert!(matches!(&gone, Error::Absent { what, .. } if what == "snapshot"), "{gone}");
    world.native.destroy(&sandbox_id("one")).await.unwrap();
    assert_eq!(entries(&layers), 0);
    assert!(world.native.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_rests_or_is_dead_can_be_kept_too() {
    let world = world().await;
    let one = world.sandbox("one").await;
    assert_eq!(says(&*one, "echo first > file").await, "");
    world.native.suspend(&sandbox_id("one"), Suspend::Cold).await.unwrap();
    take(&world, "one", "cold").await;
    let listed = world.native.list().await.unwrap();
    assert_eq!(listed[0].state, LifecycleState::Cold);
    let again = world.sandbox("one").await;
    assert_eq!((again.outcome(), again.generation()), (CreateOutcome::Resumed, one.generation()));
    assert_eq!(says(&*again, "cat file; echo second > file").await, "first\n");
    kill_spawner(&world);
    take(&world, "one", "dead").await;
    assert_eq!(world.native.list().await.unwrap()[0].state, LifecycleState::Dead);
    for (name, text) in [("cold", "first\n"), ("dead", "second\n")] {
        let fork = from(&world, name, name).await.unwrap();
        assert_eq!(says(&*fork, "cat file").await, text);
    }
    let again = world.sandbox("one").await;
    assert_eq!(again.outcome(), CreateOutcome::Restarted);
    assert_eq!(says(&*again, "cat file").await, "second\n");
    let absent =
        world.native.snapshots().unwrap().take(&sandbox_id("none"), &snapshot_id("n")).await;
    assert!(matches!(absent, Err(Error::Absent { .. })), "{absent:?}");
}

#[tokio::test]
async fn a_life_goes_on_after_a_snapshot_whoever_asks_for_it_or_nobody() {
    let world = world().await;
    let one = world.sandbox("one").await;
    let id = sandbox_id("one");
    assert_eq!(says(&*one, "echo kept > file").await, "");
    take(&world, "one", "asked").await;
    let again = world.sandbox("one").await;
    assert_eq!((again.outcome(), again.generation()), (CreateOutcome::Attached, one.generation()));
    take(&world, "one", "unasked").await;
    let disk = world.state.path().join("state/sandboxes/one");
    assert!(disk.join("upper").exists());
    while disk.join("cold").exists() {
        // poll: nobody is told of a life that goes on by itself.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(world.native.list().await.unwrap()[0].state, LifecycleState::Running);
    take(&world, "one", "suspended").await;
    world.native.suspend(&id, Suspend::Cold).await.unwrap();
    assert_eq!(world.native.list().await.unwrap()[0].state, LifecycleState::Cold);
    let again = world.sandbox("one").await;
    assert_eq!((again.outcome(), again.generation()), (CreateOutcome::Resumed, one.generation()));
    assert_eq!(says(&*again, "cat file").await, "kept\n");
    take(&world, "one", "destroyed").await;
    world.native.destroy(&id).await.unwrap();
    assert!(world.native.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_layer_that_was_changed_is_not_started_on() {
    let world = world().await;
    let one = world.sandbox("one").await;
    assert_eq!(says(&*one, "echo kept > file").await, "");
    take(&world, "one", "s").await;
    let layers = world.state.path().join("state/layers");
    let layer = std::fs::read_dir(&layers).unwrap().next().unwrap().unwrap().path();
    std::fs::write(layer.join("tree/workspace/file"), "changed").unwrap();
    let altered = from(&world, "s", "fork").await.unwrap_err();
    assert!(matches!(&altered, Error::Altered { .. }), "{altered}");
    assert_eq!(world.native.list().await.unwrap().len(), 1, "nothing is left of the fork");
    world.native.suspend(&sandbox_id("one"), Suspend::Cold).await.unwrap();
    let altered =
        world.native.create(&sandbox_id("one"), &CreateSpec::default()).await.unwrap_err();
    assert!(matches!(&altered, Error::Altered { .. }), "{altered}");
}

#[tokio::test]
async fn a_start_that_fails_takes_no_disk_that_was_there_before() {
    let world = world().await;
    let one = world.sandbox("one").await;
    assert_eq!(says(&*one, "echo kept > file").await, "");
    take(&world, "one", "s").await;
    world.native.snapshots().unwrap().remove(&snapshot_id("s")).await.unwrap();
    // It runs again: of one that still rests, a disk that is gone would have been altered.
    let one = world.sandbox("one").await;
    assert_eq!(says(&*one, "cat file").await, "kept\n");
    kill_spawner(&world);
    // As after a crash in the middle of a making, though it stands on what it wrote.
    let state = world.state.path().join("state");
    std::fs::remove_dir_all(state.join("sandboxes/one/upper")).unwrap();
    let other = world.again().await;
    assert_eq!(other.list().await.unwrap().len(), 1);
    std::fs::remove_dir(state.join("mnt")).unwrap();
    std::fs::write(state.join("mnt"), "in the way").unwrap();
    other.create(&sandbox_id("one"), &CreateSpec::default()).await.unwrap_err();
    other.create(&sandbox_id("two"), &CreateSpec::default()).await.unwrap_err();
    assert_eq!(other.list().await.unwrap().len(), 1, "nothing is left of the second");
    std::fs::remove_file(state.join("mnt")).unwrap();
    std::fs::create_dir(state.join("mnt")).unwrap();
    let one = other.create(&sandbox_id("one"), &CreateSpec::default()).await.unwrap();
    assert_eq!(says(&*one, "cat file").await, "kept\n");
}

#[tokio::test]
async fn a_high_stack_becomes_one_layer_that_holds_the_same() {
    let world = world().await;
    let one = world.sandbox("one").await;
    let line = "mkdir -p a/b gone opaque; echo old > a/b/f; touch gone/x opaque/old; ln a/b/f twin; \
                mkfifo pipe; ln -s a/b/f link; chmod 2750 a; echo x > replaced";
    assert_eq!(says(&*one, line).await, "");
    take(&world, "one", "s0").await;
    let one = world.sandbox("one").await;
    let line =
        "rm -r gone opaque replaced; mkdir opaque replaced; touch opaque/new; echo new >> a/b/f";
    assert_eq!(says(&*one, line).await, "");
    let mut layers = Vec::new();
    for number in 1..40 {
        let one = world.sandbox("one").await;
        assert_eq!(says(&*one, &format!("echo {number} >> numbers; touch n{number}")).await, "");
        layers.push(take(&world, "one", &format!("s{number}")).await.layers);
    }
    assert_eq!(layers.iter().max(), Some(&31), "{layers:?}");
    assert_eq!(layers.iter().filter(|layers| **layers == 1).count(), 1, "{layers:?}");
    let one = world.sandbox("one").await;
    let fork = from(&world, "s39", "fork").await.unwrap();
    let early = from(&world, "s0", "early").await.unwrap();
    let look = "find . -printf '%p %y %m %u:%g %l\\n' | grep -v '/n[0-9]' | sort; cat a/b/f; \
                ls | grep -c '^n[0-9]'; wc -l < numbers";
    let seen = says(&*one, look).await;
    assert_eq!(says(&*fork, look).await, seen);
    expect_test::expect![[r"
        . d 755 agent:agent 
        ./a d 2750 agent:agent 
        ./a/b d 755 agent:agent 
        ./a/b/f f 644 agent:agent 
        ./link l 777 agent:agent a/b/f
        ./numbers f 644 agent:agent 
        ./opaque d 755 agent:agent 
        ./opaque/new f 644 agent:agent 
        ./pipe p 644 agent:agent 
        ./replaced d 755 agent:agent 
        ./twin f 644 agent:agent 
        old
        new
        39
        39
    "]]
    .assert_eq(&seen);
    assert_eq!(
        says(&*early, "cat a/b/f; ls").await,
        "old\na\ngone\nlink\nopaque\npipe\nreplaced\ntwin\n"
    );
    // What is not needed any more goes with the last that names it.
    for number in 0..40 {
        let snapshots = world.native.snapshots().unwrap();
        snapshots.remove(&snapshot_id(&format!("s{number}"))).await.unwrap();
    }
    for name in ["fork", "early", "one"] {
        world.native.destroy(&sandbox_id(name)).await.unwrap();
    }
    assert_eq!(entries(&world.state.path().join("state/layers")), 0);
}
