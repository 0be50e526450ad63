//! Snapshots beyond what every backend must do: what is verified, and what is kept.

use crate::gateway::{Gateway, On};
use crate::support::*;
use outrigger_sandbox::{
    Backend, CreateSpec, DiskOrigin, Error, FileOp, LifecycleState, Precondition, Suspend,
    WriteMode,
};

fn from(name: &str) -> CreateSpec {
    CreateSpec { origin: DiskOrigin::Snapshot(snapshot_id(name)), ..CreateSpec::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_was_changed_is_refused_and_leaves_nothing() {
    let sandbox = single().await;
    let world = &sandbox.world;
    says(&*sandbox, "echo kept > f").await;
    let snapshots = world.docker.snapshots().unwrap();
    snapshots.take(&sandbox_id("one"), &snapshot_id("s")).await.unwrap();
    let volumes = world.owned("volume");
    let volume = volumes.iter().find(|name| name.contains(".snapshot-all.")).expect("a volume");
    let mount = format!("{volume}:/v");
    let change = ["run", "--rm", "--network", "none", "-v", &mount, IMAGE];
    let change = [&change[..], &["/bin/sh", "-c", "echo changed > /v/workspace/f"]].concat();
    world.daemon.docker(&change);
    let refused = world.docker.create(&sandbox_id("two"), &from("s")).await;
    assert!(matches!(refused, Err(Error::Altered { .. })), "{refused:?}");
    assert_eq!(world.docker.list().await.unwrap().len(), 1);
    assert_eq!(world.owned("volume").len(), volumes.len());
    assert_eq!(world.owned("container").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_modes_and_links_of_all_kinds_are_kept() {
    let sandbox = single().await;
    let make = "cd /workspace && mkdir d && echo x > d/a && ln d/a d/b && ln -s a d/c && \
                echo s > d/s && mkfifo d/p && chmod 751 d/a && chmod 6711 d/s && chmod 0 d/p && \
                chmod 3770 d && cp -r d ~ && cp -r d /tmp";
    assert_eq!(says(&*sandbox, make).await, "");
    const LINE: &str =
        "stat -c '%n %a %u:%g %F %h' /workspace /workspace/d/* /tmp /tmp/d/* ~ ~/d/* /var/tmp";
    // All of it belongs to whom the sandbox is.
    let show = |user: &str, said: String| {
        assert!(said.contains(&format!("d/a 751 {user}:1000 regular file 2")), "{user}: {said}");
        said.replace(&format!(" {user}:"), " USER:")
    };
    let user = says(&*sandbox, "id -u").await;
    let before = show(user.trim(), says(&*sandbox, LINE).await);
    let snapshots = sandbox.world.docker.snapshots().unwrap();
    let taken = snapshots.take(&sandbox_id("one"), &snapshot_id("s")).await.unwrap();
    assert_eq!(taken.layers, 1);
    let fork = sandbox.world.docker.create(&sandbox_id("two"), &from("s")).await.unwrap();
    let other = says(&*fork, "id -u").await;
    assert_ne!(other, user);
    assert_eq!(show(other.trim(), says(&*fork, LINE).await), before);
    assert_eq!(says(&*fork, "echo more >> /workspace/d/a && cat ~/d/s").await, "s\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_a_resting_or_a_dead_one_leaves_it_so() {
    let sandbox = single().await;
    let (world, id) = (&sandbox.world, sandbox_id("one"));
    says(&*sandbox, "echo kept > f").await;
    let snapshots = world.docker.snapshots().unwrap();
    world.docker.suspend(&id, Suspend::Frozen).await.unwrap();
    snapshots.take(&id, &snapshot_id("frozen")).await.unwrap();
    assert_eq!(world.docker.list().await.unwrap()[0].state, LifecycleState::Frozen);
    world.daemon.docker(&["kill", &world.container("one")]);
    snapshots.take(&id, &snapshot_id("dead")).await.unwrap();
    assert_eq!(world.docker.list().await.unwrap()[0].state, LifecycleState::Dead);
    world.docker.destroy(&id).await.unwrap();
    for name in ["frozen", "dead"] {
        let fork = world.docker.create(&sandbox_id(name), &from(name)).await.unwrap();
        assert_eq!(says(&*fork, "cat f").await, "kept\n");
    }
}

/// Old handles, of this process and of another one, while a disk is being copied.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_kept_is_woken_by_no_handle() {
    let sandbox = single().await;
    let (world, id) = (&sandbox.world, sandbox_id("one"));
    let elsewhere = world.again().await;
    let theirs = elsewhere.find(&id).await.unwrap().unwrap();
    assert_eq!(says(&*sandbox, "echo before > f").await, "");
    // The copy begins with a look at where the archive goes to, or with its upload.
    let copying = Gateway::new(&world.daemon.socket, On::TheWayThere, |request| {
        request.starts_with("GET /") && request.contains("/archive?")
    });
    let keeper = world.on(&copying.socket).await;
    let name = snapshot_id("s");
    let taking = keeper.snapshots().unwrap().take(&id, &name);
    let write = FileOp::Write {
        id: fresh(),
        path: "/workspace/g".to_owned(),
        contents: b"after".to_vec(),
        mode: WriteMode::Create,
        executable: None,
        modified_ns: None,
        precondition: Precondition::None,
    };
    let using = async {
        copying.reached().await;
        let look = async {
            assert_eq!(world.docker.list().await.unwrap()[0].state, LifecycleState::Frozen);
            let mut looks = 0;
            while looks < 20 {
                // poll: nothing is to happen, for as long as it may take to happen.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                let seen = world.docker.list().await.unwrap()[0].state;
                assert_eq!(seen, LifecycleState::Frozen, "somebody let it go on");
                looks += 1;
            }
            copying.release();
        };
        let waking = async { world.docker.create(&id, &CreateSpec::default()).await.unwrap() };
        let (ours, wrote, ran, _) = tokio::join!(
            waking,
            sandbox.files(write),
            theirs.execute(shell("cat f; echo more >> f"), &()),
            look
        );
        wrote.unwrap();
        assert!(ran.unwrap().exit_code() == Some(0));
        assert_eq!(says(&*ours, "tail -n 1 f").await, "more\n");
    };
    let (taken, ()) = tokio::join!(taking, using);
    taken.unwrap();
    let fork = world.docker.create(&sandbox_id("two"), &from("s")).await.unwrap();
    assert_eq!(says(&*fork, "cat *").await, "before\n");
}
