//! Sandboxes that are kept ready.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::*;
use outrigger_sandbox::{Backend, Began, Spec};

/// The disks of those that are ready.
fn ready(world: &World) -> Vec<PathBuf> {
    let pool = world.state.path().join("state/pool");
    let Ok(entries) = std::fs::read_dir(pool) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

async fn until_ready(world: &World, count: usize) {
    let limit = Instant::now() + Duration::from_secs(20);
    while ready(world).len() != count {
        assert!(Instant::now() < limit, "{:?}, not {count}", ready(world));
        // poll: the spawner makes them when it has nothing else to do
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_next_sandbox_is_one_that_was_ready_and_no_list_shows_those_that_are() {
    let world = world_with(|config| config.warm = 2).await;
    let first = world.sandbox("first").await;
    until_ready(&world, 2).await;
    assert_eq!(world.native.list().await.unwrap().len(), 1);
    let before = ready(&world);
    let second = world.sandbox("second").await;
    assert_eq!(second.began(), Began::Made);
    assert_ne!(second.generation(), first.generation());
    let was_ready = before.iter().any(|path| path.ends_with(second.generation().as_str()));
    assert!(was_ready, "{:?} of {before:?}", second.generation());
    assert_eq!(
        says(&*second, "ls -A; pwd; echo mine > file; cat file").await,
        "/workspace\nmine\n"
    );
    assert_eq!(says(&*first, "ls -A").await, "");
    let listed = world.native.list().await.unwrap();
    let second_listed = listed.iter().find(|listed| listed.id == sandbox_id("second")).unwrap();
    assert!(second_listed.made_at_ms >= listed[0].made_at_ms, "{listed:?}");
    until_ready(&world, 2).await;
    // One that was adopted is as any other.
    world.native.suspend(&sandbox_id("second"), outrigger_sandbox::Suspend::Cold).await.unwrap();
    let again = world.sandbox("second").await;
    assert_eq!((again.began(), again.generation()), (Began::Resumed, second.generation()));
    assert_eq!(says(&*again, "cat file").await, "mine\n");
}

#[tokio::test]
async fn one_of_another_kind_is_made_anew_and_is_what_is_ready_next() {
    let world = world_with(|config| config.warm = 1).await;
    world.sandbox("first").await;
    until_ready(&world, 1).await;
    let small = Spec { pids_max: 7, ..Spec::default() };
    let before = ready(&world);
    let other = world.native.create(&sandbox_id("small"), &small).await.unwrap();
    assert!(!before.iter().any(|path| path.ends_with(other.generation().as_str())));
    let limit = Instant::now() + Duration::from_secs(20);
    while ready(&world).len() != 1 || ready(&world) == before {
        assert!(Instant::now() < limit, "{:?}", ready(&world));
        // poll: as above
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = ready(&world);
    let next = world.native.create(&sandbox_id("next"), &small).await.unwrap();
    assert!(before[0].ends_with(next.generation().as_str()));
}

#[tokio::test]
async fn what_was_ready_ends_with_its_spawner() {
    let world = world_with(|config| config.warm = 2).await;
    world.sandbox("first").await;
    until_ready(&world, 2).await;
    kill_spawner(&world);
    let other = world.again().await;
    assert_eq!(other.list().await.unwrap().len(), 1);
    assert_eq!(ready(&world), Vec::<PathBuf>::new());
    // Its trash is emptied too.
    let limit = Instant::now() + Duration::from_secs(20);
    let trash = world.state.path().join("state/trash");
    while std::fs::read_dir(&trash).is_ok_and(|mut entries| entries.next().is_some()) {
        assert!(Instant::now() < limit, "the trash stays");
        // poll: a process of the spawner deletes
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
