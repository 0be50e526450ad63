//! What crashes leave behind, and who may be touched.

use crate::gateway::{Gateway, On};
use crate::support::*;
use outrigger_sandbox::{Backend, CreateOutcome, CreateSpec, DiskOrigin, LifecycleState, Suspend};

/// What there is of volumes when nothing was made but the program: it and its record.
const PROGRAM: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_whole_stays_and_what_is_left_of_something_goes() {
    let world = world().await;
    let kept = world.sandbox("kept").await;
    let cut = world.sandbox("cut").await;
    let snapshots = world.docker.snapshots().unwrap();
    snapshots.take(&sandbox_id("kept"), &snapshot_id("s")).await.unwrap();
    assert_eq!(world.docker.sweep().await.unwrap(), 0);
    // As an end leaves it that was cut short after the record.
    let record = format!("outrigger.{}.disk.cut", world.config.owner);
    world.daemon.docker(&["volume", "rm", &record]);
    assert_eq!(world.docker.sweep().await.unwrap(), 1 + 5, "the container and the disk");
    assert!(cut.execute(shell("true"), &()).await.is_err());
    assert_eq!(says(&*kept, "echo fine").await, "fine\n");
    assert_eq!(world.docker.list().await.unwrap().len(), 1);
    let from =
        CreateSpec { origin: DiskOrigin::Snapshot(snapshot_id("s")), ..CreateSpec::default() };
    world.docker.create(&sandbox_id("fork"), &from).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_in_the_middle_of_making_left_is_removed_and_makes_no_harm() {
    let world = world().await;
    // A first one, so that the program is there.
    world.sandbox("first").await;
    for after_ms in [0, 5, 10, 20, 40, 60, 80, 120, 160, 240] {
        let id = sandbox_id("cut");
        let spec = CreateSpec::default();
        let making = world.docker.create(&id, &spec);
        let limit = std::time::Duration::from_millis(after_ms);
        // Dropped in the middle, as by a crash, wherever that is.
        let _ = tokio::time::timeout(limit, making).await;
        if after_ms % 20 == 0 {
            world.docker.sweep().await.unwrap();
        }
        let sandbox = world.sandbox("cut").await;
        assert_eq!(says(&*sandbox, "echo x >> f && cat f").await, "x\n", "after {after_ms} ms");
        world.docker.destroy(&id).await.unwrap();
        assert_eq!(world.sandbox("cut").await.outcome(), CreateOutcome::Made);
        world.docker.destroy(&id).await.unwrap();
    }
    world.docker.destroy(&sandbox_id("first")).await.unwrap();
    world.docker.sweep().await.unwrap();
    assert!(world.owned("container").is_empty());
    assert_eq!(world.owned("volume").len(), PROGRAM);
}

/// A snapshot whose record comes after the collector looked, and whose maker is gone
/// when it removes.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_finished_while_others_sweep_stays() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    assert_eq!(says(&*sandbox, "echo kept > f").await, "");
    let socket = &world.daemon.socket;
    let sealing = Gateway::new(socket, On::TheWayThere, |request| {
        request.contains("/volumes/create") && request.contains(".snapshot.s\"")
    });
    let listing = Gateway::new(socket, On::TheWayBack, |request| {
        request.contains("/volumes?") && !request.contains("outrigger.kind")
    });
    let maker = world.on(&sealing.socket).await;
    let id = snapshot_id("s");
    let one = sandbox_id("one");
    let taking = async {
        maker.snapshots().unwrap().take(&one, &id).await.unwrap();
        listing.release();
    };
    let sweeping = async {
        sealing.reached().await;
        // The list that it gets now is without the record.
        world.on(&listing.socket).await.sweep().await.unwrap()
    };
    let between = async {
        listing.reached().await;
        sealing.release();
    };
    let ((), swept, ()) = tokio::join!(taking, sweeping, between);
    assert_eq!(swept, 0);
    let from = CreateSpec { origin: DiskOrigin::Snapshot(id), ..CreateSpec::default() };
    let fork = world.docker.create(&sandbox_id("two"), &from).await.unwrap();
    assert_eq!(says(&*fork, "cat f").await, "kept\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_that_the_daemon_made_again_or_that_are_being_made_stay() {
    let world = world().await;
    let owner = &world.config.owner;
    let label = |name: &str, value: &str| format!("--label=outrigger.{name}={value}");
    let ours = label("owner", owner);
    let make = |name: &str, labels: &[String]| {
        let words = ["volume", "create", &ours].into_iter();
        let words: Vec<&str> =
            words.chain(labels.iter().map(String::as_str)).chain([name]).collect();
        world.daemon.docker(&words);
    };
    // A volume without labels of its own, which a record names all the same.
    let named = format!("outrigger.{owner}.snapshot-all.1234");
    make(&named, &[]);
    let record = [
        label("part", "record"),
        label("kind", "snapshot"),
        label("id", "s"),
        label("making", "1234"),
        label("record", r#"{"sandbox":"x","template":"t","taken_at_ms":1,"digest":""}"#),
    ];
    make(&format!("outrigger.{owner}.snapshot.s"), &record);
    // One that a process makes which lives: the first one of this host.
    let stat = std::fs::read_to_string("/proc/1/stat").unwrap();
    let begun = stat[stat.rfind(')').unwrap() + 1..].split_ascii_whitespace().nth(19).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let place = format!("{}/{}", boot.trim(), space.display());
    let lives = [label("making", "5678"), label("process", &format!("{place}/1/{begun}"))];
    let making = format!("outrigger.{owner}.snapshot-all.5678");
    make(&making, &lives);
    let ended = [label("making", "9999"), label("process", &format!("{place}/1/0"))];
    make(&format!("outrigger.{owner}.snapshot-all.9999"), &ended);
    assert_eq!(world.docker.sweep().await.unwrap(), 1);
    let left = world.owned("volume");
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.contains(&named) && left.contains(&making), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_never_touched() {
    let (mine, theirs) = (world().await, world().await);
    let sandbox = theirs.sandbox("one").await;
    let stray = format!("stray-{}", theirs.config.owner);
    mine.daemon.docker(&["volume", "create", &stray]);
    mine.docker.sweep().await.unwrap();
    mine.docker.destroy(&sandbox_id("one")).await.unwrap();
    assert_eq!(says(&*sandbox, "echo fine").await, "fine\n");
    mine.daemon.docker(&["volume", "rm", &stray]);

    // A container of our name that we did not make.
    let name = mine.container("one");
    mine.daemon.docker(&["create", "--name", &name, "--network", "none", IMAGE, "/bin/true"]);
    let refused = mine.docker.create(&sandbox_id("one"), &CreateSpec::default()).await.unwrap_err();
    assert!(refused.to_string().contains("was not made by this backend"), "{refused}");
    assert!(mine.docker.destroy(&sandbox_id("one")).await.is_err());
    mine.daemon.docker(&["rm", &name]);
}

/// An image's labels are those of every container that is made of it, whoever makes it.
#[tokio::test(flavor = "multi_thread")]
async fn containers_that_carry_our_labels_under_other_names_are_none_of_ours() {
    let world = world().await;
    world.sandbox("kept").await;
    let origin = serde_json::to_string(&DiskOrigin::Template("t".to_owned())).unwrap();
    let old = format!(r#"{{"origin":{origin},"template":"t","made_at_ms":1,"age_ms_max":1}}"#);
    let owner = world.config.owner.clone();
    for (part, id) in
        [("maker", "x"), ("reader", "kept"), ("container", "kept"), ("container", "x")]
    {
        let name = format!("theirs-{owner}-{part}-{id}");
        let labels = [
            ("owner", owner.as_str()),
            ("kind", "disk"),
            ("part", part),
            ("id", id),
            ("making", "12"),
            ("generation", "other"),
            ("began", "\"made\""),
            ("record", &old),
        ];
        let labels = labels.map(|(name, value)| format!("--label=outrigger.{name}={value}"));
        let words = ["create", "--name", &name, "--network", "none"].into_iter();
        let words = words.chain(labels.iter().map(String::as_str)).chain([IMAGE, "/bin/true"]);
        world.daemon.docker(&words.collect::<Vec<_>>());
    }
    // Another process learns from them neither an age nor a state nor that a disk is read.
    let again = world.again().await;
    assert_eq!(again.sweep().await.unwrap(), 0);
    let listed = again.list().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|one| (one.id.as_str(), one.state)).collect();
    assert_eq!(listed, [("kept", LifecycleState::Running)]);
    if again.capabilities().suspend.contains(&Suspend::Frozen) {
        again.suspend(&sandbox_id("kept"), Suspend::Frozen).await.unwrap();
    }
    let kept = again.create(&sandbox_id("kept"), &CreateSpec::default()).await.unwrap();
    assert_eq!(
        (kept.outcome(), says(&*kept, "echo fine").await),
        (CreateOutcome::Attached, "fine\n".into())
    );
    assert_eq!(world.owned("container").len(), 1 + 4, "what is theirs is there");
}
