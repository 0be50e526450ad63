//! What commands leave behind stops and goes on.

use outrigger_sandbox::{Error, FileOp, FileReply, Sandbox};
use outrigger_sandbox_client::RemoteSandbox;

use crate::harness::*;

/// A process that outlives its command and counts.
const COUNTER: &str = "(setsid sh -c 'i=0; while :; do i=$((i+1)); echo $i > count.new; \
    mv count.new count; sleep 0.001; done' > /dev/null 2>&1 &)";

/// How far it is, asked for without starting anything.
async fn count(sandbox: &RemoteSandbox) -> u64 {
    let read = FileOp::Read { path: "count".to_owned(), offset: 0, bytes_max: 99 };
    match sandbox.files(read).await {
        Ok(FileReply::Bytes { bytes, .. }) => {
            String::from_utf8(bytes).unwrap().trim().parse().unwrap()
        }
        _ => 0,
    }
}

async fn counts(sandbox: &RemoteSandbox) {
    let from = count(sandbox).await;
    until("counting", async || (count(sandbox).await > from).then_some(())).await;
}

async fn stands(sandbox: &RemoteSandbox) {
    let before = count(sandbox).await;
    // Long enough for many steps of the counter, if it did count.
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await; // poll: that nothing happens can only be looked at
        assert_eq!(count(sandbox).await, before);
    }
}

#[tokio::test]
async fn leftovers_stop_and_go_on() {
    for hierarchy in hierarchies() {
        let guest = Guest::ready(Setup { hierarchy, ..Setup::default() });
        let sandbox = guest.connect().await;
        sandbox.freeze().await.unwrap();
        assert_eq!(says(&sandbox, COUNTER).await, "", "{hierarchy:?}");
        counts(&sandbox).await;
        sandbox.freeze().await.unwrap();
        stands(&sandbox).await;
        sandbox.freeze().await.unwrap();
        sandbox.thaw().await.unwrap();
        sandbox.thaw().await.unwrap();
        counts(&sandbox).await;
        // The next command lets them go on too, and so does a kill.
        sandbox.freeze().await.unwrap();
        stands(&sandbox).await;
        assert_eq!(says(&sandbox, "echo on").await, "on\n");
        counts(&sandbox).await;
        sandbox.freeze().await.unwrap();
        sandbox.kill(&fresh()).await.unwrap();
        counts(&sandbox).await;
        // What is stopped ends with the guest.
        sandbox.freeze().await.unwrap();
        assert_eq!(guest.hand_over().0, Some(b'k'));
    }
}

#[tokio::test]
async fn a_running_command_is_not_stopped() {
    for hierarchy in hierarchies() {
        let guest = Guest::ready(Setup { hierarchy, ..Setup::default() });
        let sandbox = guest.connect().await;
        let request = shell("touch began; until [ -e end ]; do sleep 0.01; done");
        let running = sandbox.execute(request, &());
        let other = async {
            let began = FileOp::Stat { path: "began".to_owned() };
            until("a command", async || sandbox.files(began.clone()).await.ok()).await;
            assert!(matches!(sandbox.freeze().await, Err(Error::Busy { .. })));
            sandbox.thaw().await.unwrap();
            let end = FileOp::MakeDir { id: fresh(), path: "end".to_owned() };
            sandbox.files(end).await.unwrap();
        };
        let (ended, ()) = tokio::join!(running, other);
        assert_eq!(ended.unwrap().exit_code(), Some(0));
    }
}
