//! Memory, processes and CPU.

use crate::support::*;
use outrigger_sandbox::{Backend, End, Spec};

#[tokio::test]
async fn memory_kills_the_command_and_not_the_sandbox() {
    let world = world().await;
    assert!(
        world.native.capabilities().resource_limits,
        "this test needs writable cgroups: run it as root"
    );
    let spec = Spec { memory_bytes_max: 64 << 20, ..Spec::default() };
    let sandbox = world.native.create(&sandbox_id("small"), &spec).await.unwrap();
    let hog = "perl -e '$x = \"x\" x 400_000_000; print length $x'";
    for line in [hog.to_owned(), format!("{hog}; exit $?")] {
        assert_eq!(run(&*sandbox, shell(&line)).await.end, End::OutOfMemory, "{line}");
    }
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
    // A kill that memory has nothing to do with is told apart.
    assert_eq!(run(&*sandbox, shell("kill -9 $$")).await.end, End::Signalled(9));
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_command() {
    let world = world().await;
    let spec = Spec { pids_max: 64, ..Spec::default() };
    let sandbox = world.native.create(&sandbox_id("bomb"), &spec).await.unwrap();
    let mut bomb = shell("b() { b | b & }; b; sleep 60");
    bomb.deadline_ms = 1_000;
    assert_eq!(run(&*sandbox, bomb).await.end, End::Deadline);
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
}
