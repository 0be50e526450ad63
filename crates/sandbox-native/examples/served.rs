//! How fast programs in a sandbox read a tree that is served to them from memory.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sandbox::{Backend, Command, CreateSpec, ExecId, Execute, SandboxId};
use outrigger_sandbox_native::{Config, Launch, Native};
use outrigger_sandbox_testing::FakeTrees;

/// Opens, reads and closes a file so often, and prints the median in microseconds.
const OPEN_READ: &str = "import os, time\n\
    p = '/memory/entry'; t = []\n\
    for i in range(5000):\n \
        a = time.perf_counter_ns(); f = os.open(p, os.O_RDONLY); os.read(f, 4096); os.close(f)\n \
        t.append(time.perf_counter_ns() - a)\n\
    t.sort(); print('p50', t[2500] / 1000, 'us, p99', t[4950] / 1000, 'us')";

#[tokio::main]
async fn main() {
    let program = std::env::args().nth(1).expect("the spawner");
    let state = tempfile::tempdir().expect("a directory");
    let trees = Arc::new(FakeTrees::new(&["/memory"]));
    let config = Config {
        state_dir: state.path().join("state"),
        scratch: state.path().to_owned(),
        launcher: Arc::new(Launch { program: PathBuf::from(program), args: Vec::new() }),
        guest: outrigger_guest::PROGRAM,
        read_only: Vec::new(),
        trees: Some(trees.clone()),
    };
    let native = Native::open(config).await.expect("the backend opens");
    let id = SandboxId::new("one").expect("a name");
    let tree = trees.tree(&id);
    tree.put("/memory/entry", "x".repeat(4096));
    for number in 0..5_000 {
        tree.put(&format!("/memory/many/{number}"), "some words here\n".repeat(256));
    }
    let spec = CreateSpec { served: vec!["/memory".to_owned()], ..CreateSpec::default() };
    let sandbox = native.create(&id, &spec).await.expect("a sandbox");
    let lines = [
        ("open, read, close", format!("python3 -c \"{OPEN_READ}\"")),
        ("grep -r, cold", "grep -rc nothing /memory/many > /dev/null; true".to_owned()),
        ("grep -r, warm", "grep -rc nothing /memory/many > /dev/null; true".to_owned()),
        ("grep -r, warm", "grep -rc nothing /memory/many > /dev/null; true".to_owned()),
    ];
    for (number, (what, line)) in lines.into_iter().enumerate() {
        let asked = tree.asked();
        let exec = ExecId::new(format!("e{number}")).expect("a name");
        let done = sandbox.execute(Execute::new(exec, Command::Shell(line)), &()).await;
        let done = done.expect("an outcome");
        let (said, took) = (String::from_utf8_lossy(&done.stdout).into_owned(), done.wall_ms);
        println!("{what}: {took} ms, {} asked; {}", tree.asked() - asked, said.trim_end());
    }
    native.destroy(&id).await.expect("its end");
}
