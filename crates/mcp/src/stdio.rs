//! A server that is a program, in a sandbox of the session's, spoken to over its standard
//! streams.
//!
//! Owns that it lives as long as one call: nothing runs in the sandbox while the session
//! waits, so that it can go cold, and a call that a crash cut off is known by its exec id.
//! No credential is given to it. Whatever it writes is read as hostile, and bounded.

use async_trait::async_trait;
use outrigger_sandbox::{Command, End, ExecId, ExecOutcome, Execute, Output, OutputSink, Sandbox};
use outrigger_tools::outside::{Fault, Outside, OutsideCall, ToolAnswer, ToolListing, clean};
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::connection::Connection;
use crate::fault::{self, CallError};
use crate::limits;

/// Makes the pipe by which the program is written to, and becomes the program. It has both
/// ends open, so that a writer that comes and goes does not end its input.
const BEGIN: &str = r#"mkfifo -m 600 "$0" || exit 126; exec "$@" 0<>"$0""#;
/// Writes to it what it gets, once it is there: a file of that name must not take its place.
/// Its second argument is how often it looks.
const FEED: &str = r#"left=$1
while [ ! -p "$0" ]; do [ "$((left -= 1))" -gt 0 ] || exit 1; sleep 0.01; done
exec cat > "$0""#;

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
        Ok(Program {
            sandbox,
            exec,
            pipe: format!("/tmp/.mcp-{id}"),
            lasts_ms: ms,
            fed: AtomicU64::new(0),
        })
    }
}

/// A program that runs.
struct Program {
    sandbox: Arc<dyn Sandbox>,
    exec: ExecId,
    /// The path of its input.
    pipe: String,
    /// Nobody waits for it longer.
    lasts_ms: u64,
    /// How many writers were begun.
    fed: AtomicU64,
}

/// What a program was not good for.
struct ProgramFailure {
    fault: Fault,
    /// The last line of its standard error. Whoever runs the server wrote it: for people,
    /// never for a model.
    complaint: Option<String>,
}

impl Program {
    /// Begins the program, lets `with` speak to it, and ends it.
    async fn during<T, F>(
        &self,
        command: &[String],
        with: impl FnOnce(Connection) -> F + Send,
        late: impl FnOnce() -> Fault + Send,
    ) -> Result<T, ProgramFailure>
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
        let policy = Duration::from_millis(self.lasts_ms);
        let talking =
            async { tokio::time::timeout(policy, talking).await.unwrap_or_else(|_| Err(late())) };
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
            // A writer to a program that never read waits for a reader that never comes.
            if let Some(last) = self.fed.load(Ordering::SeqCst).checked_sub(1)
                && let Some(writer) = self.writer(last)
            {
                drop(self.sandbox.kill(&writer).await);
            }
            drop(self.clean().await);
        };
        // A sandbox that does not answer must not keep the answer back.
        let policy = Duration::from_millis(limits::CLOSE_MS_MAX);
        drop(tokio::time::timeout(policy, killing).await);
        if done.is_err() && ended.is_none() {
            ended = tokio::time::timeout(policy, &mut running).await.ok();
        }
        done.map_err(|fault| ProgramFailure {
            complaint: ended.as_ref().and_then(|it| complaint(&it.as_ref().ok()?.stderr)),
            fault: explained(fault, ended.as_ref()),
        })
    }

    async fn run(
        &self,
        command: &[String],
        sink: Heard,
    ) -> Result<ExecOutcome, outrigger_sandbox::Error> {
        let words = ["sh", "-c", BEGIN, &self.pipe].map(str::to_owned).into_iter();
        let argv = words.chain(command.iter().cloned()).map(String::into_bytes).collect();
        let mut request = Execute::new(self.exec.clone(), Command::Argv(argv));
        request.deadline_ms = self.deadline_ms();
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
            let Some(id) = self.writer(number) else { return };
            self.fed.store(number + 1, Ordering::SeqCst);
            let looks = (limits::PIPE_MS_MAX / 10).to_string();
            let argv = ["sh", "-c", FEED, &self.pipe, &looks].map(|word| word.as_bytes().to_vec());
            let mut request = Execute::new(id, Command::Argv(argv.into()));
            request.stdin = piece[..length].to_vec();
            request.deadline_ms = self.deadline_ms();
            let executed = self.sandbox.execute(request, &()).await;
            if !executed.is_ok_and(|executed| executed.exit_code() == Some(0)) {
                return;
            }
        }
    }

    /// After that it is killed, whoever still waits: a moment after nobody does.
    fn deadline_ms(&self) -> u64 {
        let deadline = self.lasts_ms.saturating_add(limits::CLOSE_MS_MAX);
        deadline.min(outrigger_sandbox::limits::DEADLINE_MS_MAX)
    }

    /// What writes the piece of that number.
    fn writer(&self, number: u64) -> Option<ExecId> {
        ExecId::new(format!("{}.in{number}", self.exec)).ok()
    }

    /// Leaves nothing behind in the sandbox.
    async fn clean(&self) -> Result<ExecOutcome, outrigger_sandbox::Error> {
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

/// The last line of what a program complained of, made harmless.
fn complaint(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(clean(line.trim(), limits::COMPLAINT_CHARS_MAX))
}

impl ProgramFailure {
    /// As people are told it.
    fn for_people(self) -> Fault {
        match (self.fault, self.complaint) {
            (Fault::NotAsked { detail }, Some(line)) => {
                Fault::NotAsked { detail: format!("{detail}; it says: {line}") }
            }
            (fault, _) => fault,
        }
    }
}

/// A fault with what became of the program.
fn explained(fault: Fault, ended: Option<&Result<ExecOutcome, outrigger_sandbox::Error>>) -> Fault {
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
    async fn list(&self, sandbox: Option<&Arc<dyn Sandbox>>) -> Result<ToolListing, Fault> {
        let sandbox = sandbox.ok_or_else(nowhere)?;
        let number = self.listed.fetch_add(1, Ordering::SeqCst);
        let policy = limits::CONNECT_MS_MAX + limits::LIST_MS_MAX;
        let id = format!("mcp-list-{}-{number}", uuid::Uuid::new_v4().simple());
        let program = self.program(&id, sandbox, policy)?;
        let listing = |connection: Connection| async move { connection.tools().await };
        let late = || fault::too_slow("listing its tools", Duration::from_millis(policy));
        program.during(&self.command, listing, late).await.map_err(ProgramFailure::for_people)
    }

    async fn call(&self, call: &OutsideCall<'_>) -> Result<ToolAnswer, Fault> {
        let sandbox = call.sandbox.ok_or_else(nowhere)?;
        let program = self.program(call.exec, sandbox, call.timeout_ms)?;
        let sent = &AtomicBool::new(false);
        let late = || fault::late(sent.load(Ordering::SeqCst), call.timeout_ms);
        let calling = |connection: Connection| async move {
            match connection.call(call, sent).await {
                Ok(answered) | Err(CallError::Refused(answered)) => Ok(answered),
                Err(CallError::Fault(fault)) => Err(fault),
                Err(CallError::Forgotten) => {
                    Err(Fault::MayHaveHappened { detail: "the program ended".to_owned() })
                }
            }
        };
        program.during(&self.command, calling, late).await.map_err(|failed| failed.fault)
    }
}
