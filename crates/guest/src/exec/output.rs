//! What is kept of the output of a command.
//!
//! Owns the caps, the count of what was dropped, and the file that keeps the whole
//! of it when a caller asked for that. Output is data: nothing here looks at it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use outrigger_sandbox::wire::Stream;
use outrigger_sandbox::{ExecId, Execute, Streams, limits as door};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::limits;
use crate::paths::OUTPUT;

/// The kept bytes of one stream.
#[derive(Debug, Default)]
pub(crate) struct CappedBuffer {
    pub(crate) bytes: Vec<u8>,
    cap: usize,
    pub(crate) dropped: u64,
}

impl CappedBuffer {
    pub(crate) fn with_cap(cap: u64) -> Self {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        Self { bytes: Vec::new(), cap, dropped: 0 }
    }

    /// What an earlier life kept.
    pub(crate) fn again(bytes: Vec<u8>, dropped: u64) -> Self {
        Self { cap: bytes.len(), bytes, dropped }
    }

    /// Keeps what fits and counts the rest.
    fn push(&mut self, piece: &[u8]) {
        let fits = piece.len().min(self.cap.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&piece[..fits]);
        self.dropped += (piece.len() - fits) as u64;
    }

    /// Gives up the bytes and counts them as dropped.
    pub(crate) fn discard(&mut self) {
        self.dropped += self.bytes.len() as u64;
        self.bytes = Vec::new();
    }
}

/// Both streams of a command and the file of the whole.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: CappedBuffer,
    pub(crate) stderr: CappedBuffer,
    /// Pieces in order of arrival, while all of them are still in memory.
    order: Vec<(Stream, usize)>,
    seen: u64,
    spill: Spill,
}

#[derive(Debug)]
enum Spill {
    /// Not asked for, or given up because the disk refused.
    Off,
    /// Asked for beyond this many bytes; nothing written yet.
    Beyond(u64),
    /// Being written.
    Open { file: File, wanted_beyond: u64, bytes: u64 },
}

impl Output {
    pub(crate) fn new(request: &Execute) -> Self {
        let stderr = match (request.streams, request.terminal) {
            (Streams::Separate, None) => request.stderr_bytes_max,
            (Streams::Merged, _) | (_, Some(_)) => 0,
        };
        Self {
            stdout: CappedBuffer::with_cap(request.stdout_bytes_max),
            stderr: CappedBuffer::with_cap(stderr),
            order: Vec::new(),
            seen: 0,
            spill: request.spill_after_bytes.map_or(Spill::Off, Spill::Beyond),
        }
    }

    /// The output of a command that ended in an earlier life.
    pub(crate) fn again(stdout: CappedBuffer, stderr: CappedBuffer) -> Self {
        Self { stdout, stderr, order: Vec::new(), seen: 0, spill: Spill::Off }
    }

    /// Takes a piece that arrived.
    pub(crate) fn push(
        &mut self,
        stream: Stream,
        piece: &[u8],
        id: &ExecId,
        spills: &mut SpillDir,
    ) {
        self.seen += piece.len() as u64;
        if let Spill::Beyond(limit) = self.spill {
            let kept = match stream {
                Stream::Stdout => &self.stdout,
                Stream::Stderr => &self.stderr,
            };
            let overflows = kept.bytes.len() + piece.len() > kept.cap;
            if self.seen > limit || overflows {
                self.spill = self.open(limit, id, spills);
            }
        }
        match &mut self.spill {
            Spill::Off => {}
            Spill::Beyond(_) => match self.order.last_mut() {
                Some((last, length)) if *last == stream => *length += piece.len(),
                Some(_) | None => self.order.push((stream, piece.len())),
            },
            Spill::Open { file, bytes, .. } => {
                let room = door::SPILL_BYTES_MAX.saturating_sub(*bytes);
                let part = &piece[..piece.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
                *bytes += part.len() as u64;
                if file.write_all(part).is_err() {
                    spills.remove(id);
                    self.spill = Spill::Off;
                }
            }
        }
        match stream {
            Stream::Stdout => self.stdout.push(piece),
            Stream::Stderr => self.stderr.push(piece),
        }
    }

    /// Starts the file with all that came before.
    fn open(&mut self, wanted_beyond: u64, id: &ExecId, spills: &mut SpillDir) -> Spill {
        let Some(mut file) = spills.create(id) else { return Spill::Off };
        let (mut out, mut err) = (self.stdout.bytes.as_slice(), self.stderr.bytes.as_slice());
        let mut bytes = 0;
        for (stream, length) in std::mem::take(&mut self.order) {
            let from = match stream {
                Stream::Stdout => &mut out,
                Stream::Stderr => &mut err,
            };
            let (piece, rest) = from.split_at(length.min(from.len()));
            *from = rest;
            bytes += piece.len() as u64;
            if file.write_all(piece).is_err() {
                spills.remove(id);
                return Spill::Off;
            }
        }
        Spill::Open { file, wanted_beyond, bytes }
    }

    /// Closes the file and gives its path, or removes it if there was no need for it.
    pub(crate) fn finish(&mut self, id: &ExecId, spills: &mut SpillDir) -> Option<String> {
        self.order = Vec::new();
        match std::mem::replace(&mut self.spill, Spill::Off) {
            Spill::Off | Spill::Beyond(_) => None,
            Spill::Open { wanted_beyond, bytes, .. } if self.seen > wanted_beyond => {
                spills.keep(id.clone(), bytes);
                Some(format!("{OUTPUT}/{id}"))
            }
            Spill::Open { .. } => {
                spills.remove(id);
                None
            }
        }
    }
}

/// The directory of the files with whole outputs, held open since before the
/// sandbox's own view of it became read-only.
#[derive(Debug)]
pub(crate) struct SpillDir {
    dir: Option<OwnedFd>,
    kept: VecDeque<(ExecId, u64)>,
    total: u64,
}

impl SpillDir {
    pub(crate) fn new(dir: Option<OwnedFd>) -> Self {
        Self { dir, kept: VecDeque::new(), total: 0 }
    }

