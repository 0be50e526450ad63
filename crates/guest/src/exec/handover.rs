//! What an id named, on its way from one life of the sandbox to the next.
//!
//! Owns its form in a file: records in a row, framed as on the wire, from
//! [`HandoverRecord::Begin`] to [`HandoverRecord::End`]. The file lay on a disk in between, so it is
//! read as if anybody had written it: what does not follow the form to the end, or
//! is above a limit, is refused whole, because an id that is missing could run again.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::OwnedFd;

use outrigger_sandbox::wire::{self, FrameBuffer, Stream, WireError};
use outrigger_sandbox::{Error, ExecId, ExecOutcome, FileReply, limits as door};
use serde::{Deserialize, Serialize};

use crate::exec::output::{CappedBuffer, Output, SpillDir};
use crate::exec::table::{CommandEntry, ExecLookup, FileEntry, Slot, State, Table};
use crate::limits;

/// Version of this form. Lives of different builds may follow each other.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
enum HandoverRecord {
    /// The first one.
    Begin { version: u32 },
    /// Names of which nothing else is known.
    Forgotten(Vec<u64>),
    /// A changing file operation.
    File { id: ExecId, answer: Result<FileReply, Error> },
    /// A command; its output follows.
    Command { id: ExecId, outcome: Result<ExecOutcome, Error>, dropped: [u64; 2] },
    /// The next bytes of the command before.
    Output {
        stream: Stream,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A file with the whole output of a command.
    Spill { id: ExecId, bytes: u64 },
    /// The last one: nothing was cut off.
    End,
}

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandoverError {
    #[error("what was handed over can't be read")]
    Read(#[from] io::Error),
    #[error("what was handed over is malformed")]
    Record(#[from] WireError),
    #[error("what was handed over is {0}")]
    Form(&'static str),
}

/// Writes all that is finished.
pub(crate) fn write(table: &Table, spills: &SpillDir, to: OwnedFd) -> io::Result<()> {
    let mut file = BufWriter::new(File::from(to));
    let mut left = door::HANDED_OVER_BYTES_MAX;
    let mut put = |record: &HandoverRecord| {
        let frame = wire::encode(record).map_err(io::Error::other)?;
        // What nobody would read is not written: this life goes on instead.
        left = left.checked_sub(frame.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        file.write_all(&frame)
    };
    put(&HandoverRecord::Begin { version: VERSION })?;
    let marks: Vec<u64> = table.forgotten().collect();
    for piece in marks.chunks(limits::KEPT_PIECE_BYTES / size_of::<u64>()) {
        put(&HandoverRecord::Forgotten(piece.to_vec()))?;
    }
    for (id, slot) in table.finished() {
        match slot {
            Slot::File(FileEntry::Done(answer)) => {
                put(&HandoverRecord::File { id: id.clone(), answer: answer.clone() })?;
            }
            Slot::Command(entry) => put_command(&mut put, id, entry)?,
            Slot::File(FileEntry::Pending(_)) => {}
        }
    }
    for (id, bytes) in spills.kept() {
        put(&HandoverRecord::Spill { id: id.clone(), bytes: *bytes })?;
    }
    put(&HandoverRecord::End)?;
    file.flush()
}

fn put_command(
    put: &mut impl FnMut(&HandoverRecord) -> io::Result<()>,
    id: &ExecId,
    entry: &CommandEntry,
) -> io::Result<()> {
    let State::Ended(outcome) = &entry.state else { return Ok(()) };
    let (out, err) = (&entry.output.stdout, &entry.output.stderr);
    let dropped = [out.dropped, err.dropped];
    put(&HandoverRecord::Command { id: id.clone(), outcome: outcome.clone(), dropped })?;
    for (stream, kept) in [(Stream::Stdout, out), (Stream::Stderr, err)] {
        for piece in kept.bytes.chunks(limits::KEPT_PIECE_BYTES) {
            put(&HandoverRecord::Output { stream, bytes: piece.to_vec() })?;
        }
    }
    Ok(())
}

/// A command whose output is not complete yet.
#[derive(Debug)]
struct PartialCommand {
    id: ExecId,
    outcome: Result<ExecOutcome, Error>,
    dropped: [u64; 2],
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Reads what an earlier life handed over.
pub(crate) fn read(from: impl Read, spills: &mut SpillDir) -> Result<Table, HandoverError> {
    let mut reader =
        HandoverReader { begun: false, over: false, open: None, table: Table::default() };
    let mut from = from.take(door::HANDED_OVER_BYTES_MAX + 1);
    let (mut frames, mut piece) = (FrameBuffer::default(), vec![0; limits::PIECE_BYTES]);
    let mut seen = 0;
    loop {
        let length = match from.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        seen += length as u64;
        if seen > door::HANDED_OVER_BYTES_MAX {
            return Err(HandoverError::Form("too long"));
        }
        if length == 0 {
            let whole = reader.over && frames.is_empty();
            return if whole { Ok(reader.table) } else { Err(HandoverError::Form("cut off")) };
        }
        frames.push(&piece[..length]);
        while let Some(record) = frames.take()? {
            reader.take(record, spills)?;
        }
    }
}

#[derive(Debug)]
struct HandoverReader {
    begun: bool,
    over: bool,
    open: Option<PartialCommand>,
    table: Table,
}

impl HandoverReader {
    fn take(&mut self, record: HandoverRecord, spills: &mut SpillDir) -> Result<(), HandoverError> {
        if self.over || self.begun == matches!(record, HandoverRecord::Begin { .. }) {
            return Err(HandoverError::Form("out of order"));
        }
        if let HandoverRecord::Output { stream, bytes } = record {
            return self.output(stream, &bytes);
        }
        self.close();
        match record {
            HandoverRecord::Begin { version: VERSION } => self.begun = true,
            HandoverRecord::Begin { .. } => return Err(HandoverError::Form("of another version")),
            HandoverRecord::Forgotten(marks) => {
                for mark in marks {
                    self.table.forget_mark(mark);
                }
            }
            HandoverRecord::File { id, answer } => {
                self.check_new(&id)?;
                self.table.insert(id.clone(), Slot::File(FileEntry::Done(answer)));
                self.table.finish(id, 0);
            }
            HandoverRecord::Command { id, outcome, dropped } => {
                self.check_new(&id)?;
                if let Ok(executed) = &outcome
                    && !(executed.stdout.is_empty() && executed.stderr.is_empty())
                {
                    return Err(HandoverError::Form("with output twice"));
                }
                let (stdout, stderr) = (Vec::new(), Vec::new());
                self.open = Some(PartialCommand { id, outcome, dropped, stdout, stderr });
            }
            HandoverRecord::Spill { id, bytes } => spills.keep(id, bytes),
            HandoverRecord::End => self.over = true,
            HandoverRecord::Output { .. } => return Err(HandoverError::Form("out of order")),
        }
        Ok(())
    }

    fn check_new(&mut self, id: &ExecId) -> Result<(), HandoverError> {
        match self.table.look(id) {
            ExecLookup::Slot(_) => Err(HandoverError::Form("with one id twice")),
            // Forgotten while this is read, by the limits that hold now.
            ExecLookup::Forgotten | ExecLookup::New => Ok(()),
        }
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), HandoverError> {
        let open = self.open.as_mut().ok_or(HandoverError::Form("out of order"))?;
        let kept = match stream {
            Stream::Stdout => &mut open.stdout,
            Stream::Stderr => &mut open.stderr,
        };
        kept.extend_from_slice(bytes);
        if kept.len() as u64 > door::OUTPUT_BYTES_MAX {
            return Err(HandoverError::Form("with more output than is kept"));
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let bytes = open.stdout.len() + open.stderr.len();
        let output = Output::again(
            CappedBuffer::again(open.stdout, open.dropped[0]),
            CappedBuffer::again(open.stderr, open.dropped[1]),
        );
        let (watchers, killers) = (Vec::new(), Vec::new());
        let entry = CommandEntry { output, state: State::Ended(open.outcome), watchers, killers };
        self.table.insert(open.id.clone(), Slot::Command(Box::new(entry)));
        self.table.finish(open.id, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::caller::Caller;
    use crate::exec::table::{Watcher, brief};
    use outrigger_sandbox::{Command, FileError, FileErrorKind};
    use proptest::prelude::*;
    use std::os::fd::OwnedFd;

    fn id(name: &str) -> ExecId {
        ExecId::new(name).unwrap()
    }

    fn filled() -> Table {
        let mut table = Table::default();
        let output = Output::again(
            CappedBuffer::again(vec![7; 300_000], 3),
            CappedBuffer::again(vec![0, 255], 0),
        );
        let (state, watchers) = (State::Ended(Ok(ExecOutcome::never_ran())), Vec::new());
        let entry = CommandEntry { output, state, watchers, killers: Vec::new() };
        table.insert(id("command"), Slot::Command(Box::new(entry)));
        table.finish(id("command"), 300_002);
        table.insert(id("file"), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
        table.finish(id("file"), 0);
        for number in 0..=door::FINISHED_EXECS_MAX {
            let id = id(&format!("n{number}"));
            table.insert(id.clone(), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
            table.finish(id, 0);
            if number == 0 {
                // These stay, and the oldest of the others go.
                let kept = table.entry(&super::tests::id("command")).unwrap();
                kept.watchers.push(Watcher::new(Caller { connection: 1, request: 1 }));
            }
        }
        table
    }

    fn written(table: &Table, spills: &SpillDir) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(table, spills, OwnedFd::from(file.reopen().unwrap())).unwrap();
        std::fs::read(file.path()).unwrap()
    }

    #[test]
    fn what_is_finished_is_known_in_the_next_life_and_what_is_forgotten_stays_so() {
        let mut spills = SpillDir::new(None);
        spills.keep(id("command"), 9);
        let bytes = written(&filled(), &spills);
        let mut found = SpillDir::new(None);
        let mut table = read(&bytes[..], &mut found).unwrap();
        let entry = table.entry(&id("command")).unwrap();
        assert_eq!(entry.output.stdout.bytes, vec![7; 300_000]);
        assert_eq!(
            (entry.output.stdout.dropped, &entry.output.stderr.bytes[..]),
            (3, &[0, 255][..])
        );
        let never = ExecOutcome::never_ran();
        assert!(matches!(&entry.state, State::Ended(Ok(executed)) if *executed == never));
        assert!(matches!(table.look(&id("file")), ExecLookup::Forgotten));
        assert!(matches!(
            table.look(&id("n9")),
            ExecLookup::Slot(Slot::File(FileEntry::Done(Ok(_))))
        ));
        assert!(matches!(table.look(&id("new")), ExecLookup::New));
        assert!(found.kept().eq(spills.kept()));
        assert_eq!(written(&table, &found), bytes, "and is handed on as it came");
    }

    /// As a table is filled by whoever asks for the longest of everything.
    #[test]
    fn the_most_that_can_be_remembered_can_be_handed_over() {
        let long = "x".repeat(4 * door::OUTCOME_TEXT_BYTES_MAX);
        let name = |number: usize| id(&format!("{number:0>width$}", width = door::ID_BYTES_MAX));
        let mut table = Table::default();
        for mark in 0..limits::FORGOTTEN_IDS_MAX as u64 {
            table.forget_mark(u64::MAX - mark);
        }
        let refused = || {
            let (path, detail) = (long.clone(), long.clone());
            brief(FileError { kind: FileErrorKind::InvalidPath, path, detail }.into())
        };
        for number in 0..door::FINISHED_EXECS_MAX {
            table.insert(name(number), Slot::File(FileEntry::Done(Err(refused()))));
            table.finish(name(number), 0);
        }
        let program = crate::exec::spawn::program(&Command::Argv(vec![long.clone().into_bytes()]));
        assert_eq!(program.len(), limits::PROGRAM_BYTES_MAX);
        let most = usize::try_from(door::OUTPUT_BYTES_MAX).unwrap();
        let last = name(door::FINISHED_EXECS_MAX);
        for (number, bytes) in [(last.clone(), door::KEPT_OUTPUT_BYTES_MAX / 2), (id("z"), most)] {
            let kept = || CappedBuffer::again(vec![7; bytes], 0);
            let (output, state) =
                (Output::again(kept(), kept()), State::Ended(Ok(ExecOutcome::never_ran())));
            let entry = CommandEntry { output, state, watchers: Vec::new(), killers: Vec::new() };
            table.insert(number.clone(), Slot::Command(Box::new(entry)));
            table.finish(number, 2 * bytes);
        }
        let mut spills = SpillDir::new(None);
        for number in 0..2 * limits::SPILLS_MAX {
            spills.keep(name(number), 1);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        write(&table, &spills, OwnedFd::from(file.reopen().unwrap())).unwrap();
        let mut again = read(file.reopen().unwrap(), &mut SpillDir::new(None)).unwrap();
        assert!(matches!(again.look(&id("z")), ExecLookup::Slot(_)));
        // More is not written, and this life is told so.
        let kept = || CappedBuffer::again(vec![7; most], 0);
        let (output, state) =
            (Output::again(kept(), kept()), State::Ended(Ok(ExecOutcome::never_ran())));
        let watchers = vec![Watcher::new(Caller { connection: 1, request: 1 })];
        table.entry(&id("z")).unwrap().watchers = watchers;
        let entry = CommandEntry { output, state, watchers: Vec::new(), killers: Vec::new() };
        table.insert(id("w"), Slot::Command(Box::new(entry)));
        table.finish(id("w"), 2 * most);
        assert!(write(&table, &spills, OwnedFd::from(file.reopen().unwrap())).is_err());
    }

    #[test]
    fn what_is_cut_off_or_doubled_is_refused() {
        let mut table = Table::default();
        table.insert(id("file"), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
        table.finish(id("file"), 0);
        let bytes = written(&table, &SpillDir::new(None));
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length], &mut SpillDir::new(None)).is_err(), "{length}");
        }
        assert!(read(&bytes.repeat(2)[..], &mut SpillDir::new(None)).is_err());
        let record = |record: &HandoverRecord| wire::encode(record).unwrap();
        let begin = record(&HandoverRecord::Begin { version: VERSION });
        let piece = HandoverRecord::Output { stream: Stream::Stdout, bytes: vec![1] };
        let file = || HandoverRecord::File { id: id("a"), answer: Ok(FileReply::Done) };
        let end = record(&HandoverRecord::End);
        let table = [
            vec![record(&HandoverRecord::Begin { version: 2 }), end.clone()],
            vec![begin.clone(), record(&piece), end.clone()],
            vec![begin.clone(), record(&file()), record(&file()), end.clone()],
            vec![begin.clone(), end.clone(), end.clone()],
            vec![end],
        ];
        for records in table {
            assert!(read(&records.concat()[..], &mut SpillDir::new(None)).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let _ = read(&bytes[..], &mut SpillDir::new(None));
        }

        #[test]
        fn a_changed_byte_is_read_or_refused(at in 0_usize..4_000, byte in any::<u8>()) {
            let mut table = Table::default();
            for number in 0..100 {
                let id = id(&format!("f{number}"));
                table.insert(id.clone(), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
                table.finish(id, 0);
            }
            let mut bytes = written(&table, &SpillDir::new(None));
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = read(&bytes[..], &mut SpillDir::new(None));
        }
    }
}
