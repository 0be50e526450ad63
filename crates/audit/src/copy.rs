//! The copy of the log beside the database: entries as lines of a file, and the
//! newest checkpoint as another.
//!
//! It names what is missing when somebody puts an older database in place. It is
//! written after the commit that it follows and may lag behind it, never run ahead.
//! Must never be cut, but for a line that a crash left unfinished.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outrigger_agent::{Digest, Seq, SessionId};

use crate::error::Error;
use crate::files::create_new;
use crate::limits;
use crate::log::LogEntry;

const LOG: &str = "log";
const CHECKPOINT: &str = "checkpoint";
const DOING: &str = "copying the audit log";
const READING: &str = "reading the copy of the audit log";

/// The copy in a directory.
#[derive(Debug)]
pub struct LogCopy {
    directory: PathBuf,
}

/// The copy, open and locked for one writer.
#[derive(Debug)]
pub struct LogCopyWriter<'a> {
    directory: &'a Path,
    file: File,
    /// How many entries it has.
    pub size: u64,
}

/// The lines of the copy that were there when it was opened, one after the other.
#[derive(Debug)]
pub struct LogCopyLines {
    reader: BufReader<Take<File>>,
    /// How many entries were read.
    pub size: u64,
    /// Whether the next line is no entry. It is the last that is read.
    pub is_broken: bool,
}

impl LogCopy {
    /// The copy that is, or will be, in that directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// How many entries it has, by its last whole line.
    ///
    /// # Errors
    /// [`Error::Damaged`] where that is no entry; what the disk says.
    pub fn size(&self) -> Result<u64, Error> {
        match File::open(self.directory.join(LOG)) {
            Ok(mut file) => Ok(self.tail(&mut file)?.0),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(Error::io(DOING, e)),
        }
    }

    /// How many entries a file has, and where its last whole line ends.
    fn tail(&self, file: &mut File) -> Result<(u64, u64), Error> {
        let wrong = |e| Error::io(DOING, e);
        let bytes = file.metadata().map_err(wrong)?.len();
        let from = bytes.saturating_sub(2 * limits::LOG_LINE_BYTES_MAX);
        file.seek(SeekFrom::Start(from)).map_err(wrong)?;
        let mut tail = Vec::new();
        file.take(bytes - from).read_to_end(&mut tail).map_err(wrong)?;
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let last = tail[..whole].split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
        let size = match last.map(|line| std::str::from_utf8(line).ok().and_then(parse)) {
            None => 0,
            Some(Some((number, _))) => number + 1,
            Some(None) => {
                let place = self.directory.join(LOG).display().to_string();
                return Err(Error::damaged(place, "its last line is no entry of the log"));
            }
        };
        Ok((size, from + whole as u64))
    }

    /// Opens it for writing. An unfinished last line is cut off; whatever else is
    /// wrong with it stays as it is, and nothing is written.
    ///
    /// # Errors
    /// [`Error::Damaged`] where its last line is no entry; what the disk says.
    pub fn write(&self) -> Result<LogCopyWriter<'_>, Error> {
        let wrong = |e| Error::io(DOING, e);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(self.directory.join(LOG)).map_err(wrong)?;
        let exclusive = rustix::fs::FlockOperation::LockExclusive;
        rustix::fs::flock(&file, exclusive).map_err(|e| wrong(e.into()))?;
        let (size, end) = self.tail(&mut file)?;
        file.set_len(end).map_err(wrong)?;
        file.seek(SeekFrom::Start(end)).map_err(wrong)?;
        Ok(LogCopyWriter { directory: &self.directory, file, size })
    }

    /// Its entries as far as they are written by now; nothing if there is none.
    ///
    /// # Errors
    /// What the disk says.
    pub fn lines(&self) -> Result<Option<LogCopyLines>, Error> {
        let file = match File::open(self.directory.join(LOG)) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(READING, e)),
        };
        let bytes = file.metadata().map_err(|e| Error::io(READING, e))?.len();
        let reader = BufReader::new(file.take(bytes));
        Ok(Some(LogCopyLines { reader, size: 0, is_broken: false }))
    }

    /// The newest checkpoint that was put beside it.
    ///
    /// # Errors
    /// What the disk says.
    pub fn checkpoint(&self) -> Result<Option<String>, Error> {
        match fs::read_to_string(self.directory.join(CHECKPOINT)) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("reading the newest checkpoint", e)),
        }
    }
}

