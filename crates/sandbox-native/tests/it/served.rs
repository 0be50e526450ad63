//! Trees that are served into sandboxes.

use std::sync::Arc;

use std::time::Duration;

use outrigger_sandbox::{Backend, CreateSpec, FileOp, FileReply, Sandbox};
use outrigger_sandbox_native::Native;
use outrigger_sandbox_testing::{FakeTree, FakeTrees};
use tokio::task::JoinSet;

use crate::support::*;

/// A sandbox into which a tree is served.
struct Serving {
    world: World,
    tree: Arc<FakeTree>,
    sandbox: Arc<dyn Sandbox>,
}

fn spec() -> CreateSpec {
    CreateSpec { served: vec!["/memory".to_owned(), "/skills".to_owned()], ..CreateSpec::default() }
}

async fn serving() -> Serving {
    let trees = Arc::new(FakeTrees::new(&["/memory", "/skills"]));
    let tree = trees.tree(&sandbox_id("one"));
    let world = world_with(|config| config.trees = Some(trees)).await;
    let sandbox = world.native.create(&sandbox_id("one"), &spec()).await.unwrap();
    Serving { world, tree, sandbox }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_and_written_as_on_a_disk() {
    let Serving { world: _world, tree, sandbox } = serving().await;
    tree.put("/memory/a/one", "first\n");
    for (line, expected) in [
        ("cat /memory/a/one", "first\n"),
        ("ls -p /memory", "a/\n"),
        ("stat -c '%F %s %a %U' /memory/a/one", "regular file 6 644 agent\n"),
        ("echo x > /memory/new; cat /memory/new", "x\n"),
        ("echo y >> /memory/new; cat /memory/new", "x\ny\n"),
        ("sed -i s/first/second/ /memory/a/one; cat /memory/a/one", "second\n"),
        ("mkdir /memory/b && mv /memory/a/one /memory/b/two && cat /memory/b/two", "second\n"),
        ("rm -r /memory/a; ls /memory", "b\nnew\n"),
        ("python3 -c 'open(\"/memory/p\",\"w\").write(\"py\")'; cat /memory/p", "py"),
    ] {
        assert_eq!(says(&*sandbox, line).await, expected, "{line}");
    }
    assert_eq!(tree.paths(), ["/memory/b", "/memory/b/two", "/memory/new", "/memory/p"]);
}

/// Waits for what must happen soon.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(40), what).await.expect("it happens soon")
}

/// Does something while the test goes on.
fn beside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinSet<T> {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    tasks
}

/// Waits until a tree was asked more often than that.
async fn asked(tree: &FakeTree, before: u64) {
    soon(async {
        while tree.asked() == before {
            // poll: a tree tells nobody
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_engine_that_serves_everything_fails_and_works_again_with_another() {
    let Serving { world, tree, sandbox } = serving().await;
    tree.put("/memory/f", "x\n");
    let id = sandbox.id().clone();
    let other = world.again().await;
    let silent = other.find(&id).await.unwrap().expect("it lives");
    assert_eq!(says(&*silent, "cat /memory/f").await, "x\n", "another one serves");
    tree.hold("/memory");
    let before = tree.asked();
    let mut waits = {
        let silent = Arc::clone(&silent);
        let line = "cat /memory/f || cat /memory/g; echo y > /memory/h; echo over";
        beside(async move { says(&*silent, line).await })
    };
    asked(&tree, before).await;
    // A connection lasts as long as somebody has a handle of it.
    drop(sandbox);
    let said = soon(waits.join_next()).await.unwrap().unwrap();
    assert_eq!(said.matches("Input/output error").count(), 3, "{said}");
    assert!(said.ends_with("over\n"), "{said}");
    tree.release();
    let trees = Arc::new(FakeTrees::new(&["/memory", "/skills"]));
    trees.set(&id, Some(Arc::clone(&tree)));
    let mut config = config(world.state.path());
    config.trees = Some(trees);
    let again = Native::open(config).await.unwrap();
    let _serves = again.find(&id).await.unwrap().expect("it lives");
    assert_eq!(says(&*silent, "cat /memory/f; ls /memory").await, "x\nf\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn file_operations_reach_it_and_hold_up_no_end() {
    let Serving { world, tree, sandbox } = serving().await;
    tree.put("/memory/f", "x\n");
    let read = || FileOp::Read { path: "/memory/f".to_owned(), offset: 0, bytes_max: 10 };
    let bytes = FileReply::Bytes { bytes: b"x\n".to_vec(), total_bytes: 2 };
    assert_eq!(files(&*sandbox, read()).await.unwrap(), bytes);
    tree.hold("/memory");
    let before = tree.asked();
    let mut waits = {
        let sandbox = Arc::clone(&sandbox);
        beside(async move { sandbox.files(read()).await })
    };
    asked(&tree, before).await;
    soon(world.native.destroy(sandbox.id())).await.unwrap();
    assert!(soon(waits.join_next()).await.unwrap().unwrap().is_err(), "it is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_device_is_the_guests_alone_and_its_end_is_that_of_all_that_wait() {
    let Serving { world, tree, sandbox } = serving().await;
    tree.put("/memory/f", "x\n");
    let holders = || {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let spawner = spawner_of(world.state.path());
        let ours = |pid: &i32| *pid == spawner || parents(*pid).contains(&spawner);
        let holds = |pid: &i32| {
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            open.filter_map(|fd| std::fs::read_link(fd.path()).ok())
                .any(|target| target.as_os_str() == "/dev/fuse")
        };
        pids.filter(ours).filter(holds).collect::<Vec<_>>()
    };
    let guest = guest_of(world.state.path()).as_raw_nonzero().get();
    tree.hold("/memory");
    let before = tree.asked();
    let mut waits = {
        let sandbox = Arc::clone(&sandbox);
        beside(async move { sandbox.execute(shell("cat /memory/f"), &()).await })
    };
    asked(&tree, before).await;
    assert_eq!(holders(), [guest]);
    let guest = guest_of(world.state.path());
    rustix::process::kill_process(guest, rustix::process::Signal::KILL).unwrap();
    assert!(soon(waits.join_next()).await.unwrap().unwrap().is_err(), "it is lost");
    tree.release();
    let again = soon(world.native.create(sandbox.id(), &spec())).await.unwrap();
    assert_eq!(says(&*again, "cat /memory/f").await, "x\n");
}

/// The parent of a process, its parent, and so on.
fn parents(pid: i32) -> Vec<i32> {
    let parent = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok()
    };
    std::iter::successors(parent(&pid), parent).collect()
}
