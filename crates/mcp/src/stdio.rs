//! A server that is a program, in a sandbox of the session's, spoken to over its standard
//! streams.
//!
//! Owns that it lives as long as one call: nothing runs in the sandbox while the session
//! waits, so that it can go cold, and a call that a crash cut off is known by its exec id.
//! No credential is given to it. Whatever it writes is read as hostile, and bounded.

use async_trait::async_trait;
use outrigger_sandbox::{Command, End, ExecId, Execute, Executed, Output, OutputSink, Sandbox};
use outrigger_tools::outside::{Answered, Calling, Described, Fault, Outside};
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::connection::Connection;
use crate::fault::Unanswered;
use crate::limits;

/// Makes the pipe by which the program is written to, and becomes the program. It has both
/// ends open, so that a writer that comes and goes does not end its input.
const BEGIN: &str = r#"mkfifo -m 600 "$0" || exit 126; exec "$@" 0<>"$0""#;
/// Writes to it what it gets, once it is there: a file of that name must not take its place.
const FEED: &str = r#"while [ ! -p "$0" ]; do sleep 0.01; done; exec cat > "$0""#;

/// A server that is a program.
#[derive(Debug)]
pub struct Stdio {
    command: Vec<String>,
    /// Programs that were begun to be asked for their tools, so that each has a name.
    listed: AtomicU64,
}

impl Stdio {
    /// The server that this program is.
    #[must_use]
    pub fn new(command: Vec<String>) -> Self {
        Self { command, listed: AtomicU64::new(0) }
    }

    fn program(&self, id: &str, sandbox: &Arc<dyn Sandbox>, ms: u64) -> Result<Program, Fault> {
        let exec =
            ExecId::new(id).map_err(|error| Fault::NotAsked { detail: error.to_string() })?;
        let sandbox = Arc::clone(sandbox);
        Ok(Program { sandbox, exec, pipe: format!("/tmp/.mcp-{id}"), lasts_ms: ms })
    }
}

/// A program that runs.
struct Program {
    sandbox: Arc<dyn Sandbox>,
    exec: ExecId,
    /// The path of its input.
    pipe: String,
    /// After that it is killed, whoever still waits.
    lasts_ms: u64,
}

impl Program {
    /// Begins the program, lets `with` speak to it, and ends it.
    async fn during<T, F>(
        &self,
        command: &[String],
        with: impl FnOnce(Connection) -> F + Send,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>> + Send,
    {
        let (ours, theirs) = tokio::io::duplex(limits::PIPE_BYTES);
        let (from_us, to_us) = tokio::io::split(theirs);
        let (said, heard) = unbounded_channel();
        let sink = Heard { said, left: AtomicU64::new(limits::PROGRAM_BYTES_MAX) };
        let running = self.run(command, sink);
        let feeding = self.feed(from_us);
        let hearing = hear(heard, to_us);
        let talking = async {
            let (read, write) = tokio::io::split(ours);
            let transport =
                AsyncRwTransport::new(read, write).with_max_line_length(limits::EVENT_BYTES_MAX);
            with(Connection::open(transport).await?).await
        };
        tokio::pin!(running, feeding, hearing, talking);
        let (mut ended, mut fed, mut heard_all) = (None, false, false);
        let done = loop {
            tokio::select! {
                biased;
                done = &mut talking => break done,
                executed = &mut running, if ended.is_none() => ended = Some(executed),
                () = &mut hearing, if !heard_all => heard_all = true,
                () = &mut feeding, if !fed => fed = true,
            }
        };
        let killing = async {
            drop(self.sandbox.kill(&self.exec).await);
            drop(self.clean().await);
        };
        // A sandbox that does not answer must not keep the answer back.
        let patience = Duration::from_millis(limits::CLOSE_MS_MAX);
        drop(tokio::time::timeout(patience, killing).await);
        if done.is_err() && ended.is_none() {
            ended = tokio::time::timeout(patience, &mut running).await.ok();
        }
        done.map_err(|fault| explained(fault, ended.as_ref()))
    }

    async fn run(
        &self,
        command: &[String],
        sink: Heard,
    ) -> Result<Executed, outrigger_sandbox::Error> {
        let words = ["sh", "-c", BEGIN, &self.pipe].map(str::to_owned).into_iter();
        let argv = words.chain(command.iter().cloned()).map(String::into_bytes).collect();
        let mut request = Execute::new(self.exec.clone(), Command::Argv(argv));
        request.deadline_ms = self.lasts_ms.clamp(1, outrigger_sandbox::limits::DEADLINE_MS_MAX);
        request.stdout_bytes_max = limits::PROGRAM_BYTES_MAX;
        request.stderr_bytes_max = limits::COMPLAINT_BYTES_MAX;
        let executed = self.sandbox.execute(request, &sink).await;
        // Who listens is told that it is over.
        drop(sink);
        executed
    }

    /// Passes on what we write, in order.
    async fn feed(&self, mut from_us: tokio::io::ReadHalf<DuplexStream>) {
        let mut piece = vec![0; limits::PIPE_BYTES];
        for number in 0_u64.. {
            let Ok(length @ 1..) = from_us.read(&mut piece).await else { return };
            let Ok(id) = ExecId::new(format!("{}.in{number}", self.exec)) else { return };
            let argv = ["sh", "-c", FEED, &self.pipe].map(|word| word.as_bytes().to_vec());
            let mut request = Execute::new(id, Command::Argv(argv.into()));
            request.stdin = piece[..length].to_vec();
            request.deadline_ms =
                self.lasts_ms.clamp(1, outrigger_sandbox::limits::DEADLINE_MS_MAX);
            let executed = self.sandbox.execute(request, &()).await;
            if !executed.is_ok_and(|executed| executed.exit_code() == Some(0)) {
                return;
            }
        }
    }

    /// Leaves nothing behind in the sandbox.
    async fn clean(&self) -> Result<Executed, outrigger_sandbox::Error> {
        let argv = ["rm", "-f", &self.pipe].map(|word| word.as_bytes().to_vec());
        let id = ExecId::new(format!("{}.end", self.exec))
            .map_err(|error| outrigger_sandbox::Error::Invalid(error.to_string()))?;
        self.sandbox.execute(Execute::new(id, Command::Argv(argv.into())), &()).await
    }
}

/// Takes what the program writes, so far as it is not too much.
struct Heard {
    said: UnboundedSender<Vec<u8>>,
    left: AtomicU64,
}

impl OutputSink for Heard {
    fn output(&self, output: Output<'_>) {
        let Output::Stdout(bytes) = output else { return };
        let taken = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(bytes.len() as u64)
        });
        if taken.is_ok() {
            // Nobody listens any more: then it is over.
            drop(self.said.send(bytes.to_vec()));
        }
    }
}

