//! As process 1 of a container: reached by a bridge, as the user of the commands.

use std::io::Read;
use std::process::Child;
use std::sync::Arc;

use outrigger_sandbox::{CreateOutcome, End, Error, FileOp, Sandbox, SandboxId};
use outrigger_sandbox_client::{Link, RemoteSandbox};

use crate::harness::*;

/// The sandbox at the other end of a bridge.
async fn over(bridge: &mut Child) -> Result<RemoteSandbox, Error> {
    let reads = tokio::process::ChildStdout::from_std(bridge.stdout.take().unwrap()).unwrap();
    let writes = tokio::process::ChildStdin::from_std(bridge.stdin.take().unwrap()).unwrap();
    let link = Link::open(reads, writes).await?;
    Ok(RemoteSandbox::new(SandboxId::new("s").unwrap(), CreateOutcome::Made, Arc::new(link)))
}

fn bridge() -> String {
    format!("/guest --bridge {LISTENS_AT}")
}

#[tokio::test]
async fn commands_outlive_the_bridge_over_which_they_were_asked_for() {
    let contained = ContainedGuest::start();
    let mut first = contained.exec(&bridge());
    let sandbox = over(&mut first).await.unwrap();
    let said = says(&sandbox, "id -u; grep -c . /proc/self/status; tty; ls -A; touch here").await;
    assert!(said.starts_with("1000\n") && said.ends_with("not a tty\n"), "{said}");
    let caps = says(&sandbox, "grep -E 'Cap(Bnd|Eff)|NoNewPrivs|Seccomp:' /proc/self/status").await;
    let caps: Vec<&str> = caps.split_whitespace().collect();
    let none = "0000000000000000";
    assert_eq!(caps, ["CapEff:", none, "CapBnd:", none, "NoNewPrivs:", "1", "Seccomp:", "2"]);
    let mut request = shell("touch began; until [ -e end ]; do sleep 0.01; done; echo over");
    request.spill_after_bytes = Some(1);
    let running = sandbox.execute(request.clone(), &());
    let cut = async {
        let began = FileOp::Stat { path: "began".to_owned() };
        until("a command", async || sandbox.files(began.clone()).await.ok()).await;
        let group = rustix::process::Pid::from_child(&first);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        ended(&mut first).await;
    };
    let (lost, ()) = tokio::join!(running, cut);
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");

    let mut second = contained.exec(&bridge());
    let other = over(&mut second).await.unwrap();
    assert_eq!(other.generation(), sandbox.generation());
    let end = FileOp::MakeDir { id: fresh(), path: "end".to_owned() };
    other.files(end).await.unwrap();
    let executed = run(&other, request).await;
    assert_eq!((executed.end, &executed.stdout[..]), (End::Exited(0), &b"over\n"[..]));
    assert_eq!(says(&other, &format!("cat {}", executed.spill.unwrap())).await, "over\n");
    // A tree dies whole, in its own sessions too, and the bridge ends with its input.
    let forks = shell("setsid sleep 1000 & setsid sleep 1000 & touch forked; wait");
    let id = forks.id.clone();
    let (killed, ()) = tokio::join!(run(&other, forks), async {
        let forked = FileOp::Stat { path: "forked".to_owned() };
        until("a tree", async || other.files(forked.clone()).await.ok()).await;
        other.kill(&id).await.unwrap();
    });
    assert_eq!(killed.end, End::Killed);
    assert_eq!(says(&other, "pgrep sleep; true").await, "");
    drop(other);
    assert_eq!(ended(&mut second).await, Some(0));
}

#[tokio::test]
async fn a_terminal_can_be_had_there_too() {
    let contained = ContainedGuest::start();
    let mut first = contained.exec(&bridge());
    let sandbox = over(&mut first).await.unwrap();
    let mut request = shell("tty; stty size");
    request.terminal = Some(outrigger_sandbox::TerminalSize { rows: 3, columns: 4 });
    assert_eq!(run(&sandbox, request).await.stdout, b"/dev/pts/0\r\n3 4\r\n");
    drop(sandbox);
    ended(&mut first).await;
}

#[tokio::test]
async fn commands_have_no_way_to_ask_the_guest_for_anything() {
    let contained = ContainedGuest::start();
    let mut first = contained.exec(&bridge());
    let sandbox = over(&mut first).await.unwrap();
    let probe = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{LISTENS_AT}'); \
         print(len(s.recv(99)))"
    );
    assert_eq!(says(&sandbox, &format!("python3 -c \"{probe}\"")).await, "0\n");
    assert_eq!(says(&sandbox, &format!("setsid {} < /dev/zero", bridge())).await, "");
    drop(sandbox);
    ended(&mut first).await;
    // From outside it is greeted.
    let mut outside = contained.exec(&format!("python3 -c \"{probe}\""));
    let mut said = String::new();
    outside.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    outside.wait().unwrap();
    assert!(said.trim().parse::<usize>().unwrap() > 4, "{said}");
}
