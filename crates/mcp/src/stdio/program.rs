//! A program that runs in a sandbox, as what a command left behind, and the connection to it.
//!
//! Owns that the program is spoken to only while somebody waits for an answer: between two
//! exchanges no command runs in its sandbox. Whatever it writes is read as hostile, and bounded.

use outrigger_sandbox::{
    Command, End, Error, ExecId, ExecOutcome, Execute, Output, OutputSink, Sandbox,
};
use outrigger_tools::outside::{BEGIN, Fault, clean};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::script;
use crate::limits;

/// Whether there was one of it before, in the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    First,
    Again,
}

/// Who reads what a program writes to its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Complaints {
    /// A person, should it fail.
    Kept,
    /// Nobody: it may go on for days.
    Dropped,
}

/// A program that was begun.
#[derive(Debug)]
pub(super) struct Program {
    sandbox: Arc<dyn Sandbox>,
    /// Where all that belongs to it lies.
    dir: String,
    /// By what it is known there: group, process, time.
    id: [String; 3],
    /// Our end of what stands for its standard streams.
    far: DuplexStream,
    /// Whether it is over, or what it says can't be told apart any more.
    is_over: bool,
}

impl Program {
    /// Begins the program, and gives the stream that it is spoken to by. `exec` names what this
    /// attempt runs in the sandbox.
    pub(super) async fn begin(
        sandbox: &Arc<dyn Sandbox>,
        dir: String,
        command: &[String],
        complaints: Complaints,
        exec: &str,
    ) -> Result<(Self, DuplexStream, Beginning), Fault> {
        let said = match complaints {
            Complaints::Kept => format!("{dir}/{}", script::SAID),
            Complaints::Dropped => "/dev/null".to_owned(),
        };
        let mut words = vec![said];
        words.extend(command.iter().cloned());
        let begun = run(&**sandbox, (exec, BEGIN), (script::BEGIN, &dir), &words).await;
        let begun = begun.map_err(|error| Fault::NotAsked { detail: error.to_string() })?;
        let printed = String::from_utf8_lossy(&begun.stdout);
        let words: Vec<&str> = printed.split_whitespace().collect();
        let ([before, id @ ..], Some(0)) = (words.as_slice(), begun.exit_code()) else {
            let detail = "its program can't be begun in this sandbox: it needs a shell with mkfifo, cat and sleep".to_owned();
            return Err(Fault::NotAsked { detail });
        };
        let Ok(id) = <[&str; 3]>::try_from(id) else {
            let detail = "its program can't be begun in this sandbox".to_owned();
            return Err(Fault::NotAsked { detail });
        };
        let beginning = if *before == "again" { Beginning::Again } else { Beginning::First };
        let (near, far) = tokio::io::duplex(limits::PIPE_BYTES);
        let (sandbox, id) = (Arc::clone(sandbox), id.map(str::to_owned));
        Ok((Self { sandbox, dir, id, far, is_over: false }, near, beginning))
    }

    /// Whether it still runs, as far as is known without asking.
    pub(super) fn may_run_in(&self, sandbox: &dyn Sandbox) -> bool {
        let same =
            self.sandbox.id() == sandbox.id() && self.sandbox.generation() == sandbox.generation();
        same && !self.is_over
    }

    /// Whether it still runs; from now on it is reached by this handle.
    pub(super) async fn runs(&mut self, sandbox: &Arc<dyn Sandbox>, exec: &str) -> bool {
        self.sandbox = Arc::clone(sandbox);
        let looked = run(&**sandbox, (exec, "look"), (script::LOOK, &self.dir), &self.id).await;
        looked.is_ok_and(|looked| looked.exit_code() == Some(0))
    }

