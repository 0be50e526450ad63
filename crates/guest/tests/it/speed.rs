//! What makes commands cheap must not make them weaker.

use outrigger_sandbox::{End, Sandbox};

use crate::harness::*;

#[tokio::test]
async fn groups_are_used_again_but_never_with_something_in_them() {
    for hierarchy in freezing() {
        let guest = Guest::ready(Setup { hierarchy, ..Setup::default() });
        let sandbox = guest.connect().await;
        for _ in 0..20 {
            assert_eq!(says(&sandbox, "echo on").await, "on\n", "{hierarchy:?}");
        }
        // One that leaves something behind keeps its group; killing another spares it.
        let left = "(setsid sleep 1000 > /dev/null 2>&1 &)";
        assert_eq!(says(&sandbox, left).await, "");
        let one = async || (says(&sandbox, "pgrep -c sleep").await == "1\n").then_some(());
        until("what is left behind", one).await;
        for _ in 0..3 {
            let mut request = shell("sleep 1000");
            request.deadline_ms = 10;
            assert_eq!(run(&sandbox, request).await.end, End::Deadline);
            assert_eq!(says(&sandbox, "pgrep -c sleep").await, "1\n");
        }
    }
}

#[tokio::test]
async fn commands_that_stop_others_do_not_stop_the_guest() {
    let guest = Guest::ready(Setup { hierarchy: freezing()[0], ..Setup::default() });
    let sandbox = guest.connect().await;
    let hostile = shell("while :; do kill -STOP -1; done");
    let id = hostile.id.clone();
    let others = async {
        for _ in 0..30 {
            let mut request = shell("true");
            request.deadline_ms = 20;
            // Whether it came to run or was stopped: it ends, and so does the next.
            let executed = run(&sandbox, request).await;
            assert!(matches!(executed.end, End::Exited(0) | End::Deadline), "{executed:?}");
        }
        sandbox.kill(&id).await.unwrap();
    };
    let (killed, ()) = tokio::join!(run(&sandbox, hostile), others);
    assert_eq!(killed.end, End::Killed);
    assert_eq!(says(&sandbox, "echo on").await, "on\n");
}
