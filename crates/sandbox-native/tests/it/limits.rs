//! Memory, processes and CPU.

use std::path::{Path, PathBuf};

use crate::support::*;
use outrigger_sandbox::{Backend, CreateSpec, End};

/// Takes more memory than the sandboxes here have.
const HOG: &str = "perl -e '$x = \"x\" x 400_000_000; print length $x'";

#[tokio::test]
async fn memory_kills_the_command_and_not_the_sandbox() {
    let world = world().await;
    assert!(
        world.native.capabilities().resource_limits,
        "this test needs writable cgroups: run it as root"
    );
    let spec = CreateSpec { memory_bytes_max: 64 << 20, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("small"), &spec).await.unwrap();
    for line in [HOG.to_owned(), format!("{HOG}; exit $?")] {
        assert_eq!(run(&*sandbox, shell(&line)).await.end, End::OutOfMemory, "{line}");
    }
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
    // A kill that memory has nothing to do with is told apart.
    assert_eq!(run(&*sandbox, shell("kill -9 $$")).await.end, End::Signalled(9));
}

#[tokio::test]
async fn commands_go_before_their_guest_when_memory_runs_out() {
    let sandbox = single().await;
    assert_eq!(
        says(&*sandbox, "cat /proc/self/oom_score_adj /proc/1/oom_score_adj").await,
        "500\n0\n"
    );
    // Memory that is no process's own, so that the kernel's choice is by that alone.
    let spec = CreateSpec { memory_bytes_max: 64 << 20, ..CreateSpec::default() };
    let small = sandbox.world.native.create(&sandbox_id("small"), &spec).await.unwrap();
    let file = "import os; f = os.memfd_create(''); b = bytes(1 << 20)\nwhile True: os.write(f, b)";
    let command = argv(&["python3", "-c", file]);
    assert_eq!(run(&*small, command).await.end, End::OutOfMemory);
    assert_eq!(says(&*small, "echo alive").await, "alive\n");
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_command() {
    let world = world().await;
    let spec = CreateSpec { pids_max: 64, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("bomb"), &spec).await.unwrap();
    let mut bomb = shell("b() { b | b & }; b; sleep 60");
    bomb.deadline_ms = 1_000;
    assert_eq!(run(&*sandbox, bomb).await.end, End::Deadline);
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
}

#[tokio::test]
async fn processes_are_as_many_as_allowed_and_the_next_is_refused() {
    let world = world().await;
    let spec = CreateSpec { pids_max: 64, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("wide"), &spec).await.unwrap();
    // Up to ten times as many as allowed; none ends before the last was tried. What is
    // alive is counted from outside of them too, by the process that made them.
    let bomb = "my ($made, @children) = 0; \
        while ($made < 640) { \
            my $child = fork; \
            if (!defined $child) { printf \"%s after %d\\n\", ($!{EAGAIN} ? 'EAGAIN' : $!), $made; last } \
            if (!$child) { sleep 600; exit } \
            $made++; push @children, $child; \
        } \
        my @alive = grep { m(/proc/[0-9]+$) && (stat)[4] == 1000 } glob '/proc/*'; \
        printf \"%d alive\\n\", scalar @alive; \
        kill 9, @children;";
    let executed = run(&*sandbox, argv(&["perl", "-MErrno", "-e", bomb])).await;
    let said = String::from_utf8_lossy(&executed.stdout).into_owned();
    // It is one of the 64 itself.
    assert_eq!(said, "EAGAIN after 63\n64 alive\n");
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
    // The whole sandbox is bounded as well, whoever its processes belong to.
    let guest = guest_of(world.state.path()).as_raw_nonzero().get();
    let max = setting(guest, "pids", "pids.max");
    assert_eq!(max, (64 + outrigger_sandbox_native::limits::GUEST_PROCESSES).to_string());
}

#[tokio::test]
async fn half_a_processor_is_half_of_each_period() {
    let world = world().await;
    let spec = CreateSpec { cpu_millis_max: 500, ..CreateSpec::default() };
    let _sandbox = world.native.create(&sandbox_id("half"), &spec).await.unwrap();
    assert_eq!(share(&world), "5000 10000");
}

/// The CPU that the only sandbox may use, and of how much, in microseconds.
fn share(world: &World) -> String {
    let guest = guest_of(world.state.path()).as_raw_nonzero().get();
    match group_of(guest, "cpu") {
        (dir, Version::Two) => value(&dir, "cpu.max"),
        (dir, Version::One) => {
            format!("{} {}", value(&dir, "cpu.cfs_quota_us"), value(&dir, "cpu.cfs_period_us"))
        }
    }
}

/// Of control groups.
pub(crate) enum Version {
    One,
    Two,
}

fn setting(pid: i32, controller: &str, file: &str) -> String {
    value(&group_of(pid, controller).0, file)
}

fn value(dir: &Path, file: &str) -> String {
    let path = dir.join(file);
    let text = std::fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display())).trim_end().to_owned()
}

/// The group in which a controller bounds a process; see cgroups(7). A controller is
/// in version 1 or in version 2, never in both.
pub(crate) fn group_of(pid: i32, controller: &str) -> (PathBuf, Version) {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let path = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            wanted(parts.next()?).then(|| parts.next())?
        })
    };
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let (path, version) = match path(&has) {
        Some(path) => (path, Version::One),
        None => (path(&str::is_empty).expect("a group of version 2"), Version::Two),
    };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let found = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let right = match version {
            Version::One => right.next()? == "cgroup" && has(right.nth(1)?),
            Version::Two => right.next()? == "cgroup2",
        };
        let below = path.strip_prefix(root.trim_end_matches('/'))?;
        right.then(|| Path::new(point).join(below.trim_start_matches('/')))
    });
    (found.unwrap_or_else(|| panic!("{controller} is mounted nowhere")), version)
}