    /// Passes on what is said from either side until `talking` is done. Dropping it in the middle
    /// may lose a part of what was said: then the program is of no use any more.
    pub(super) async fn exchange<T>(
        &mut self,
        exec: &str,
        lasts_ms: u64,
        talking: impl Future<Output = Result<T, Fault>> + Send,
    ) -> Result<T, Fault> {
        let reader =
            ExecId::new(exec).map_err(|error| Fault::NotAsked { detail: error.to_string() })?;
        let deadline_ms = lasts_ms
            .saturating_add(limits::CLOSE_MS_MAX)
            .min(outrigger_sandbox::limits::DEADLINE_MS_MAX);
        let (from_us, to_us) = tokio::io::split(&mut self.far);
        let (said, heard) = unbounded_channel();
        let holds = Notify::new();
        let left = AtomicU64::new(limits::PROGRAM_BYTES_MAX);
        let sink = Heard { said, left, holds: &holds };
        let link = Link { sandbox: &*self.sandbox, dir: &self.dir, exec, deadline_ms };
        let fed = AtomicU64::new(0);
        let (reading, hearing) = (link.read(reader.clone(), sink), hear(heard, to_us));
        let writing = async {
            // One that answers and ends at once has somebody who listens.
            holds.notified().await;
            link.write(from_us, &fed).await;
        };
        tokio::pin!(reading, hearing, writing, talking);
        let (mut ended, mut stopped) = (None, false);
        let done = loop {
            tokio::select! {
                biased;
                done = &mut talking => break done,
                executed = &mut reading, if ended.is_none() => ended = Some(executed),
                to_us = &mut hearing, if !self.is_over => {
                    // All that it said was passed on, and it says nothing any more.
                    self.is_over = true;
                    if let Some(mut to_us) = to_us {
                        drop(to_us.shutdown().await);
                    }
                }
                () = &mut writing, if !stopped => stopped = true,
            }
        };
        let ending = async {
            if ended.is_none() {
                drop(self.sandbox.kill(&reader).await);
            }
            // A writer to a program that never read waits for a reader that never comes.
            if let Some(last) = fed.load(Ordering::SeqCst).checked_sub(1)
                && let Some(writer) = link.writer(last)
                && !stopped
            {
                drop(self.sandbox.kill(&writer).await);
            }
            if ended.is_none() {
                drop((&mut reading).await);
            }
            if !self.is_over {
                drop((&mut hearing).await);
            }
        };
        // A sandbox that does not answer must not keep the answer back.
        let policy = Duration::from_millis(limits::CLOSE_MS_MAX);
        let left = tokio::time::timeout(policy, ending).await;
        self.is_over |= left.is_err();
        done
    }

    /// How it ended by itself, if it did: in words of ours; and the last line that it complained
    /// of, which is for people alone.
    pub(super) async fn ending(&self, exec: &str) -> (Option<String>, Option<String>) {
        if !self.is_over {
            return (None, None);
        }
        let asked = run(&*self.sandbox, (exec, "why"), (script::STATUS, &self.dir), &[]);
        let policy = Duration::from_millis(limits::WHY_MS_MAX);
        let Ok(Ok(told)) = tokio::time::timeout(policy, asked).await else { return (None, None) };
        let text = String::from_utf8_lossy(&told.stdout);
        let (status, said) = text.split_once('\n').unwrap_or((&text, ""));
        let how = status.parse().ok().map(ended);
        let line = said.lines().rev().find(|line| !line.trim().is_empty());
        (how, line.map(|line| clean(line.trim(), limits::COMPLAINT_CHARS_MAX)))
    }

    /// Ends it. What can't be told goes with its sandbox, or when the next one is begun.
    pub(super) async fn end(self, exec: &str) {
        let ending = run(&*self.sandbox, (exec, "end"), (script::END, &self.dir), &self.id[..1]);
        let policy = Duration::from_millis(limits::CLOSE_MS_MAX);
        drop(tokio::time::timeout(policy, ending).await);
    }
}

