//! How often entries were changed, told to every process that has the store open.
//!
//! Owns a file of two numbers beside the database: the last change that was begun, and the
//! last that is over. Both are written while the database's write lock is held, or right
//! after it. Where they are equal nothing is being changed, and as long as they stay what
//! they are nothing was: what was read of entries in such a time still holds, without
//! asking the database again. A writer that dies in between leaves them unequal until
//! somebody changes something.
//!
//! What the file says is never kept from one life of the machine to the next: who opens
//! the store knows nothing yet.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::place::DatabaseAddress;
use crate::Error;

/// Beside the database.
const NAME: &str = "entries.changes";
/// The two numbers, little end first.
const BYTES: usize = 16;
const ENDED_AT: u64 = 8;

/// The file that counts changes; none where they come from other machines too, and nothing is
/// known of them.
#[derive(Debug)]
pub(super) struct Changes(Option<ChangesFile>);

#[derive(Debug)]
struct ChangesFile {
    path: PathBuf,
    file: File,
}

/// A change that was begun.
#[derive(Debug)]
#[must_use]
pub(super) struct PendingChange(Option<PendingNumber>);

#[derive(Debug)]
struct PendingNumber {
    file: File,
    now: u64,
}

fn wrong(error: io::Error) -> Error {
    Error::io("counting changes of entries", error)
}

impl Changes {
    pub(super) fn open(directory: &Path, address: &DatabaseAddress) -> Result<Self, Error> {
        match address {
            DatabaseAddress::Sqlite => {
                let path = directory.join(NAME);
                let file = open(&path).map_err(wrong)?;
                Ok(Self(Some(ChangesFile { path, file })))
            }
            DatabaseAddress::Postgres(_) => Ok(Self(None)),
        }
    }

    /// Somebody who holds the write lock is about to change entries. By its name, so that
    /// whoever opened it since the file was removed, if it ever was, is told too.
    pub(super) fn begin(&self) -> Result<PendingChange, Error> {
        let Some(own) = &self.0 else { return Ok(PendingChange(None)) };
        let file = open(&own.path).map_err(wrong)?;
        let (begun, ended) = numbers(&file).map_err(wrong)?;
        let now = begun.max(ended) + 1;
        // Both, so that the file is never too short.
        let bytes = [now.to_le_bytes(), ended.to_le_bytes()].concat();
        file.write_all_at(&bytes, 0).map_err(wrong)?;
        Ok(PendingChange(Some(PendingNumber { file, now })))
    }

    /// After how many changes it is, unless one is under way.
    pub(super) fn now(&self) -> Option<u64> {
        let ChangesFile { file, .. } = self.0.as_ref()?;
        let (begun, ended) = numbers(file).ok()?;
        // Of a file that was removed, others know nothing.
        let shared = file.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
        (begun == ended && shared).then_some(begun)
    }
}

impl PendingChange {
    /// It is visible to all, or never will be.
    pub(super) fn end(self) {
        if let Some(PendingNumber { file, now }) = self.0 {
            // If it can't be told, nobody relies on it.
            let _ = file.write_all_at(&now.to_le_bytes(), ENDED_AT);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn numbers(file: &File) -> io::Result<(u64, u64)> {
    let mut bytes = [0; BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        // Nothing was ever changed.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok((0, 0)),
        read => read?,
    }
    let (begun, ended) = bytes.split_at(8);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    Ok((number(begun), number(ended)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_known_only_while_nobody_changes_anything() {
        let directory = tempfile::tempdir().unwrap();
        let [ours, theirs] =
            [(); 2].map(|()| Changes::open(directory.path(), &DatabaseAddress::Sqlite).unwrap());
        assert_eq!(ours.now(), Some(0));
        let begun = theirs.begin().unwrap();
        assert_eq!(ours.now(), None);
        begun.end();
        assert_eq!((ours.now(), theirs.now()), (Some(1), Some(1)));

        // One that died, and one that is late.
        let died = theirs.begin().unwrap();
        let next = ours.begin().unwrap();
        died.end();
        assert_eq!(ours.now(), None);
        next.end();
        assert_eq!(theirs.now(), Some(3));

        std::fs::remove_file(directory.path().join(NAME)).unwrap();
        assert_eq!(ours.now(), None);
        let later = Changes::open(directory.path(), &DatabaseAddress::Sqlite).unwrap();
        let known = later.now();
        ours.begin().unwrap().end();
        assert!(later.now() > known);
    }
}
