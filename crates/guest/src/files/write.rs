//! Operations that change one place: `Write`, `Edit`, `Link`, `MakeDir`.
//!
//! Owns the way that a file changes: a new one beside it, then a rename, so that a
//! reader sees the old or the new and a full disk leaves the old.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;

use outrigger_sandbox::{
    Digest, FileError, FileErrorKind, FileReply, Occurrences, Precondition, WriteMode,
    limits as door, text,
};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, fchmod, ftruncate, openat, renameat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::place::{Last, Place};
use super::walk::Until;
use crate::limits;

/// Why there is no digest of a file.
pub(super) const SLOW: &str = "the file could not be read to its end in time";

/// What `Write` asks for beside its path.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) contents: Vec<u8>,
    pub(super) mode: WriteMode,
    pub(super) executable: Option<bool>,
    pub(super) precondition: Precondition,
}

/// Permission bits of a file: as they were, or the default, with the execute bits as asked for.
fn permissions(before: Option<&Stat>, executable: Option<bool>) -> Mode {
    let bits = before.map_or(0o644, |stat| stat.st_mode & 0o777);
    let bits = match executable {
        // Executable by whom it is readable.
        Some(true) => bits | ((bits & 0o444) >> 2) | 0o100,
        Some(false) => bits & !0o111,
        None => bits,
    };
    Mode::from_raw_mode(bits)
}

/// The digest of a file, in memory that does not grow with it, and bounded in bytes
/// and time however the file grows. `None`: the time is over.
pub(super) fn digest_of(
    place: &Place,
    mut file: &File,
    bytes: u64,
    until: Until,
) -> Result<Option<Digest>, FileError> {
    let most = door::MANIFEST_FILE_BYTES_MAX;
    let too_large = |bytes: u64| {
        let detail = format!("the file has {bytes} bytes; at most {most} are read for a digest");
        place.error(FileErrorKind::TooLarge, &detail)
    };
    if bytes > most {
        return Err(too_large(bytes));
    }
    let mut hash = Sha256::new();
    let mut piece = vec![0; limits::PIECE_BYTES];
    let mut seen = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Some(Digest(hash.finalize().into()))),
            Ok(length) => {
                seen += length as u64;
                if seen > most {
                    return Err(too_large(seen));
                }
                hash.update(&piece[..length]);
                if until.over() {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(place.io(&error)),
        }
    }
}

impl Write {
    /// `Write`.
    pub(super) fn perform(self, path: &str) -> Result<FileReply, FileError> {
        let place = Place::find_writable(path, Last::Followed)?;
        if self.contents.len() as u64 > door::FILE_CHUNK_BYTES_MAX {
            let detail =
                "the piece is above 4 MiB; write the file in several, the later ones appended";
            return Err(place.error(FileErrorKind::TooLarge, detail));
        }
        let before = place.regular()?;
        self.check(&place, before.as_ref())?;
        let digest = text::digest(&self.contents);
        let mode = permissions(before.as_ref(), self.executable);
        match (self.mode, &before) {
            (WriteMode::Append, Some(_)) => self.append(&place, mode)?,
            (WriteMode::Append, None) => return Err(place.kernel(Errno::NOENT)),
            (WriteMode::Create, Some(_)) => {
                return Err(place.error(FileErrorKind::AlreadyExists, "there is a file already"));
            }
            (WriteMode::Create, None) => {
                replace(&place, &self.contents, mode, RenameFlags::NOREPLACE)?
            }
            (WriteMode::Replace, _) => replace(&place, &self.contents, mode, RenameFlags::empty())?,
        }
        Ok(FileReply::Written { digest, replaced: before.is_some() })
    }

    fn check(&self, place: &Place, before: Option<&Stat>) -> Result<(), FileError> {
        let Precondition::Digest(wanted) = self.precondition else { return Ok(()) };
        let found = match before {
            Some(_) => {
                let (file, stat) = place.open(OFlags::RDONLY)?;
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                let digest = digest_of(place, &file, bytes, Until::started())?;
                Some(digest.ok_or_else(|| place.error(FileErrorKind::TooLarge, SLOW))?)
            }
            None => None,
        };
        if found == Some(wanted) { Ok(()) } else { Err(unexpected(place)) }
    }

    fn append(&self, place: &Place, mode: Mode) -> Result<(), FileError> {
        let (mut file, stat) = place.open(OFlags::WRONLY | OFlags::APPEND)?;
        if let Err(error) = file.write_all(&self.contents) {
            // All or nothing: half a piece would be written twice by a repeat.
            let _ = ftruncate(&file, u64::try_from(stat.st_size).unwrap_or(0));
            return Err(place.io(&error));
        }
        fchmod(&file, mode).map_err(|errno| place.kernel(errno))
    }
}

