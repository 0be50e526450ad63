//! Backends, daemons and guests that end at the wrong moment.

use std::sync::Arc;

use crate::daemon::Daemon;
use crate::gateway::{Gateway, On};
use crate::support::*;
use outrigger_sandbox::{Backend, CreateOutcome, End, Error, LifecycleState, Suspend};

#[tokio::test(flavor = "multi_thread")]
async fn another_backend_attaches_while_a_command_runs_and_after() {
    let sandbox = single().await;
    let other = sandbox.world.again().await;
    let other = other.find(&sandbox_id("one")).await.unwrap().unwrap();
    assert_eq!(other.generation(), sandbox.generation());
    let request =
        shell("echo first; until [ -e go ]; do sleep 0.01; done; echo last; echo run >> count");
    let (one, two, go) = tokio::join!(
        sandbox.execute(request.clone(), &()),
        other.execute(request.clone(), &()),
        async { says(&*other, "touch go").await }
    );
    assert_eq!(go, "");
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one, two);
    assert_eq!(one.stdout, b"first\nlast\n");
    assert_eq!(says(&*sandbox, "cat count").await, "run\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_outlives_the_backend_that_began_it() {
    let world = world().await;
    let request = shell("echo begun > begun; until [ -e go ]; do sleep 0.01; done; echo ended");
    let first = world.again().await;
    let begun = async {
        let sandbox = first.create(&sandbox_id("one"), &Default::default()).await.unwrap();
        tokio::select! {
            ended = sandbox.execute(request.clone(), &()) => panic!("{ended:?}"),
            said = says(&*sandbox, "until [ -e begun ]; do sleep 0.01; done") => said,
        }
    };
    assert_eq!(begun.await, "");
    drop(first);
    let sandbox = world.docker.find(&sandbox_id("one")).await.unwrap().expect("it lives on");
    let (executed, _) = tokio::join!(sandbox.execute(request, &()), says(&*sandbox, "touch go"));
    let executed = executed.unwrap();
    assert_eq!((executed.end, &executed.stdout[..]), (End::Exited(0), &b"ended\n"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ended_is_made_anew_over_its_disk() {
    let sandbox = single().await;
    assert_eq!(sandbox.outcome(), CreateOutcome::Made);
    assert_eq!(says(&*sandbox, "echo kept > f; echo kept > /tmp/f; echo kept > ~/f").await, "");
    let running = sandbox.execute(shell("sleep 60"), &());
    let killing = async { sandbox.world.daemon.docker(&["kill", &sandbox.world.container("one")]) };
    let (lost, _) = tokio::join!(running, killing);
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    assert!(!sandbox.is_alive());
    assert!(sandbox.world.docker.find(&sandbox_id("one")).await.unwrap().is_none());
    let listed = sandbox.world.docker.list().await.unwrap();
    assert_eq!((listed.len(), listed[0].state), (1, LifecycleState::Dead));
    let again = sandbox.world.sandbox("one").await;
    assert_eq!(again.outcome(), CreateOutcome::Restarted);
    assert_ne!(again.generation(), sandbox.generation());
    assert_eq!(says(&*again, "cat f /tmp/f ~/f").await, "kept\nkept\nkept\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_starts_again_loses_lives_and_no_disks() {
    let daemon = tokio::task::spawn_blocking(Daemon::start).await.unwrap();
    let world = world_on(Arc::new(daemon)).await;
    let sandbox = world.sandbox("one").await;
    assert_eq!(says(&*sandbox, "echo kept > f").await, "");
    tokio::task::block_in_place(|| world.daemon.restart());
    assert!(matches!(sandbox.execute(shell("true"), &()).await, Err(Error::Lost { .. })));
    let again = world.sandbox("one").await;
    assert_eq!(again.outcome(), CreateOutcome::Restarted);
    assert_ne!(again.generation(), sandbox.generation());
    assert_eq!(says(&*again, "cat f").await, "kept\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_is_made_again_and_the_old_handle_is_lost() {
    let sandbox = single().await;
    let bridges = sandbox.world.daemon.docker(&["top", &sandbox.world.container("one")]);
    let bridge = bridges.lines().find(|line| line.contains("--bridge")).expect("a bridge");
    let pid: i32 = bridge.split_whitespace().nth(1).unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(matches!(sandbox.execute(shell("sleep 60"), &()).await, Err(Error::Lost { .. })));
    let again = sandbox.world.sandbox("one").await;
    assert_eq!(
        (again.outcome(), again.generation()),
        (CreateOutcome::Attached, sandbox.generation())
    );
    assert_eq!(says(&*again, "echo fine").await, "fine\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_somebody_else_paused_goes_on_when_it_is_needed() {
    let sandbox = single().await;
    let name = sandbox.world.container("one");
    sandbox.world.daemon.docker(&["pause", &name]);
    assert_eq!(says(&*sandbox, "echo fine").await, "fine\n");
    sandbox.world.daemon.docker(&["pause", &name]);
    let other = sandbox.world.again().await;
    let found = other.find(&sandbox_id("one")).await.unwrap().unwrap();
    assert_eq!(other.list().await.unwrap()[0].state, LifecycleState::Frozen);
    assert_eq!(found.generation(), sandbox.generation());
    assert_eq!(says(&*found, "echo fine").await, "fine\n");
}

/// Of a pause that failed, and of one that the daemon did not make, because it was late to
/// hear of an earlier one's end.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_was_none_is_tried_again() {
    let world = world().await;
    let id = sandbox_id("one");
    let sandbox = world.sandbox("one").await;
    let refusals = [
        ("500 Internal Server Error", "refused"),
        ("409 Conflict", "Container x is already paused"),
    ];
    for (status, why) in refusals {
        let pausing = Gateway::new(&world.daemon.socket, On::TheWayBack, |request| {
            request.starts_with("POST /") && request.contains("/pause")
        });
        let elsewhere = world.on(&pausing.socket).await;
        let failing = async {
            pausing.reached().await;
            world.daemon.docker(&["unpause", &world.container("one")]);
            pausing.refuse(status, why);
        };
        let (suspended, ()) = tokio::join!(elsewhere.suspend(&id, Suspend::Frozen), failing);
        suspended.unwrap();
        assert_eq!(world.docker.list().await.unwrap()[0].state, LifecycleState::Frozen, "{why}");
        assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
    }
}

/// The daemon has it for paused, its runtime knows better.
#[tokio::test(flavor = "multi_thread")]
async fn what_can_t_go_on_because_it_runs_is_awake() {
    let world = world().await;
    let id = sandbox_id("one");
    drop(world.sandbox("one").await);
    world.docker.suspend(&id, Suspend::Frozen).await.unwrap();
    let waking = Gateway::new(&world.daemon.socket, On::TheWayBack, |request| {
        request.starts_with("POST /") && request.contains("/unpause")
    });
    let elsewhere = world.on(&waking.socket).await;
    let failing = async {
        waking.reached().await;
        let why = "Cannot unpause container x: cannot resume a running process: unknown";
        waking.refuse("500 Internal Server Error", why);
    };
    let (found, ()) = tokio::join!(elsewhere.find(&id), failing);
    assert_eq!(says(&*found.unwrap().unwrap(), "echo alive").await, "alive\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_one_is_destroyed_by_whoever_opens_the_backend_next() {
    let world = world().await;
    let mut spec = outrigger_sandbox::CreateSpec::default();
    spec.lifetime.age_ms_max = Some(1);
    {
        // Its keeper may be quicker than this.
        let _ = world.docker.create(&sandbox_id("old"), &spec).await;
    }
    let other = world.again().await;
    let begun = std::time::Instant::now();
    // All of it: its record goes first. What stays is the guest program and its record.
    while !other.list().await.unwrap().is_empty() || world.owned("volume").len() > 2 {
        assert!(begun.elapsed().as_secs() < 60, "it stays");
        // poll: lifetimes are seen to in the background.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_a_guests_place_and_says_nothing_is_waited_for_once() {
    let world = world().await;
    let sandbox = world.sandbox("one").await;
    let line = "rm /run/outrigger/guest; \
                setsid /var/outrigger/guest/outrigger-guest --listen /run/outrigger/guest \
                  --generation other </dev/null >/dev/null 2>&1 & \
                while ! [ -S /run/outrigger/guest ]; do sleep 0.05; done; kill -STOP $!; echo there";
    assert_eq!(says(&*sandbox, line).await, "there\n");
    let again = world.again().await;
    let id = sandbox_id("one");
    let found = tokio::time::timeout(std::time::Duration::from_secs(200), again.find(&id)).await;
    let found = found.expect("one deadline for all attempts").unwrap_err();
    assert!(matches!(found, Error::Lost { .. }), "{found}");
    world.docker.destroy(&id).await.unwrap();
}
