//! A sandbox that is none: commands run on this machine, each in a process group of its own, so
//! that what programs do from call to call is seen without a backend.

use async_trait::async_trait;
use outrigger_sandbox::{
    Command, CreateOutcome, End, Error, ExecId, ExecOutcome, Execute, FileOp, FileReply,
    Generation, Input, Output, OutputSink, Sandbox, SandboxId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

/// A shell of this machine.
#[derive(Debug)]
pub(crate) struct Shell {
    id: SandboxId,
    generation: Generation,
    /// What commands find as `/tmp`.
    tmp: tempfile::TempDir,
    running: Mutex<BTreeMap<String, RunningCommand>>,
    /// All that was ever run.
    names: Mutex<BTreeSet<String>>,
}

#[derive(Debug)]
struct RunningCommand {
    process: u32,
    killed: Arc<Notify>,
}

impl Shell {
    /// One in the life of that name.
    pub(crate) fn new(generation: &str) -> Arc<Self> {
        let (id, generation) = (SandboxId::new("s").unwrap(), Generation::new(generation).unwrap());
        let (tmp, running, names) =
            (tempfile::tempdir().unwrap(), Mutex::default(), Mutex::default());
        Arc::new(Self { id, generation, tmp, running, names })
    }

    /// Where its programs have their pipes.
    pub(crate) fn tmp(&self) -> &std::path::Path {
        self.tmp.path()
    }

    /// What runs in it as a command: a sandbox in which something does can't be suspended.
    pub(crate) fn running(&self) -> Vec<String> {
        let runs = |command: &&RunningCommand| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", command.process));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        let running = self.running.lock().unwrap();
        running.iter().filter(|(_, it)| runs(it)).map(|(name, _)| name.clone()).collect()
    }
}

#[async_trait]
impl Sandbox for Shell {
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
        let name = request.id.to_string();
        assert!(self.names.lock().unwrap().insert(name.clone()), "{name} is run once");
        let Command::Argv(argv) = request.command else { panic!("a shell string") };
        let tmp = format!("{}/", self.tmp.path().display());
        let own = |word: Vec<u8>| String::from_utf8(word).unwrap().replace("/tmp/", &tmp);
        let mut words = argv.into_iter().map(own);
        let mut command = tokio::process::Command::new(words.next().unwrap());
        command.args(words).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let killed = Arc::new(Notify::new());
        let process = child.id().unwrap();
        let command = RunningCommand { process, killed: Arc::clone(&killed) };
        self.running.lock().unwrap().insert(name.clone(), command);
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (mut all, mut piece) = (Vec::new(), vec![0; 4_096]);
        let complaining = async {
            let mut piece = [0; 64];
            while let Ok(length @ 1..) = stderr.read(&mut piece).await {
                sink.output(Output::Stderr(&piece[..length]));
            }
        };
        let printing = async {
            drop(stdin.write_all(&request.stdin).await);
            drop(stdin);
            while let Ok(length @ 1..) = stdout.read(&mut piece).await {
                sink.output(Output::Stdout(&piece[..length]));
                all.extend_from_slice(&piece[..length]);
            }
        };
        // What a command left behind may keep its standard error open.
        let talking = async {
            tokio::pin!(complaining, printing);
            tokio::select! {
                () = &mut printing => {}
                () = &mut complaining => printing.await,
            }
        };
        let end = tokio::select! {
            () = talking => {
                let status = child.wait().await.unwrap();
                status.code().map_or_else(|| End::Signalled(status.signal().unwrap()), End::Exited)
            }
            () = killed.notified() => {
                child.wait().await.unwrap();
                End::Killed
            }
        };
        self.running.lock().unwrap().remove(&name);
        Ok(ExecOutcome {
            stdout: all,
            stderr: Vec::new(),
            stdout_dropped_bytes: 0,
            stderr_dropped_bytes: 0,
            end,
            spill: None,
            wall_ms: 0,
            cpu_ms: 0,
            peak_memory_bytes: 0,
        })
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        if let Some(command) = self.running.lock().unwrap().get(&id.to_string()) {
            // Also one for which nobody waits any more.
            let group = format!("-{}", command.process);
            let mut kill = std::process::Command::new("kill");
            kill.args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status().unwrap();
            command.killed.notify_one();
        }
        Ok(())
    }

    async fn input(&self, _: &ExecId, _: Input) -> Result<(), Error> {
        Err(Error::Invalid("it has no terminals".to_owned()))
    }

    async fn files(&self, _: FileOp) -> Result<FileReply, Error> {
        Err(Error::Invalid("it has no files".to_owned()))
    }
}