/// Passes on what the program writes, to its end.
async fn hear(
    mut heard: UnboundedReceiver<Vec<u8>>,
    mut to_us: tokio::io::WriteHalf<DuplexStream>,
) {
    while let Some(bytes) = heard.recv().await {
        if to_us.write_all(&bytes).await.is_err() {
            return;
        }
    }
    drop(to_us.shutdown().await);
}

/// A fault with what became of the program.
fn explained(fault: Fault, ended: Option<&Result<Executed, outrigger_sandbox::Error>>) -> Fault {
    let how = match ended {
        Some(Err(error)) => error.to_string(),
        Some(Ok(executed)) => match executed.end {
            // By us, or too late.
            End::Killed | End::Deadline => return fault,
            End::Exited(code) => format!("its program ended with exit code {code}"),
            End::Signalled(signal) => format!("a signal, {signal}, ended its program"),
            End::OutOfMemory => "its program needs more memory than its sandbox has".to_owned(),
            End::DiskFull => "the disk of its sandbox is full".to_owned(),
        },
        None => return fault,
    };
    match fault {
        Fault::NotAsked { detail } => Fault::NotAsked { detail: format!("{detail}: {how}") },
        Fault::MayHaveHappened { detail } => {
            Fault::MayHaveHappened { detail: format!("{detail}: {how}") }
        }
        changed @ Fault::Changed { .. } => changed,
    }
}

fn nowhere() -> Fault {
    Fault::NotAsked { detail: "its program needs a sandbox, and has none".to_owned() }
}

#[async_trait]
impl Outside for Stdio {
    async fn list(&self, sandbox: Option<&Arc<dyn Sandbox>>) -> Result<Vec<Described>, Fault> {
        let sandbox = sandbox.ok_or_else(nowhere)?;
        let number = self.listed.fetch_add(1, Ordering::SeqCst);
        let patience = limits::CONNECT_MS_MAX + limits::LIST_MS_MAX;
        let id = format!("mcp-list-{}-{number}", uuid::Uuid::new_v4().simple());
        let program = self.program(&id, sandbox, patience)?;
        let listing = |connection: Connection| async move { connection.tools().await };
        program.during(&self.command, listing).await
    }

    async fn call(&self, call: &Calling<'_>) -> Result<Answered, Fault> {
        let sandbox = call.sandbox.ok_or_else(nowhere)?;
        let patience = limits::CONNECT_MS_MAX + limits::LIST_MS_MAX + call.timeout_ms;
        let program = self.program(call.exec, sandbox, patience)?;
        let calling = |connection: Connection| async move {
            match connection.call(call).await {
                Ok(answered) | Err(Unanswered::Refused(answered)) => Ok(answered),
                Err(Unanswered::Fault(fault)) => Err(fault),
                Err(Unanswered::Forgotten) => {
                    Err(Fault::MayHaveHappened { detail: "the program ended".to_owned() })
                }
            }
        };
        program.during(&self.command, calling).await
    }
}