impl LogCopyLines {
    /// The next entry; nothing at the end, and before a line that is none.
    ///
    /// # Errors
    /// What the disk says.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry>, Error> {
        if self.is_broken {
            return Ok(None);
        }
        let mut line = Vec::new();
        let mut reader = (&mut self.reader).take(limits::LOG_LINE_BYTES_MAX);
        reader.read_until(b'\n', &mut line).map_err(|e| Error::io(READING, e))?;
        let is_cut = line.last() != Some(&b'\n');
        // A last line without its end is the work of a crash.
        if is_cut && (line.len() as u64) < limits::LOG_LINE_BYTES_MAX {
            return Ok(None);
        }
        match std::str::from_utf8(&line).ok().and_then(|line| parse(line.trim_end())) {
            Some((number, entry)) if number == self.size && !is_cut => {
                self.size += 1;
                Ok(Some(entry))
            }
            _ => {
                self.is_broken = true;
                Ok(None)
            }
        }
    }
}

impl LogCopyWriter<'_> {
    /// Appends entries, the first of which has the number `from`, as far as they are new.
    ///
    /// # Errors
    /// What the disk says.
    pub fn append(&mut self, from: u64, entries: &[LogEntry]) -> Result<(), Error> {
        let mut text = String::new();
        for (number, LogEntry { session, seq, link }) in (from..).zip(entries) {
            if number == self.size {
                text.push_str(&format!("{number} {session} {seq} {link}\n"));
                self.size += 1;
            }
        }
        self.file.write_all(text.as_bytes()).map_err(|e| Error::io(DOING, e))
    }

    /// Puts the newest checkpoint beside it.
    ///
    /// # Errors
    /// What the disk says.
    pub fn checkpoint(&self, note: &str) -> Result<(), Error> {
        let size = |note: &str| note.lines().nth(1).and_then(|line| line.parse::<u64>().ok());
        let path = self.directory.join(CHECKPOINT);
        let known = fs::read_to_string(&path).ok().and_then(|note| size(&note));
        if size(note) <= known {
            return Ok(());
        }
        let wrong = |e| Error::io(DOING, e);
        let (new, mut file) = create_new(self.directory, "new-").map_err(wrong)?;
        let written = file.write_all(note.as_bytes());
        written.and_then(|()| fs::rename(&new, &path)).map_err(wrong)
    }
}

fn parse(line: &str) -> Option<(u64, LogEntry)> {
    let mut words = line.split(' ');
    let mut word = || words.next();
    let (number, session, seq, link) = (word()?, word()?, word()?, word()?);
    let plain = |text: &str| text.parse::<u64>().ok().filter(|value| value.to_string() == text);
    let (session, link) = (SessionId::new(session)?, Digest::parse(link)?);
    let entry = LogEntry { session, seq: Seq(plain(seq)?), link };
    words.next().is_none().then_some((plain(number)?, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u64) -> LogEntry {
        let session = SessionId::new("s").unwrap();
        LogEntry { session, seq: Seq(seq), link: Digest::of(&seq.to_be_bytes()) }
    }

    fn read(copy: &LogCopy) -> (Vec<LogEntry>, bool) {
        let (mut lines, mut entries) = (copy.lines().unwrap().unwrap(), Vec::new());
        while let Some(entry) = lines.next_entry().unwrap() {
            entries.push(entry);
        }
        (entries, lines.is_broken)
    }

    #[test]
    fn it_goes_on_after_a_crash_and_says_how_far_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let copy = LogCopy::new(directory.path().to_owned());
        assert!(copy.lines().unwrap().is_none());
        let entries: Vec<LogEntry> = (1..=9).map(entry).collect();
        copy.write().unwrap().append(0, &entries[..4]).unwrap();
        let path = directory.path().join(LOG);
        let mut text = fs::read(&path).unwrap();
        text.extend(b"4 s 5 0123");
        fs::write(&path, text).unwrap();
        assert_eq!(read(&copy), (entries[..4].to_vec(), false));
        let mut writing = copy.write().unwrap();
        assert_eq!(writing.size, 4);
        // What it has already is not written again, and no gap is made.
        writing.append(2, &entries[2..7]).unwrap();
        writing.append(8, &entries[8..]).unwrap();
        drop(writing);
        assert_eq!(read(&copy), (entries[..7].to_vec(), false));
        fs::write(&path, "0 s 1 zz\n").unwrap();
        assert!(matches!(copy.write(), Err(Error::Damaged { .. })));
        assert_eq!(read(&copy), (Vec::new(), true));
        fs::write(&path, vec![b'0'; 1 << 20]).unwrap();
        assert_eq!(read(&copy), (Vec::new(), true));
    }
}
