//! The output of a command, followed: text in order, and a place from which it goes on.

use axum::response::sse::Event as Frame;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::{Stream, stream};
use outrigger_api::{ExecInfo, OutputFrame};
use outrigger_sandbox::{Error, ExecId, ExecOutcome, Output, OutputSink, Sandbox};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

use super::command::{attach, ended};
use crate::follow::named;
use crate::server::ended as server_ended;

/// How many bytes of each stream were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct OutputPosition {
    stdout: usize,
    stderr: usize,
}

impl fmt::Display for OutputPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.stdout, self.stderr)
    }
}

impl OutputPosition {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stdout, stderr) = text.split_once('.')?;
        Some(Self { stdout: stdout.parse().ok()?, stderr: stderr.parse().ok()? })
    }
}

/// Bytes of one stream as text: what is cut in the middle of a character waits for its rest.
#[derive(Debug, Default)]
struct TextStream {
    /// Bytes that were told before.
    skip: usize,
    rest: Vec<u8>,
}

impl TextStream {
    /// The text of the next bytes, and how many bytes it is.
    fn next(&mut self, mut bytes: &[u8]) -> (String, usize) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        bytes = &bytes[skipped..];
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // What is wrong further on may hide that the end is cut: that is told as it is.
            Ok(_) | Err(_) => self.rest.len(),
        };
        let told: Vec<u8> = self.rest.drain(..whole).collect();
        (String::from_utf8_lossy(&told).into_owned(), told.len())
    }

    fn end(&mut self) -> (String, usize) {
        let told = std::mem::take(&mut self.rest);
        (String::from_utf8_lossy(&told).into_owned(), told.len())
    }
}

/// What was told and what is to be told.
#[derive(Debug, Default)]
struct Pieces {
    at: OutputPosition,
    stdout: TextStream,
    stderr: TextStream,
    waiting: VecDeque<(&'static str, String, OutputPosition)>,
}

impl Pieces {
    fn put(&mut self, output: Output<'_>) {
        match output {
            Output::Stdout(bytes) => {
                let told = self.stdout.next(bytes);
                self.stdout_told(told);
            }
            Output::Stderr(bytes) => {
                let told = self.stderr.next(bytes);
                self.stderr_told(told);
            }
        }
    }

    fn stdout_told(&mut self, (text, bytes): (String, usize)) {
        self.at.stdout += bytes;
        self.tell("stdout", text);
    }

    fn stderr_told(&mut self, (text, bytes): (String, usize)) {
        self.at.stderr += bytes;
        self.tell("stderr", text);
    }

    fn tell(&mut self, name: &'static str, text: String) {
        if !text.is_empty() {
            self.waiting.push_back((name, text, self.at));
        }
    }

    fn end(&mut self) {
        let told = (self.stdout.end(), self.stderr.end());
        self.stdout_told(told.0);
        self.stderr_told(told.1);
    }
}

/// Takes output while the stream is asked for more: what it holds is bounded by what is kept of
/// the command.
#[derive(Debug, Default)]
struct PieceQueue(Mutex<Pieces>);

impl PieceQueue {
    fn with<T>(&self, act: impl FnOnce(&mut Pieces) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn frame(&self) -> Option<Frame> {
        let (name, text, at) = self.with(|pieces| pieces.waiting.pop_front())?;
        Some(named(name, &OutputFrame { text }).id(at.to_string()))
    }
}

impl OutputSink for PieceQueue {
    fn output(&self, output: Output<'_>) {
        self.with(|pieces| pieces.put(output));
    }
}

/// A command that is followed.
struct FollowedExec {
    id: ExecId,
    queue: Arc<PieceQueue>,
    /// Nothing once it is over.
    runs: Option<BoxFuture<'static, Result<ExecOutcome, Error>>>,
    over: Option<Frame>,
    ends: watch::Receiver<bool>,
}

/// Frames of what a command writes from a place on, to its end.
pub(super) fn follow_output(
    sandbox: Arc<dyn Sandbox>,
    id: ExecId,
    from: OutputPosition,
    ends: watch::Receiver<bool>,
) -> impl Stream<Item = Frame> + Send + 'static {
    let queue = Arc::new(PieceQueue::default());
    queue.with(|pieces| {
        pieces.at = from;
        pieces.stdout.skip = from.stdout;
        pieces.stderr.skip = from.stderr;
    });
    let (request, sink) = (attach(id.clone()), Arc::clone(&queue));
    let runs = async move { sandbox.execute(request, &*sink).await }.boxed();
    let followed = FollowedExec { id, queue, runs: Some(runs), over: None, ends };
    stream::unfold(followed, async |mut followed| {
        let frame = followed.next().await?;
        Some((frame, followed))
    })
}

impl FollowedExec {
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.queue.frame() {
                return Some(frame);
            }
            let Some(runs) = &mut self.runs else { return self.over.take() };
            // It is polled until it gave something, or is over.
            let came = std::future::poll_fn(|context| match runs.poll_unpin(context) {
                std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
                std::task::Poll::Pending if self.queue.with(|it| !it.waiting.is_empty()) => {
                    std::task::Poll::Ready(None)
                }
                std::task::Poll::Pending => std::task::Poll::Pending,
            });
            let done = tokio::select! {
                () = server_ended(self.ends.clone()) => return None,
                came = came => came,
            };
            if let Some(done) = done {
                self.runs = None;
                self.queue.with(Pieces::end);
                self.over = self.end(done);
            }
        }
    }

    /// What is told last; where its sandbox was lost the stream just ends, and who comes again is
    /// told why.
    fn end(&self, done: Result<ExecOutcome, Error>) -> Option<Frame> {
        let info = ended(&self.id, done.ok()?);
        let without = ExecInfo { stdout: String::new(), stderr: String::new(), ..info };
        Some(named("end", &without))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_goes_on_where_it_was() {
        let mut pieces = Pieces::default();
        let text = "aé€";
        for byte in text.as_bytes() {
            pieces.put(Output::Stdout(&[*byte]));
        }
        pieces.put(Output::Stderr(b"\xff"));
        pieces.put(Output::Stdout(b"\xe2"));
        pieces.end();
        let told: Vec<_> = pieces.waiting.iter().map(|it| (it.0, it.1.as_str())).collect();
        let wanted = [
            ("stdout", "a"),
            ("stdout", "é"),
            ("stdout", "€"),
            ("stderr", "\u{fffd}"),
            ("stdout", "\u{fffd}"),
        ];
        assert_eq!(told, wanted);
        let at = pieces.waiting[2].2;
        assert_eq!((at.to_string(), OutputPosition::parse("6.0")), ("6.0".to_owned(), Some(at)));

        let mut again = Pieces { at, ..Pieces::default() };
        (again.stdout.skip, again.stderr.skip) = (at.stdout, at.stderr);
        again.put(Output::Stdout("aé€ and".as_bytes()));
        assert_eq!(again.waiting[0].1, " and");
        assert_eq!(again.waiting[0].2.to_string(), "10.0");
        assert_eq!(OutputPosition::parse("x.1"), None);
    }
}