fn unexpected(place: &Place) -> FileError {
    let detail = "the file is not the one that was expected; read it again";
    place.error(FileErrorKind::Conflict, detail)
}

/// Calls `make` with names that nobody has until one is free.
fn temporary<T>(
    place: &Place,
    mut make: impl FnMut(&str) -> rustix::io::Result<T>,
) -> Result<(T, String), FileError> {
    for _ in 0..limits::TEMPORARY_NAMES_MAX {
        let mut seed = [0; 8];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| place.kernel(errno))?;
        let name = format!(".outrigger-{:016x}", u64::from_ne_bytes(seed));
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(place.kernel(errno)),
        }
    }
    Err(place.kernel(Errno::EXIST))
}

/// Writes a new file and gives it the name.
fn replace(
    place: &Place,
    contents: &[u8],
    mode: Mode,
    flags: RenameFlags,
) -> Result<(), FileError> {
    place.above().make_dirs()?;
    let (dir, name) = place.parent()?;
    let create =
        OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (fd, temporary) =
        temporary(place, |name| openat(&dir, name, create, Mode::from_raw_mode(0o600)))?;
    let done = fill(place, fd, contents, mode).and_then(|()| {
        // Not every file system knows the flags, so none are given where none are needed.
        let renamed = match flags.is_empty() {
            true => renameat(&dir, &temporary, &dir, name),
            false => renameat_with(&dir, &temporary, &dir, name, flags),
        };
        renamed.map_err(|errno| place.kernel(errno))
    });
    if done.is_err() {
        let _ = unlinkat(&dir, &temporary, AtFlags::empty());
    }
    done
}

fn fill(place: &Place, fd: OwnedFd, contents: &[u8], mode: Mode) -> Result<(), FileError> {
    let mut file = File::from(fd);
    file.write_all(contents).map_err(|error| place.io(&error))?;
    fchmod(&file, mode).map_err(|errno| place.kernel(errno))
}

/// `Edit`.
pub(super) fn edit(
    path: &str,
    (old, new): (&[u8], &[u8]),
    occurrences: Occurrences,
    precondition: Precondition,
) -> Result<FileReply, FileError> {
    let place = Place::find_writable(path, Last::Followed)?;
    let (file, stat) = place.open(OFlags::RDONLY)?;
    let too_large =
        || place.error(FileErrorKind::TooLarge, "the file is above 16 MiB, too large to edit");
    if u64::try_from(stat.st_size).unwrap_or(0) > door::EDIT_FILE_BYTES_MAX {
        return Err(too_large());
    }
    let mut contents = Vec::new();
    file.take(door::EDIT_FILE_BYTES_MAX + 1)
        .read_to_end(&mut contents)
        .map_err(|error| place.io(&error))?;
    if contents.len() as u64 > door::EDIT_FILE_BYTES_MAX {
        return Err(too_large());
    }
    if let Precondition::Digest(wanted) = precondition
        && text::digest(&contents) != wanted
    {
        return Err(unexpected(&place));
    }
    let (bytes, edited) = text::edit(path, &contents, old, new, occurrences)?;
    replace(&place, &bytes, permissions(Some(&stat), None), RenameFlags::empty())?;
    Ok(FileReply::Edited(edited))
}

/// `Link`.
pub(super) fn link(path: &str, target: &str) -> Result<FileReply, FileError> {
    text::check_path(target)?;
    let place = Place::find(path, Last::AsItIs)?;
    let is_dir = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if place.stat()?.is_some_and(is_dir) {
        return Err(place.error(FileErrorKind::IsDirectory, "there is a directory"));
    }
    place.check_writable()?;
    place.above().make_dirs()?;
    let (dir, name) = place.parent()?;
    let ((), temporary) = temporary(&place, |name| symlinkat(target, &dir, name))?;
    renameat(&dir, &temporary, &dir, name).map_err(|errno| {
        let _ = unlinkat(&dir, &temporary, AtFlags::empty());
        place.kernel(errno)
    })?;
    Ok(FileReply::Done)
}

/// `MakeDir`.
pub(super) fn make_dir(path: &str) -> Result<FileReply, FileError> {
    let place = Place::find(path, Last::Followed)?;
    match place.stat()?.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Some(FileType::Directory) => return Ok(FileReply::Done),
        Some(_) => return Err(place.error(FileErrorKind::AlreadyExists, "there is something else")),
        None => {}
    }
    place.check_writable()?;
    place.make_dirs()?;
    Ok(FileReply::Done)
}
