//! Engines, spawners and guests that end at the wrong moment.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::*;
use outrigger_sandbox::{Backend, End, Error, ExecId, FileOp, FileReply};
use outrigger_sandbox_native::{Config, Launch};

fn exec_id(name: &str) -> ExecId {
    ExecId::new(name).unwrap()
}

#[tokio::test]
async fn another_instance_attaches_while_a_command_runs_and_after() {
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
    assert_eq!(other.execute(request, &()).await.unwrap(), one);
    assert_eq!(says(&*sandbox, "cat count").await, "run\n");
}

#[tokio::test]
async fn a_killed_engine_loses_nothing() {
    let world = world().await;
    let line = "echo begun; until [ -e go ]; do sleep 0.01; done; echo ended; echo run >> count";
    let mut engine = Command::new(example("engine"))
        .arg("run")
        .arg(world.state.path().join("state"))
        .arg(example("spawner"))
        .args(["one", "long", line])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(engine.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "begun");
    engine.kill().unwrap();
    engine.wait().unwrap();
    let sandbox = world.native.find(&sandbox_id("one")).await.unwrap().expect("it lives on");
    let mut request = shell("echo another command, which must not run");
    request.id = exec_id("long");
    let (executed, _) = tokio::join!(run(&*sandbox, request), says(&*sandbox, "touch go"));
    assert_eq!(
        (executed.end, executed.stdout.as_slice()),
        (End::Exited(0), &b"begun\nended\n"[..])
    );
    assert_eq!(says(&*sandbox, "cat count").await, "run\n");
}

#[tokio::test]
async fn a_dead_guest_is_made_anew_over_its_disk() {
    let sandbox = single().await;
    assert_eq!(
        says(&*sandbox, "echo kept > file; echo also > /tmp/file; echo home > ~/file").await,
        ""
    );
    let guest = guest_of(sandbox.world.state.path());
    rustix::process::kill_process(guest, rustix::process::Signal::KILL).unwrap();
    let lost = sandbox.execute(shell("sleep 60"), &()).await;
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    let anew = sandbox.world.sandbox("one").await;
    assert_ne!(anew.generation(), sandbox.generation());
    assert_eq!(
        says(&*anew, "cat file /tmp/file ~/file; echo more >> file; cat file").await,
        "kept\nalso\nhome\nkept\nmore\n"
    );
}

