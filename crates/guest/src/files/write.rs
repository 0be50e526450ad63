//! Operations that change one place: `FileWrite`, `Edit`, `Link`, `MakeDir`, `Move`.
//!
//! Owns the way that a file changes: a new one beside it, then a rename, so that a
//! reader sees the old or the new and a full disk leaves the old.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;

use outrigger_sandbox::{
    ContentDigest, FileError, FileErrorKind, FileReply, Occurrences, Precondition, WriteMode,
    limits as door, text,
};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, UTIME_OMIT, fchmod,
    ftruncate, futimens, openat, renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::resolve::{ResolvedPath, Symlinks};
use super::walk::SearchDeadline;
use crate::limits;

/// Why there is no digest of a file.
pub(super) const SLOW: &str = "the file could not be read to its end in time";

/// What `FileWrite` asks for beside its path.
#[derive(Debug)]
pub(super) struct FileWrite {
    pub(super) contents: Vec<u8>,
    pub(super) mode: WriteMode,
    pub(super) executable: Option<bool>,
    pub(super) modified_ns: Option<i64>,
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

/// Nanoseconds of a second.
const NANOS: i64 = 1_000_000_000;

/// What a file has beside its contents.
#[derive(Debug, Clone, Copy)]
struct Attributes {
    mode: Mode,
    modified_ns: Option<i64>,
}

impl Attributes {
    fn set(self, file: &File) -> rustix::io::Result<()> {
        fchmod(file, self.mode)?;
        let Some(modified_ns) = self.modified_ns else { return Ok(()) };
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let (tv_sec, tv_nsec) = (modified_ns.div_euclid(NANOS), modified_ns.rem_euclid(NANOS));
        let last_modification = Timespec { tv_sec, tv_nsec };
        futimens(file, &Timestamps { last_access, last_modification })
    }
}

/// The digest of a file, in memory that does not grow with it, and bounded in bytes
/// and time however the file grows. `None`: the time is over.
pub(super) fn digest_of(
    resolved: &ResolvedPath,
    mut file: &File,
    bytes: u64,
    until: SearchDeadline,
) -> Result<Option<ContentDigest>, FileError> {
    let most = door::MANIFEST_FILE_BYTES_MAX;
    let too_large = |bytes: u64| {
        let detail = format!("the file has {bytes} bytes; at most {most} are read for a digest");
        resolved.error(FileErrorKind::TooLarge, &detail)
    };
    if bytes > most {
        return Err(too_large(bytes));
    }
    let mut hash = Sha256::new();
    let mut piece = vec![0; limits::PIECE_BYTES];
    let mut seen = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Some(ContentDigest(hash.finalize().into()))),
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
            Err(error) => return Err(resolved.io(&error)),
        }
    }
}

impl FileWrite {
    /// `FileWrite`.
    pub(super) fn perform(self, path: &str) -> Result<FileReply, FileError> {
        let resolved = ResolvedPath::find_writable(path, Symlinks::Followed)?;
        if self.contents.len() as u64 > door::FILE_CHUNK_BYTES_MAX {
            let detail =
                "the piece is above 4 MiB; write the file in several, the later ones appended";
            return Err(resolved.error(FileErrorKind::TooLarge, detail));
        }
        let before = resolved.regular()?;
        self.check(&resolved, before.as_ref())?;
        let digest = text::digest(&self.contents);
        let mode = permissions(before.as_ref(), self.executable);
        let attributes = Attributes { mode, modified_ns: self.modified_ns };
        match (self.mode, &before) {
            (WriteMode::Append, Some(_)) => self.append(&resolved, attributes)?,
            (WriteMode::Append, None) => return Err(resolved.kernel(Errno::NOENT)),
            (WriteMode::Create, Some(_)) => {
                return Err(resolved.error(FileErrorKind::AlreadyExists, "there is a file already"));
            }
            (WriteMode::Create, None) => {
                replace(&resolved, &self.contents, attributes, RenameFlags::NOREPLACE)?
            }
            (WriteMode::Replace, _) => {
                replace(&resolved, &self.contents, attributes, RenameFlags::empty())?
            }
        }
        Ok(FileReply::Written { digest, replaced: before.is_some() })
    }

    fn check(&self, resolved: &ResolvedPath, before: Option<&Stat>) -> Result<(), FileError> {
        let Precondition::Digest(wanted) = self.precondition else { return Ok(()) };
        let found = match before {
            Some(_) => {
                let (file, stat) = resolved.open(OFlags::RDONLY)?;
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                let digest = digest_of(resolved, &file, bytes, SearchDeadline::started())?;
                Some(digest.ok_or_else(|| resolved.error(FileErrorKind::TooLarge, SLOW))?)
            }
            None => None,
        };
        if found == Some(wanted) { Ok(()) } else { Err(unexpected(resolved)) }
    }

    fn append(&self, resolved: &ResolvedPath, attributes: Attributes) -> Result<(), FileError> {
        let (mut file, stat) = resolved.open(OFlags::WRONLY | OFlags::APPEND)?;
        if let Err(error) = file.write_all(&self.contents) {
            // All or nothing: half a piece would be written twice by a repeat.
            let _ = ftruncate(&file, u64::try_from(stat.st_size).unwrap_or(0));
            return Err(resolved.io(&error));
        }
        attributes.set(&file).map_err(|errno| resolved.kernel(errno))
    }
}

fn unexpected(resolved: &ResolvedPath) -> FileError {
    let detail = "the file is not the one that was expected; read it again";
    resolved.error(FileErrorKind::Conflict, detail)
}

