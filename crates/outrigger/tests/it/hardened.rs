//! What the process that holds keys leaves to others of its user.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::sockets;
use crate::support::*;
use crate::tls_host::GateGuard;

#[test]
fn a_crash_of_the_harness_leaves_no_core() {
    let world = World::new();
    let _guard = GateGuard(&world);
    // One that takes a request and does not answer, so that it waits.
    let registry = TcpListener::bind("127.0.0.1:0").unwrap();
    let image = format!("{}/test/image:one", registry.local_addr().unwrap());
    let mut shell = world.command("sh");
    let line = "ulimit -c unlimited 2>/dev/null; exec \"$0\" \"$@\"";
    shell.args(["-c", line, OUTRIGGER, "--data-dir"]).arg(world.data());
    shell.args(["sandbox", "pull", "x", &image]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut harness = shell.spawn().unwrap();
    let _waits = registry.accept().unwrap();
    assert_eq!(sockets::of_network(harness.id()), 0, "it was the gate that connected");
    let pid = rustix::process::Pid::from_raw(harness.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    let ended = harness.wait().unwrap();
    assert_eq!((ended.signal(), ended.core_dumped()), (Some(6), false), "{ended:?}");
}
