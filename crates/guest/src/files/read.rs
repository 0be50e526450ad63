//! Operations that look at one place: `List`, `Stat`, `Read`, `ReadLines`.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use outrigger_sandbox::{EntryKind, FileError, FileReply, Lines, ListEntry, limits as door, text};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};
use rustix::io::Errno;

use super::resolve::{ResolvedPath, Symlinks};
use crate::limits;

/// What a name is, in the words of the door.
pub(super) fn entry_kind(mode: u32) -> EntryKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// Whether any execute bit is set on a file.
pub(super) fn executable(stat: &Stat) -> bool {
    entry_kind(stat.st_mode) == EntryKind::File && stat.st_mode & 0o111 != 0
}

fn entry(name: &[u8], stat: &Stat) -> ListEntry {
    let kind = entry_kind(stat.st_mode);
    let file = kind == EntryKind::File;
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    ListEntry {
        name: String::from_utf8_lossy(name).into_owned(),
        kind,
        bytes: if file { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 },
        modified_ms: stat.st_mtime.saturating_mul(1000) + nanoseconds / 1_000_000,
        executable: executable(stat),
    }
}

/// `List`.
pub(super) fn list(path: &str, entries_max: u32) -> Result<FileReply, FileError> {
    let resolved = ResolvedPath::find(path, Symlinks::Followed)?;
    let dir = resolved.directory()?;
    let most = usize::try_from(door::WALK_ENTRIES_MAX).unwrap_or(usize::MAX);
    let mut names = Vec::new();
    for found in Dir::read_from(&dir).map_err(|errno| resolved.kernel(errno))? {
        let found = found.map_err(|errno| resolved.kernel(errno))?;
        let name = found.file_name();
        if name != c"." && name != c".." && names.len() < most {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    let wanted = entries_max.min(door::ENTRIES_MAX) as usize;
    let truncated = names.len() > wanted;
    let mut entries = Vec::new();
    for name in names.into_iter().take(wanted) {
        match statat(dir.as_fd(), &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => entries.push(entry(name.as_bytes(), &stat)),
            // It went away in between.
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(resolved.kernel(errno)),
        }
    }
    Ok(FileReply::Entries { entries, truncated })
}

/// `Stat`.
pub(super) fn stat(path: &str) -> Result<FileReply, FileError> {
    let resolved = ResolvedPath::find(path, Symlinks::AsItIs)?;
    let stat = resolved.stat()?.ok_or_else(|| resolved.kernel(Errno::NOENT))?;
    let name = resolved.path.rsplit('/').next().unwrap_or_default();
    Ok(FileReply::Entry(entry(if name.is_empty() { b"/" } else { name.as_bytes() }, &stat)))
}

/// `Read`.
pub(super) fn read(path: &str, offset: u64, bytes_max: u64) -> Result<FileReply, FileError> {
    let resolved = ResolvedPath::find_unlocking(path, Symlinks::Followed)?;
    let (file, stat) = resolved.open_unlocking()?;
    let total_bytes = u64::try_from(stat.st_size).unwrap_or(0);
    let wanted = bytes_max.min(door::FILE_CHUNK_BYTES_MAX).min(total_bytes.saturating_sub(offset));
    let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(resolved.io(&error)),
        }
    }
    bytes.truncate(filled);
    Ok(FileReply::Bytes { bytes, total_bytes })
}

/// `ReadLines`.
pub(super) fn read_lines(
    path: &str,
    first: u64,
    lines_max: u64,
    bytes_max: u64,
) -> Result<FileReply, FileError> {
    let resolved = ResolvedPath::find(path, Symlinks::Followed)?;
    let (file, _) = resolved.open(OFlags::RDONLY)?;
    let until = Instant::now() + Duration::from_millis(door::WALK_MS_MAX);
    let mut slicer =
        text::LineSlicer::new(first, lines_max, bytes_max.min(door::FILE_CHUNK_BYTES_MAX));
    let mut piece = vec![0; limits::PIECE_BYTES];
    let mut at = 0;
    loop {
        match file.read_at(&mut piece, at) {
            Ok(0) => return Ok(FileReply::Lines(slicer.finish())),
            Ok(length) => {
                slicer.push(&piece[..length]);
                at += length as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(resolved.io(&error)),
        }
        if (slicer.is_complete() && at >= limits::SCAN_BYTES_MAX) || Instant::now() >= until {
            let lines = Lines { total: None, digest: None, ..slicer.finish() };
            return Ok(FileReply::Lines(lines));
        }
    }
}
