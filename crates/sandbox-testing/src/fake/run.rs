//! One command of the fake from its start to its outcome: its clock, its output
//! and its caps.

use std::time::Duration;
use tokio::time::Instant;

use super::script::{Script, StepResult, Stream};
use super::tree::{Symlinks, Tree};
use outrigger_sandbox::{End, Error, ExecId, ExecOutcome, Execute, Output, Streams, limits};

/// A running or ended command.
#[derive(Debug)]
pub(super) struct FakeCommand {
    id: ExecId,
    script: Script,
    started: Instant,
    deadline: Instant,
    /// When the next step is due.
    due: Instant,
    streams: Streams,
    caps: [u64; 2],
    spill_after_bytes: Option<u64>,
    /// Kept output in order of arrival.
    pieces: Vec<(Stream, Vec<u8>)>,
    kept: [u64; 2],
    dropped: [u64; 2],
    /// The whole output, while it may have to be spilled.
    whole: Vec<u8>,
    outcome: Option<ExecOutcome>,
}

impl FakeCommand {
    /// Starts a command, whose first step is due now.
    pub(super) fn new(request: &Execute, tree: &Tree, now: Instant) -> Result<Self, Error> {
        let script = Script::new(request, tree)?;
        Ok(Self {
            id: request.id.clone(),
            script,
            started: now,
            deadline: now + Duration::from_millis(request.deadline_ms),
            due: now,
            streams: request.streams,
            caps: [request.stdout_bytes_max, request.stderr_bytes_max],
            spill_after_bytes: request.spill_after_bytes,
            pieces: Vec::new(),
            kept: [0; 2],
            dropped: [0; 2],
            whole: Vec::new(),
            outcome: None,
        })
    }

    /// When something happens next; `None` once it has ended.
    pub(super) fn due(&self) -> Option<Instant> {
        self.outcome.is_none().then(|| self.due.min(self.deadline))
    }

    /// Does what is due.
    pub(super) fn step(&mut self, tree: &mut Tree) {
        if self.deadline <= self.due {
            return self.end(End::Deadline, self.deadline, tree);
        }
        let mut printed: Vec<(Stream, Vec<u8>)> = Vec::new();
        let next =
            self.script.step(tree, &mut |stream, piece| printed.push((stream, piece.to_vec())));
        for (stream, piece) in printed {
            self.take(stream, piece);
        }
        match next {
            StepResult::Step => {}
            StepResult::Wait(time) => self.due += time,
            StepResult::End(end) => self.end(end, self.due, tree),
        }
    }

    /// Ends it from outside.
    pub(super) fn kill(&mut self, now: Instant, tree: &mut Tree) {
        if self.outcome.is_none() {
            self.end(End::Killed, now, tree);
        }
    }

    /// How it ended, if it has.
    pub(super) fn outcome(&self) -> Option<&ExecOutcome> {
        self.outcome.as_ref()
    }

    /// Kept output from piece `from` on.
    pub(super) fn pieces(&self, from: usize) -> &[(Stream, Vec<u8>)] {
        &self.pieces[from..]
    }

    fn take(&mut self, stream: Stream, mut piece: Vec<u8>) {
        let stream = if self.streams == Streams::Merged { Stream::Stdout } else { stream };
        if self.spill_after_bytes.is_some() {
            let limit = usize::try_from(limits::SPILL_BYTES_MAX).unwrap_or(usize::MAX);
            let room = limit - self.whole.len();
            self.whole.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        let index = stream as usize;
        let room = self.caps[index] - self.kept[index];
        let bytes = piece.len() as u64;
        let kept = bytes.min(room);
        self.kept[index] += kept;
        self.dropped[index] += bytes - kept;
        piece.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        if !piece.is_empty() {
            self.pieces.push((stream, piece));
        }
    }

    fn end(&mut self, end: End, at: Instant, tree: &mut Tree) {
        let of = |wanted: Stream| {
            let pieces = self.pieces.iter().filter(|(stream, _)| *stream == wanted);
            pieces.flat_map(|(_, piece)| piece.iter().copied()).collect()
        };
        let (stdout, stderr) = (of(Stream::Stdout), of(Stream::Stderr));
        let spill = self.spill(tree);
        let wall = at.saturating_duration_since(self.started);
        self.outcome = Some(ExecOutcome {
            stdout,
            stderr,
            stdout_dropped_bytes: self.dropped[0],
            stderr_dropped_bytes: self.dropped[1],
            end,
            spill,
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            cpu_ms: 0,
            peak_memory_bytes: 0,
        });
    }

    fn spill(&mut self, tree: &mut Tree) -> Option<String> {
        let whole = std::mem::take(&mut self.whole);
        if whole.len() as u64 <= self.spill_after_bytes? {
            return None;
        }
        let path = format!("/tmp/output/{}.txt", self.id);
        let resolved = tree.resolve(&path, Symlinks::Followed).ok()?;
        tree.make_parents(&resolved).ok()?;
        tree.put_file(&resolved, whole, false).ok()?;
        Some(path)
    }
}

/// A piece as a sink takes it.
pub(super) fn shown(piece: &(Stream, Vec<u8>)) -> Output<'_> {
    match piece.0 {
        Stream::Stdout => Output::Stdout(&piece.1),
        Stream::Stderr => Output::Stderr(&piece.1),
    }
}