/// Calls `make` with names that nobody has until one is free.
fn temporary<T>(
    resolved: &ResolvedPath,
    mut make: impl FnMut(&str) -> rustix::io::Result<T>,
) -> Result<(T, String), FileError> {
    for _ in 0..limits::TEMPORARY_NAMES_MAX {
        let mut seed = [0; 8];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| resolved.kernel(errno))?;
        let name = format!(".outrigger-{:016x}", u64::from_ne_bytes(seed));
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(resolved.kernel(errno)),
        }
    }
    Err(resolved.kernel(Errno::EXIST))
}

/// Writes a new file and gives it the name.
fn replace(
    resolved: &ResolvedPath,
    contents: &[u8],
    attributes: Attributes,
    flags: RenameFlags,
) -> Result<(), FileError> {
    resolved.above().make_dirs()?;
    let (dir, name) = resolved.parent()?;
    let create =
        OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (fd, temporary) =
        temporary(resolved, |name| openat(&dir, name, create, Mode::from_raw_mode(0o600)))?;
    let done = fill(resolved, fd, contents, attributes).and_then(|()| {
        // Not every file system knows the flags, so none are given where none are needed.
        let renamed = match flags.is_empty() {
            true => renameat(&dir, &temporary, &dir, name),
            false => renameat_with(&dir, &temporary, &dir, name, flags),
        };
        renamed.map_err(|errno| resolved.kernel(errno))
    });
    if done.is_err() {
        let _ = unlinkat(&dir, &temporary, AtFlags::empty());
    }
    done
}

fn fill(
    resolved: &ResolvedPath,
    fd: OwnedFd,
    contents: &[u8],
    attributes: Attributes,
) -> Result<(), FileError> {
    let mut file = File::from(fd);
    file.write_all(contents).map_err(|error| resolved.io(&error))?;
    attributes.set(&file).map_err(|errno| resolved.kernel(errno))
}

/// `Edit`.
pub(super) fn edit(
    path: &str,
    (old, new): (&[u8], &[u8]),
    occurrences: Occurrences,
    precondition: Precondition,
) -> Result<FileReply, FileError> {
    let resolved = ResolvedPath::find_writable(path, Symlinks::Followed)?;
    let (file, stat) = resolved.open(OFlags::RDONLY)?;
    let too_large =
        || resolved.error(FileErrorKind::TooLarge, "the file is above 16 MiB, too large to edit");
    if u64::try_from(stat.st_size).unwrap_or(0) > door::EDIT_FILE_BYTES_MAX {
        return Err(too_large());
    }
    let mut contents = Vec::new();
    file.take(door::EDIT_FILE_BYTES_MAX + 1)
        .read_to_end(&mut contents)
        .map_err(|error| resolved.io(&error))?;
    if contents.len() as u64 > door::EDIT_FILE_BYTES_MAX {
        return Err(too_large());
    }
    if let Precondition::Digest(wanted) = precondition
        && text::digest(&contents) != wanted
    {
        return Err(unexpected(&resolved));
    }
    let (bytes, edited) = text::edit(path, &contents, old, new, occurrences)?;
    let attributes = Attributes { mode: permissions(Some(&stat), None), modified_ns: None };
    replace(&resolved, &bytes, attributes, RenameFlags::empty())?;
    Ok(FileReply::Edited(edited))
}

/// `Link`.
pub(super) fn link(path: &str, target: &str) -> Result<FileReply, FileError> {
    text::check_path(target)?;
    let resolved = ResolvedPath::find(path, Symlinks::AsItIs)?;
    let is_dir = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if resolved.stat()?.is_some_and(is_dir) {
        return Err(resolved.error(FileErrorKind::IsDirectory, "there is a directory"));
    }
    resolved.check_writable()?;
    resolved.above().make_dirs()?;
    let (dir, name) = resolved.parent()?;
    let ((), temporary) = temporary(&resolved, |name| symlinkat(target, &dir, name))?;
    renameat(&dir, &temporary, &dir, name).map_err(|errno| {
        let _ = unlinkat(&dir, &temporary, AtFlags::empty());
        resolved.kernel(errno)
    })?;
    Ok(FileReply::Done)
}

/// `MakeDir`.
pub(super) fn make_dir(path: &str) -> Result<FileReply, FileError> {
    let resolved = ResolvedPath::find(path, Symlinks::Followed)?;
    match resolved.stat()?.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Some(FileType::Directory) => return Ok(FileReply::Done),
        Some(_) => {
            return Err(resolved.error(FileErrorKind::AlreadyExists, "there is something else"));
        }
        None => {}
    }
    resolved.check_writable()?;
    resolved.make_dirs()?;
    Ok(FileReply::Done)
}

/// `Move`.
pub(super) fn rename(path: &str, to: &str) -> Result<FileReply, FileError> {
    let from = ResolvedPath::find_writable(path, Symlinks::AsItIs)?;
    let is_there = from.stat()?;
    is_there.ok_or_else(|| from.kernel(Errno::NOENT))?;
    let into = ResolvedPath::find_writable(to, Symlinks::AsItIs)?;
    let is_dir = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if into.stat()?.is_some_and(is_dir) {
        return Err(into.error(FileErrorKind::AlreadyExists, "there is a directory"));
    }
    into.above().make_dirs()?;
    let ((dir, name), (into_dir, into_name)) = (from.parent()?, into.parent()?);
    renameat(&dir, name, &into_dir, into_name).map_err(|errno| match errno {
        Errno::INVAL => into.error(FileErrorKind::InvalidPath, "it is within what is moved"),
        Errno::XDEV => into.error(FileErrorKind::InvalidPath, "it is on another disk: copy it"),
        errno => into.kernel(errno),
    })?;
    Ok(FileReply::Done)
}
