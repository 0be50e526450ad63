//! The limit of a sandbox's disk.

use std::time::{Duration, Instant};

use crate::support::*;
use outrigger_sandbox::{
    Backend, CreateOutcome, CreateSpec, End, FileErrorKind, FileOp, Isolation, Precondition,
    WriteMode,
};

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn a_command_that_fills_the_disk_is_killed_and_the_sandbox_goes_on() {
    let world = world().await;
    let spec = CreateSpec { disk_bytes_max: 32 * MIB, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    let line = "i=0; while :; do head -c 4000000 /dev/zero > f$i; i=$((i+1)); sleep 0.1; done";
    let executed = run(&*sandbox, shell(line)).await;
    assert_eq!(executed.end, End::DiskFull);
    assert_eq!(says(&*sandbox, "rm -f f*; echo room").await, "room\n");
    assert_eq!(
        says(&*sandbox, "head -c 4000000 /dev/zero > f; sleep 1; echo fits").await,
        "fits\n"
    );
}

#[tokio::test]
async fn what_is_written_into_a_full_disk_is_refused_and_the_sandbox_goes_on() {
    let world = world().await;
    let spec = CreateSpec { disk_bytes_max: 16 * MIB, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    let write = |mode| FileOp::Write {
        id: fresh(),
        path: "large".to_owned(),
        contents: vec![0; 1 << 20],
        mode,
        executable: None,
        modified_ns: None,
        precondition: Precondition::None,
    };
    files(&*sandbox, write(WriteMode::Create)).await.unwrap();
    let limit = Instant::now() + Duration::from_secs(30);
    let refused = loop {
        if let Err(error) = files(&*sandbox, write(WriteMode::Append)).await {
            break error;
        }
        assert!(Instant::now() < limit, "it takes everything");
        // poll: the spawner looks again and again
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((refused.kind, &*refused.path), (FileErrorKind::NoSpace, "large"));
    assert!(sandbox.is_alive());
    assert_eq!(says(&*sandbox, "rm large; echo room").await, "room\n");
    while files(&*sandbox, write(WriteMode::Replace)).await.is_err() {
        assert!(Instant::now() < limit, "there is no room again");
        // poll: until a moment after the last look that found it full
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn files_are_counted_too() {
    let world = world().await;
    let spec = CreateSpec { disk_inodes_max: 2_000, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    let line = "i=0; while :; do mkdir $i; (cd $i; touch $(seq 100)); i=$((i+1)); sleep 0.05; done";
    assert_eq!(run(&*sandbox, shell(line)).await.end, End::DiskFull);
}

#[tokio::test]
async fn one_file_is_not_larger_than_the_disk() {
    let world = world().await;
    let spec = CreateSpec { disk_bytes_max: 8 * MIB, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    let executed = run(&*sandbox, shell("truncate -s 9000000 f; echo $?; stat -c %s f")).await;
    let said = String::from_utf8_lossy(&executed.stdout).into_owned();
    assert!(!said.contains("9000000"), "{said}");
}

#[tokio::test]
async fn a_sandbox_that_goes_on_growing_is_killed() {
    let world = world().await;
    let spec = CreateSpec { disk_bytes_max: 16 * MIB, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    // It goes on after its command ended, so there is no command to kill.
    let line = "(i=0; while :; do head -c 4000000 /dev/zero > f$i; i=$((i+1)); sleep 0.1; done) \
                > /dev/null 2>&1 & echo started";
    assert_eq!(says(&*sandbox, line).await, "started\n");
    let limit = Instant::now() + Duration::from_secs(30);
    while sandbox.is_alive() {
        assert!(Instant::now() < limit, "it lives on");
        // poll: the spawner looks again and again
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let again = world.native.create(&sandbox_id("one"), &CreateSpec::default()).await.unwrap();
    assert_eq!(again.outcome(), CreateOutcome::Restarted);
    assert_eq!(says(&*again, "rm f*; echo room").await, "room\n");
}

/// Files of 4 MB, one after the other, each of which is written, given to `keep` and
/// never seen by a name again.
fn unnamed(keep: &str) -> String {
    format!(
        "import mmap, os, time\n\
         kept = []\n\
         while True:\n\
         \tf = open('f', 'w+b', 0); os.unlink('f'); f.write(bytes(4000000))\n\
         \tkept.append({keep}); f = None; time.sleep(0.1)\n"
    )
}

#[tokio::test]
async fn files_that_have_no_name_any_more_are_counted_too() {
    let world = world().await;
    let spec = CreateSpec { disk_bytes_max: 32 * MIB, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    let open = unnamed("f");
    assert_eq!(run(&*sandbox, argv(&["python3", "-c", &open])).await.end, End::DiskFull);
    assert_eq!(says(&*sandbox, "echo room").await, "room\n");
    // Among what is mapped they are looked for with rights on the host alone.
    if world.native.capabilities().isolation == Isolation::RootRange {
        let mapped = unnamed("mmap.mmap(f.fileno(), 1)");
        assert_eq!(run(&*sandbox, argv(&["python3", "-c", &mapped])).await.end, End::DiskFull);
    }
    // What is in memory is no matter of the disk.
    let memory = "exec 3> /dev/shm/f; rm /dev/shm/f; head -c 60000000 /dev/zero >&3; \
                  head -c 20000000 /dev/zero > f; sleep 2; echo fits";
    let spec = CreateSpec { disk_bytes_max: 70 * MIB, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("two"), &spec).await.unwrap();
    assert_eq!(says(&*sandbox, memory).await, "fits\n");
}

#[tokio::test]
async fn names_beyond_measure_are_no_way_around_the_limit() {
    let world = world().await;
    let spec = CreateSpec { disk_inodes_max: 200, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    let link = "import os, time\nopen('f', 'w')\nfor i in range(20000): os.link('f', str(i))\n\
                open('g', 'wb').write(bytes(50000000))\ntime.sleep(300)\n";
    let other = world.native.create(&sandbox_id("two"), &spec).await.unwrap();
    let many = "i=0; while :; do touch $(seq $i $((i+50))); i=$((i+50)); sleep 0.05; done";
    let (linked, made) =
        tokio::join!(run(&*sandbox, argv(&["python3", "-c", link])), run(&*other, shell(many)));
    assert_eq!((linked.end, made.end), (End::DiskFull, End::DiskFull));
}

#[tokio::test]
async fn room_is_not_taken_without_being_written() {
    let world = world().await;
    let spec = CreateSpec { disk_bytes_max: 8 * MIB, ..CreateSpec::default() };
    let sandbox = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    // With the size kept, the limit of one file says nothing.
    let take = ": > f; fallocate --keep-size -l 1G f 2> /dev/null; echo $?; stat -c %b f";
    assert_eq!(says(&*sandbox, take).await, "1\n0\n");
    // What the C library does instead is written, and one file is bounded.
    let ahead = "import os\nf = os.open('g', os.O_RDWR | os.O_CREAT)\n\
                 os.posix_fallocate(f, 0, 1 << 20)\nprint(os.fstat(f).st_size)";
    let executed = run(&*sandbox, argv(&["python3", "-c", ahead])).await;
    assert_eq!(String::from_utf8_lossy(&executed.stdout), "1048576\n");
}
