//! Files that carry a store, or sessions of one, elsewhere: tar archives of plain files in
//! known places.
//!
//! Owns how they are written and read. What is read may be made up by somebody: a file is
//! taken only from a place that is asked for, and never by a path that stands in the archive.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use outrigger_agent::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::{Error, limits};

/// What it is called in messages.
const WRITING: &str = "writing the archive";
const READING: &str = "reading the archive";

/// The first file of each archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head<T> {
    pub(crate) format: u32,
    #[serde(flatten)]
    pub(crate) rest: T,
}

/// Writes an archive.
pub(crate) struct ArchiveWriter {
    builder: Builder<File>,
    sums: String,
}

impl ArchiveWriter {
    pub(crate) fn new(file: File) -> Self {
        Self { builder: Builder::new(file), sums: String::new() }
    }

    /// Adds a file of so many bytes.
    pub(crate) fn add(&mut self, name: &str, bytes: u64, content: impl Read) -> Result<(), Error> {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(bytes);
        header.set_mode(0o600);
        let mut hashed = HashingReader { inner: content, hash: Sha256::new(), bytes: 0 };
        self.builder
            .append_data(&mut header, name, (&mut hashed).take(bytes))
            .map_err(|e| Error::io(WRITING, e))?;
        // The last read of a blob tells whether it is what its name says.
        let rest = io::copy(&mut hashed, &mut io::sink()).map_err(|e| wrong(name, e))?;
        if hashed.bytes != bytes || rest > 0 {
            return Err(Error::damaged(name, "it changed while it was read"));
        }
        let digest = Digest::from_sha256(hashed.hash.finalize().into());
        self.sums.push_str(&format!("{digest}  {name}\n"));
        Ok(())
    }

    /// Adds a file of the disk.
    pub(crate) fn add_file(&mut self, name: &str, path: &Path) -> Result<(), Error> {
        let file = File::open(path).map_err(|e| Error::io(WRITING, e))?;
        let bytes = file.metadata().map_err(|e| Error::io(WRITING, e))?.len();
        self.add(name, bytes, file)
    }

    /// Ends it with the sums of all files, durably.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        let sums = std::mem::take(&mut self.sums);
        self.add(SUMS, sums.len() as u64, sums.as_bytes())?;
        let mut file = self.builder.into_inner().map_err(|e| Error::io(WRITING, e))?;
        file.flush().and_then(|()| file.sync_all()).map_err(|e| Error::io(WRITING, e))
    }
}

/// The last file: the SHA-256 of each of the others.
const SUMS: &str = "SHA256SUMS";

/// Reads an archive: `first` is what it must begin with, and each of the other files is
/// handed to `take` by its name. Everything is compared with the sums at the end, so that
/// nothing that was taken counts before this returns.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(
    file: File,
    (first, format): (&str, u32),
    mut take: impl FnMut(&T, &str, &mut dyn Read) -> Result<(), Error>,
) -> Result<T, Error> {
    let io = |e| Error::io(READING, e);
    let no_archive = |what: &str| Error::damaged("the archive", what);
    let mut archive = tar::Archive::new(io::BufReader::new(file));
    let (mut head, mut sums, mut last) = (None, String::new(), None);
    for entry in archive.entries().map_err(io)? {
        let entry = entry.map_err(|e| no_archive(&e.to_string()))?;
        let name = std::str::from_utf8(&entry.path_bytes()).map(str::to_owned);
        let name = name.map_err(|_| no_archive("a file has a name that is no text"))?;
        if entry.header().entry_type() != EntryType::Regular || last.is_some() {
            return Err(no_archive("it has more than plain files, or something behind its end"));
        }
        let bytes = entry.size();
        let mut hashed = HashingReader { inner: entry, hash: Sha256::new(), bytes: 0 };
        let Some(head) = &head else {
            if name != first {
                return Err(no_archive(&format!("it begins with no {first}")));
            }
            let text = short(&mut hashed, limits::ARCHIVE_HEAD_BYTES_MAX)?;
            head = Some(parse(&text, format)?);
            sums = format!("{}  {name}\n", hashed.digest());
            continue;
        };
        if name == SUMS {
            let text = short(&mut hashed, sums.len() as u64)?;
            last = Some(text);
            continue;
        }
        take(head, &name, &mut hashed)?;
        io::copy(&mut hashed, &mut io::sink()).map_err(|e| wrong(&name, e))?;
        if hashed.bytes != bytes {
            return Err(no_archive("it is cut short"));
        }
        sums.push_str(&format!("{}  {name}\n", hashed.digest()));
        if sums.len() as u64 > limits::ARCHIVE_SUMS_BYTES_MAX {
            return Err(no_archive("it has too many files"));
        }
    }
    match (head, last) {
        (Some(head), Some(last)) if last == sums.as_bytes() => Ok(head),
        (Some(_), Some(_)) => Err(no_archive("its content is not what its sums say")),
        _ => Err(no_archive("it is cut short")),
    }
}

fn short(from: &mut impl Read, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut text).map_err(|e| Error::io(READING, e))?;
    Error::within("a part of the archive (bytes)", text.len() as u64, bytes_max)?;
    Ok(text)
}

fn parse<T: for<'de> Deserialize<'de>>(text: &[u8], known: u32) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let none = |e: serde_json::Error| Error::damaged("the archive", e.to_string());
    let Format { format } = serde_json::from_slice(text).map_err(none)?;
    if format > known {
        let (found, known) = (u64::from(format), u64::from(known));
        return Err(Error::Newer { place: "the archive".to_owned(), found, known });
    }
    serde_json::from_slice::<Head<T>>(text).map(|head| head.rest).map_err(none)
}

fn wrong(name: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::damaged(name, error.to_string())
        }
        _ => Error::io(READING, error),
    }
}

/// Hashes what is read.
struct HashingReader<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R> HashingReader<R> {
    fn digest(self) -> Digest {
        Digest::from_sha256(self.hash.finalize().into())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hash.update(&into[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