/// How a shell says that a program ended.
fn ended(status: u8) -> String {
    match status.checked_sub(128) {
        Some(signal) if signal > 0 => format!("a signal, {signal}, ended its program"),
        _ => format!("its program ended with exit code {status}"),
    }
}

/// Runs a script to its end.
async fn run(
    sandbox: &dyn Sandbox,
    (exec, which): (&str, &str),
    (script, dir): (&str, &str),
    words: &[String],
) -> Result<ExecOutcome, Error> {
    let id = ExecId::new(format!("{exec}.{which}"))
        .map_err(|error| Error::Invalid(error.to_string()))?;
    let mut request = Execute::new(id, command(script, dir, words));
    request.deadline_ms = limits::SCRIPT_MS_MAX;
    request.stdout_bytes_max = limits::COMPLAINT_BYTES_MAX;
    request.stderr_bytes_max = limits::COMPLAINT_BYTES_MAX;
    sandbox.execute(request, &()).await
}

fn command(script: &str, dir: &str, words: &[String]) -> Command {
    let fixed = ["sh", "-c", script, dir].map(|word| word.as_bytes().to_vec());
    let words = words.iter().map(|word| word.clone().into_bytes());
    Command::Argv(fixed.into_iter().chain(words).collect())
}

/// The commands of one exchange.
struct Link<'a> {
    sandbox: &'a dyn Sandbox,
    dir: &'a str,
    exec: &'a str,
    /// After that they are killed, whoever still waits: a moment after nobody does.
    deadline_ms: u64,
}

impl Link<'_> {
    async fn read(&self, id: ExecId, sink: Heard<'_>) -> Result<End, Error> {
        let mut request = Execute::new(id, command(script::READ, self.dir, &[]));
        request.deadline_ms = self.deadline_ms;
        request.stdout_bytes_max = limits::PROGRAM_BYTES_MAX;
        let executed = self.sandbox.execute(request, &sink).await;
        // Who listens is told that it is over.
        drop(sink);
        executed.map(|executed| executed.end)
    }

    /// Passes on what we write, in order.
    async fn write(&self, mut from_us: impl AsyncRead + Unpin, fed: &AtomicU64) {
        let mut piece = vec![0; limits::PIPE_BYTES];
        for number in 0_u64.. {
            let Ok(length @ 1..) = from_us.read(&mut piece).await else { return };
            let Some(id) = self.writer(number) else { return };
            fed.store(number + 1, Ordering::SeqCst);
            let mut request = Execute::new(id, command(script::WRITE, self.dir, &[]));
            request.stdin = piece[..length].to_vec();
            request.deadline_ms = self.deadline_ms;
            let executed = self.sandbox.execute(request, &()).await;
            if !executed.is_ok_and(|executed| executed.exit_code() == Some(0)) {
                return;
            }
        }
    }

    /// What writes the piece of that number.
    fn writer(&self, number: u64) -> Option<ExecId> {
        ExecId::new(format!("{}.in{number}", self.exec)).ok()
    }
}

/// Takes what the program writes, so far as it is not too much.
struct Heard<'a> {
    said: UnboundedSender<Vec<u8>>,
    left: AtomicU64,
    /// Told when the program's pipe is held.
    holds: &'a Notify,
}

impl OutputSink for Heard<'_> {
    fn output(&self, output: Output<'_>) {
        let Output::Stdout(bytes) = output else {
            self.holds.notify_one();
            return;
        };
        let taken = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(bytes.len() as u64)
        });
        if taken.is_ok() {
            // Nobody listens any more: then it is over.
            drop(self.said.send(bytes.to_vec()));
        }
    }
}

/// Passes on what the program writes, to its end. Gives back where to, unless nobody listens.
async fn hear<W: AsyncWrite + Unpin>(
    mut heard: UnboundedReceiver<Vec<u8>>,
    mut to_us: W,
) -> Option<W> {
    while let Some(bytes) = heard.recv().await {
        to_us.write_all(&bytes).await.ok()?;
    }
    Some(to_us)
}