#[tokio::test]
async fn what_waits_to_become_a_sandbox_saves_time_and_nothing_else() {
    let sandbox = single().await;
    let state = sandbox.world.state.path();
    let guest = guest_of(state);
    // With those who make them; each time all are there, in whatever state, they go.
    for name in ["two", "three", "four"] {
        let others =
            || children_of(state).into_iter().filter(|pid| *pid != guest).collect::<Vec<_>>();
        for _ in 0..10_000 {
            if others().iter().any(waits) {
                break;
            }
            // poll: what was taken is made up for after the answer
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let others = others();
        assert!(others.iter().any(waits), "something waits");
        for pid in &others {
            let _ = rustix::process::kill_process(*pid, rustix::process::Signal::KILL);
        }
        // One that was killed ends when it runs next, and looks alive until then.
        for pid in others {
            let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
            let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
            for _ in 0..10_000 {
                if !runs() {
                    break;
                }
                // poll: for the kernel to end it
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(!runs(), "it was killed");
        }
        let next = sandbox.world.sandbox(name).await;
        assert_eq!(says(&*next, "echo here").await, "here\n");
        sandbox.world.native.destroy(&sandbox_id(name)).await.unwrap();
    }
    assert_eq!(says(&*sandbox, "echo still").await, "still\n");
}

#[tokio::test]
async fn whoever_makes_things_ahead_may_end_and_nothing_of_it_is_left() {
    let sandbox = single().await;
    let state = sandbox.world.state.path();
    let guest = guest_of(state);
    let stat = |pid: &rustix::process::Pid| {
        std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default()
    };
    let children = || children_of(state).into_iter().filter(|pid| *pid != guest);
    // The worker, and the one of which guests are cloned.
    let helpers = || {
        let living = children().filter(|pid| !stat(pid).contains(") Z "));
        let (waiting, helpers): (Vec<_>, Vec<_>) = living.partition(waits);
        (!waiting.is_empty() && helpers.len() == 2).then_some(helpers)
    };
    let whole = async |what: &str, over: Option<rustix::process::Pid>| {
        for _ in 0..200 {
            // One that was killed ends when it runs next, and is there until it was waited for.
            if let Some(helpers) = helpers()
                && !children().any(|child| Some(child) == over)
            {
                return helpers;
            }
            // What is missing is seen when something is taken.
            let next = sandbox.world.sandbox("next").await;
            assert_eq!(says(&*next, "echo here").await, "here\n", "{what}");
            sandbox.world.native.destroy(&sandbox_id("next")).await.unwrap();
            // poll: what was taken is made up for after the answer
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what}: {:?}", children_of(state).iter().map(stat).collect::<Vec<_>>());
    };
    for number in 0..2 {
        let helpers = whole("before", None).await;
        rustix::process::kill_process(helpers[number], rustix::process::Signal::KILL).unwrap();
        whole(&format!("after {number}"), Some(helpers[number])).await;
    }
    assert_eq!(says(&*sandbox, "echo still").await, "still\n");
}

/// Whether it waits to become a sandbox: it is a guest, and has no ids yet.
fn waits(pid: &rustix::process::Pid) -> bool {
    let of = |file: &str| format!("/proc/{}/{file}", pid.as_raw_nonzero());
    let program = std::fs::read_link(of("exe")).unwrap_or_default();
    program.to_string_lossy().contains("outrigger-guest")
        && std::fs::read_to_string(of("uid_map")).is_ok_and(|map| map.is_empty())
}

#[tokio::test]
async fn guests_end_with_their_spawner_and_another_one_finds_their_disks() {
    let sandbox = single().await;
    assert_eq!(says(&*sandbox, "echo kept > file").await, "");
    // With the rights of another user for a moment, after which it is told of its parent's
    // end as before.
    let read = FileOp::Read { path: "file".to_owned(), offset: 0, bytes_max: 100 };
    let read = sandbox.files(read).await.unwrap();
    assert_eq!(read, FileReply::Bytes { bytes: b"kept\n".to_vec(), total_bytes: 5 });
    let guest = guest_of(sandbox.world.state.path()).as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{guest}/status")).unwrap();
    let ids: Vec<&str> = status
        .lines()
        .filter(|line| line.starts_with("Uid:") || line.starts_with("Gid:"))
        .flat_map(|line| line.split_whitespace().skip(1))
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "its own user in every respect: {ids:?}");
    let spawner = rustix::process::Pid::from_raw(spawner_of(sandbox.world.state.path())).unwrap();
    rustix::process::kill_process(spawner, rustix::process::Signal::KILL).unwrap();
    let lost = sandbox.execute(shell("sleep 60"), &()).await;
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
    let world = &sandbox.world;
    let all = world.native.list().await.unwrap();
    let names: Vec<_> = all.into_iter().map(|listed| listed.id).collect();
    assert_eq!(names, [sandbox_id("one")]);
    assert!(world.native.find(&sandbox_id("one")).await.unwrap().is_none());
    let anew = world.sandbox("one").await;
    assert_ne!(anew.generation(), sandbox.generation());
    assert_eq!(says(&*anew, "cat file").await, "kept\n");
}

#[tokio::test]
async fn a_destroyed_disk_is_gone_whatever_is_on_it() {
    let sandbox = single().await;
    let line = "i=0; while [ $i -lt 200 ]; do mkdir d; cd d; i=$((i+1)); done; touch f; ln -s / link; cd /workspace; \
                mkdir -m 0 locked; mkfifo pipe; ln -s /etc/passwd link";
    assert_eq!(says(&*sandbox, line).await, "");
    let world = &sandbox.world;
    world.native.destroy(&sandbox_id("one")).await.unwrap();
    let state = world.state.path().join("state");
    for dir in ["sandboxes", "trash"] {
        let left: Vec<_> = std::fs::read_dir(state.join(dir)).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert!(std::path::Path::new("/etc/passwd").exists());
}

#[tokio::test]
async fn a_daemon_outlives_its_command_and_not_its_sandbox() {
    let sandbox = single().await;
    let line = "(while :; do echo tick; date +%s%N > tick; sleep 0.02; done) & echo started";
    let executed = run(&*sandbox, shell(line)).await;
    assert_eq!(executed.end, End::Exited(0));
    // It goes on although nobody reads its output any more.
    let changes =
        "a=$(cat tick); until [ \"$(cat tick)\" != \"$a\" ]; do sleep 0.01; done; echo ticks";
    for _ in 0..3 {
        assert_eq!(says(&*sandbox, changes).await, "ticks\n");
    }
}

#[tokio::test]
async fn a_state_directory_that_others_can_enter_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let state = tempfile::tempdir().unwrap();
    let dir = state.path().join("state");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let opened = outrigger_sandbox_native::Native::open(config(state.path())).await;
    assert!(matches!(opened, Err(Error::Backend(reason)) if reason.contains("0700")));
}

#[tokio::test]
async fn a_launch_that_is_no_spawner_says_so() {
    for (program, part) in
        [("/bin/true", "without becoming a spawner"), ("/no/such/program", "cannot start")]
    {
        let world = world_with(|config| {
            let args = Vec::new();
            config.launcher = Arc::new(Launch { program: program.into(), args });
        })
        .await;
        let error = world
            .native
            .create(&sandbox_id("x"), &outrigger_sandbox::CreateSpec::default())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// A spawner that sees version 1 of cgroups alone, if this host has its freezer.
fn with_freezer(config: &mut Config) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let has = |line: &str| {
        line.split_once(" - ").is_some_and(|(_, right)| {
            let mut right = right.split(' ');
            right.next() == Some("cgroup") && right.next_back().unwrap().contains("freezer")
        })
    };
    if !mounts.lines().any(has) {
        return false;
    }
    let script = "umount --all --types cgroup2 && exec \"$0\" \"$@\"";
    let spawner = launch().program.into_os_string();
    let args = ["--mount", "sh", "-c", script].map(Into::into).into_iter().chain([spawner]);
    let program = "/usr/bin/unshare".into();
    config.launcher = Arc::new(Launch { program, args: args.collect() });
    true
}

/// Does something while the guest of a sandbox, and all of its own, is stopped again and
/// again, as it could do itself if it turned against its spawner. Gives its group.
async fn trapped(world: &World, freezer: bool, act: impl Future<Output = ()>) -> PathBuf {
    let sandbox = world.sandbox("one").await;
    assert_eq!(says(&*sandbox, "(sleep 1000 > /dev/null 2>&1 &); echo left").await, "left\n");
    let guest = guest_of(world.state.path()).as_raw_nonzero().get();
    let controller = if freezer { "freezer" } else { "memory" };
    let group = crate::limits::group_of(guest, controller).0;
    let trap = group.join("trap");
    std::fs::create_dir(&trap).expect("a cgroup: run this test as root");
    std::fs::write(trap.join("cgroup.procs"), guest.to_string()).unwrap();
    let over = AtomicBool::new(false);
    let (file, text) = if freezer { ("freezer.state", "FROZEN") } else { ("cgroup.freeze", "1") };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = std::fs::write(trap.join(file), text);
            }
        });
        let limit = Duration::from_secs(60);
        let done = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(tokio::time::timeout(limit, act))
        });
        over.store(true, Ordering::Relaxed);
        done.expect("it is not waited for for ever");
    });
    group
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_stopped_again_and_again_is_destroyed_all_the_same() {
    let mut freezer = false;
    let world = world_with(|config| freezer = with_freezer(config)).await;
    let destroyed = async { world.native.destroy(&sandbox_id("one")).await.unwrap() };
    let group = trapped(&world, freezer, destroyed).await;
    assert!(!group.exists(), "{} is there", group.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_stopped_again_and_again_does_not_keep_its_spawner() {
    let mut freezer = false;
    let world = world_with(|config| freezer = with_freezer(config)).await;
    let state = world.state.path().join("state");
    let ended = async {
        // Without its socket a spawner ends.
        std::fs::remove_file(state.join("spawner.sock")).unwrap();
        let lock = std::fs::File::open(state.join("spawner.lock")).unwrap();
        while lock.try_lock().is_err() {
            // poll: the spawner looks now and then
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let group = trapped(&world, freezer, ended).await;
    assert!(!group.exists(), "{} is there", group.display());
}