    /// The directory by its name, where the guest was not given it.
    pub(crate) fn place() -> Option<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(OUTPUT, flags, Mode::empty()).ok()
    }

    fn create(&self, id: &ExecId) -> Option<File> {
        let dir = self.dir.as_ref()?;
        // A file of an earlier life of the sandbox may have this name.
        let _ = rustix::fs::unlinkat(dir, id.as_str(), AtFlags::empty());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        rustix::fs::openat(dir, id.as_str(), flags, mode).ok().map(File::from)
    }

    /// The files and their sizes, oldest first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &(ExecId, u64)> {
        self.kept.iter()
    }

    /// Counts a file, and removes the oldest where there is too much.
    pub(crate) fn keep(&mut self, id: ExecId, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        self.kept.push_back((id, bytes));
        while self.total > limits::SPILL_TOTAL_BYTES_MAX || self.kept.len() > limits::SPILLS_MAX {
            let Some((oldest, bytes)) = self.kept.pop_front() else { break };
            self.total = self.total.saturating_sub(bytes);
            self.remove(&oldest);
        }
    }

    fn remove(&self, id: &ExecId) {
        if let Some(dir) = &self.dir {
            let _ = rustix::fs::unlinkat(dir, id.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sandbox::Command;

    fn id() -> ExecId {
        ExecId::new("e1").unwrap()
    }

    fn request() -> Execute {
        let mut request = Execute::new(id(), Command::Shell(String::new()));
        (request.stdout_bytes_max, request.stderr_bytes_max) = (4, 4);
        request
    }

    #[test]
    fn what_exceeds_the_cap_is_counted_to_the_byte() {
        let mut spills = SpillDir::new(None);
        let mut output = Output::new(&request());
        for piece in [&b"abc"[..], b"def", b"ghi"] {
            output.push(Stream::Stdout, piece, &id(), &mut spills);
        }
        assert_eq!((output.stdout.bytes.as_slice(), output.stdout.dropped), (&b"abcd"[..], 5));
    }

    #[test]
    fn the_file_has_the_whole_in_order_of_arrival() {
        let dir = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(File::open(dir.path()).unwrap());
        let mut spills = SpillDir::new(Some(fd));
        let mut request = request();
        request.spill_after_bytes = Some(6);
        let mut output = Output::new(&request);
        for (stream, piece) in
            [(Stream::Stdout, "ab"), (Stream::Stderr, "cd"), (Stream::Stdout, "efgh")]
        {
            output.push(stream, piece.as_bytes(), &id(), &mut spills);
        }
        assert_eq!(output.finish(&id(), &mut spills).as_deref(), Some("/var/outrigger/output/e1"));
        assert_eq!(std::fs::read(dir.path().join("e1")).unwrap(), b"abcdefgh");
    }

    #[test]
    fn a_file_begun_for_a_small_cap_goes_away_when_it_was_not_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(File::open(dir.path()).unwrap());
        let mut spills = SpillDir::new(Some(fd));
        let mut request = request();
        request.spill_after_bytes = Some(100);
        let mut output = Output::new(&request);
        output.push(Stream::Stdout, b"0123456789", &id(), &mut spills);
        assert_eq!(output.finish(&id(), &mut spills), None);
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
    }
}
