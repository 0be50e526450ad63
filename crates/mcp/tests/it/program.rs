//! A program that can't be begun: whoever wrote to it ends with it, and what it said of
//! that is for people alone.

use async_trait::async_trait;
use expect_test::expect;
use outrigger_agent::Digest;
use outrigger_mcp::Stdio;
use outrigger_sandbox::{
    CreateOutcome, End, Error, ExecId, ExecOutcome, Execute, FileOp, FileReply, Generation, Input,
    Output, OutputSink, Sandbox, SandboxId,
};
use outrigger_tools::outside::{Outside, OutsideCall};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// A sandbox in which the program is not there, and a writer to its pipe waits for ever.
#[derive(Debug)]
struct Empty {
    id: SandboxId,
    generation: Generation,
    /// Whatever waits in it.
    waiting: Mutex<BTreeSet<String>>,
    began: Notify,
    killed: Notify,
}

impl Empty {
    fn new() -> Arc<Self> {
        let (id, generation) = (SandboxId::new("s").unwrap(), Generation::new("g").unwrap());
        let (waiting, began, killed) = Default::default();
        Arc::new(Self { id, generation, waiting, began, killed })
    }

    fn waits(&self, id: &str) -> bool {
        self.waiting.lock().unwrap().contains(id)
    }
}

fn ended(end: End, stderr: &[u8]) -> ExecOutcome {
    ExecOutcome {
        stdout: Vec::new(),
        stderr: stderr.to_vec(),
        stdout_dropped_bytes: 0,
        stderr_dropped_bytes: 0,
        end,
        spill: None,
        wall_ms: 0,
        cpu_ms: 0,
        peak_memory_bytes: 0,
    }
}

#[async_trait]
impl Sandbox for Empty {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn generation(&self) -> &Generation {
        &self.generation
    }

    fn outcome(&self) -> CreateOutcome {
        CreateOutcome::Made
    }

    fn is_alive(&self) -> bool {
        true
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<ExecOutcome, Error> {
        let id = request.id.to_string();
        if id.contains(".in") {
            self.waiting.lock().unwrap().insert(id.clone());
            self.began.notify_one();
            while self.waits(&id) {
                self.killed.notified().await;
            }
            return Ok(ended(End::Killed, b""));
        }
        if id.ends_with(".end") {
            return Ok(ended(End::Exited(0), b""));
        }
        // The writer is there before the program is gone.
        self.began.notified().await;
        sink.output(Output::Stderr(b"ignored here"));
        Ok(ended(End::Exited(127), b"warning\nsh: 1: exec: my-\x1b[2Jserver: not found\n\n"))
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.waiting.lock().unwrap().remove(&id.to_string());
        self.killed.notify_waiters();
        Ok(())
    }

    async fn input(&self, _: &ExecId, _: Input) -> Result<(), Error> {
        Err(Error::Invalid("it has no terminals".to_owned()))
    }

    async fn files(&self, _: FileOp) -> Result<FileReply, Error> {
        Err(Error::Invalid("it has no files".to_owned()))
    }
}

#[tokio::test]
async fn a_program_that_can_t_be_begun_leaves_no_writer_behind() {
    let empty = Empty::new();
    let sandbox: Arc<dyn Sandbox> = Arc::clone(&empty) as _;
    let program = Stdio::new(vec!["my-server".to_owned()]);
    let listed = program.list(Some(&sandbox)).await.unwrap_err();
    let digest = Digest::of(b"");
    let calling = OutsideCall {
        tool: "note",
        held_to: &digest,
        arguments: "{}",
        key: "the-key",
        timeout_ms: 30_000,
        exec: "s.1",
        sandbox: Some(&sandbox),
        sends: &AtomicU64::new(0),
    };
    let called = program.call(&calling).await.unwrap_err();
    expect![[r#"
        NotAsked { detail: "the server hung up: its program ended with exit code 127; it says: sh: 1: exec: my-server: not found" }
        NotAsked { detail: "the server hung up: its program ended with exit code 127" }
    "#]].assert_eq(&format!("{listed:?}\n{called:?}\n"));
    assert_eq!(*empty.waiting.lock().unwrap(), BTreeSet::new());
}
