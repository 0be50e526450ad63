//! What crashes leave behind, and who may be touched.

use crate::support::*;
use outrigger_sandbox::{Backend, Began, Spec};
use outrigger_sandbox_docker::Collected;

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_keeps_is_removed_and_the_rest_stays() {
    let world = world().await;
    let kept = world.sandbox("kept").await;
    world.sandbox("other").await;
    let collected = world.docker.collect(|id| id.as_str() == "kept").await.unwrap();
    assert_eq!(collected, Collected { sandboxes: 1, containers: 0, volumes: 0 });
    assert_eq!(says(&*kept, "echo fine").await, "fine\n");
    assert_eq!(world.docker.list().await.unwrap().len(), 1);
    assert_eq!(world.docker.collect(|_| false).await.unwrap().sandboxes, 1);
    assert!(world.owned("container").is_empty());
    // The guest program and its record.
    assert_eq!(world.owned("volume").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_in_the_middle_of_making_left_is_removed_and_makes_no_harm() {
    let world = world().await;
    // A first one, so that the program is there.
    world.sandbox("first").await;
    for after_ms in [0, 5, 10, 20, 40, 60, 80, 120, 160, 240] {
        let id = sandbox_id("cut");
        let spec = Spec::default();
        let making = world.docker.create(&id, &spec);
        let limit = std::time::Duration::from_millis(after_ms);
        // Dropped in the middle, as by a crash, wherever that is.
        let _ = tokio::time::timeout(limit, making).await;
        if after_ms % 20 == 0 {
            world.docker.collect(|_| true).await.unwrap();
        }
        let sandbox = world.sandbox("cut").await;
        assert_eq!(says(&*sandbox, "echo x >> f && cat f").await, "x\n", "after {after_ms} ms");
        world.docker.destroy(&id).await.unwrap();
        assert_eq!(world.sandbox("cut").await.began(), Began::Made);
        world.docker.destroy(&id).await.unwrap();
    }
    world.docker.collect(|_| false).await.unwrap();
    assert!(world.owned("container").is_empty());
    assert_eq!(world.owned("volume").len(), 2, "the guest program and its record");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_never_touched() {
    let (mine, theirs) = (world().await, world().await);
    let sandbox = theirs.sandbox("one").await;
    let stray = format!("stray-{}", theirs.config.owner);
    mine.daemon.docker(&["volume", "create", &stray]);
    mine.docker.collect(|_| false).await.unwrap();
    mine.docker.destroy(&sandbox_id("one")).await.unwrap();
    assert_eq!(says(&*sandbox, "echo fine").await, "fine\n");
    mine.daemon.docker(&["volume", "rm", &stray]);

    // A container of our name that we did not make.
    let name = mine.container("one");
    mine.daemon.docker(&["create", "--name", &name, "--network", "none", IMAGE, "/bin/true"]);
    let refused = mine.docker.create(&sandbox_id("one"), &Spec::default()).await.unwrap_err();
    assert!(refused.to_string().contains("was not made by this backend"), "{refused}");
    assert!(mine.docker.destroy(&sandbox_id("one")).await.is_err());
    mine.daemon.docker(&["rm", &name]);
}
