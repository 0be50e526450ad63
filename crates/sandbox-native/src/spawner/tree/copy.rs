//! Copying a tree at rest.
//!
//! Owns what is kept: names, contents with their holes, owners, modes, times, links
//! and the files that have several names. Extended attributes are not.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use outrigger_sandbox::limits::PATH_BYTES_MAX;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid, chownat,
    fchmod, fchown, fstat, ftruncate, futimens, linkat, mkdirat, mknodat, openat, readlinkat, seek,
    sendfile, symlinkat, utimensat,
};
use rustix::io::Errno;

use super::walk::{self, Entry, TreeState};
use crate::limits;

/// A directory that is being filled.
struct Dir {
    /// Closed while too many below it are open.
    dir: Option<OwnedFd>,
    name: CString,
    times: Timestamps,
}

struct Copy {
    top: OwnedFd,
    dirs: Vec<Dir>,
    /// Where the first name of a file with several is.
    linked: HashMap<(u64, u64), PathBuf>,
}

/// Copies a tree to a name that is free.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let source = walk::open_top(from)?;
    let stat = fstat(&source)?;
    mkdirat(CWD, to, Mode::RWXU)?;
    let top = walk::open_top(to)?;
    own(top.as_fd(), &stat)?;
    let first = Dir { dir: Some(top.try_clone()?), name: c".".to_owned(), times: times(&stat) };
    let mut copy = Copy { top, dirs: vec![first], linked: HashMap::new() };
    walk::walk(source, TreeState::AtRest, u64::MAX, |entry| copy.entry(entry))?;
    while !copy.dirs.is_empty() {
        copy.leave()?;
    }
    Ok(())
}

fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: stat.st_atime_nsec as i64 },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as i64 },
    }
}

/// The mode comes last, because a change of the owner takes bits of it away.
fn own(file: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    fchown(file, Some(uid), Some(gid))?;
    Ok(fchmod(file, Mode::from_raw_mode(stat.st_mode))?)
}

impl Copy {
    /// Ends the last directory; what was written into it changed its times.
    fn leave(&mut self) -> io::Result<()> {
        let Some(last) = self.dirs.pop() else { return Ok(()) };
        let Some(dir) = last.dir else { return Err(closed()) };
        if let Some(above) = self.dirs.last_mut()
            && above.dir.is_none()
        {
            above.dir = Some(walk::open(&dir, c"..")?);
        }
        Ok(futimens(&dir, &last.times)?)
    }

    fn entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        while self.dirs.len() > entry.depth {
            self.leave()?;
        }
        let last = self.dirs.last().and_then(|last| last.dir.as_ref()).ok_or_else(closed)?;
        let (stat, name) = (entry.stat, entry.name);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                mkdirat(last, name, Mode::RWXU)?;
                let dir = walk::open(last, name)?;
                own(dir.as_fd(), stat)?;
                self.dirs.push(Dir { dir: Some(dir), name: name.to_owned(), times: times(stat) });
                if let Some(far) = self.dirs.len().checked_sub(limits::WALK_DIRS_MAX + 1) {
                    self.dirs[far].dir = None;
                }
                Ok(())
            }
            FileType::RegularFile => {
                let key = (stat.st_dev, stat.st_ino);
                if stat.st_nlink > 1
                    && let Some(first) = self.linked.get(&key)
                {
                    return Ok(linkat(&self.top, first, last, name, AtFlags::empty())?);
                }
                file(entry, last.as_fd())?;
                if stat.st_nlink > 1 && self.linked.len() < limits::FLATTEN_LINKS_MAX {
                    let path = self.path(entry);
                    if path.as_os_str().len() < PATH_BYTES_MAX {
                        self.linked.insert(key, path);
                    }
                }
                Ok(())
            }
            FileType::Symlink => {
                let target = readlinkat(entry.dir, name, Vec::new())?;
                symlinkat(target, last, name)?;
                disk_dir(entry, last.as_fd())
            }
            kind => {
                let mode = Mode::from_raw_mode(stat.st_mode);
                mknodat(last, name, kind, mode, stat.st_rdev)?;
                disk_dir(entry, last.as_fd())?;
                Ok(rustix::fs::chmodat(last, name, mode, AtFlags::empty())?)
            }
        }
    }

    /// Where an entry is, from the top.
    fn path(&self, entry: &Entry<'_>) -> PathBuf {
        let above = self.dirs.iter().skip(1).map(|dir| dir.name.as_c_str());
        above.chain([entry.name]).map(|name| OsStr::from_bytes(name.to_bytes())).collect()
    }
}

/// The owner and the times of what is no directory and can't be opened.
fn disk_dir(entry: &Entry<'_>, dir: BorrowedFd<'_>) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(entry.stat.st_uid), Gid::from_raw(entry.stat.st_gid));
    chownat(dir, entry.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(utimensat(dir, entry.name, &times(entry.stat), AtFlags::SYMLINK_NOFOLLOW)?)
}

fn file(entry: &Entry<'_>, dir: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let from = openat(entry.dir, entry.name, flags, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let to = openat(dir, entry.name, flags, Mode::RUSR | Mode::WUSR)?;
    let size = u64::try_from(entry.stat.st_size).unwrap_or(0);
    ftruncate(&to, size)?;
    let mut at = 0;
    // A hole takes no room here either.
    while at < size {
        let start = match seek(&from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = seek(&from, SeekFrom::Hole(start))?;
        piece(&from, &to, start, at)?;
    }
    own(to.as_fd(), entry.stat)?;
    Ok(futimens(&to, &times(entry.stat))?)
}

/// By sendfile(2), because the kernel does not share blocks between an overlay and
/// what is below it.
fn piece(from: &OwnedFd, to: &OwnedFd, start: u64, end: u64) -> io::Result<()> {
    seek(to, SeekFrom::Start(start))?;
    let mut at = start;
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(usize::MAX);
        if sendfile(to, from, Some(&mut at), length)? == 0 {
            return Err(io::Error::other("a file became shorter while it was copied"));
        }
    }
    Ok(())
}

fn closed() -> io::Error {
    io::Error::other("a directory was closed while it was filled")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawner::tree::remove;
    use std::fs;
    use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};

    /// Everything of a tree that a copy keeps, by path.
    fn shown(top: &Path) -> Vec<String> {
        let mut all = Vec::new();
        let mut first = HashMap::new();
        let top = walk::open_top(top).unwrap();
        walk::walk(top, TreeState::AtRest, u64::MAX, |entry| {
            let stat = entry.stat;
            let twin = *first.entry(stat.st_ino).or_insert(all.len());
            let kind = FileType::from_raw_mode(stat.st_mode);
            let text = match kind {
                FileType::RegularFile => {
                    let file = openat(entry.dir, entry.name, OFlags::RDONLY, Mode::empty())?;
                    io::read_to_string(fs::File::from(file))?.trim_matches('\0').to_owned()
                }
                FileType::Symlink => {
                    readlinkat(entry.dir, entry.name, Vec::new())?.to_string_lossy().into_owned()
                }
                _ => String::new(),
            };
            all.push(format!(
                "{} {:?} {kind:?} {:o} {}:{} {}.{} {twin} {text}",
                entry.depth,
                entry.name,
                stat.st_mode,
                stat.st_uid,
                stat.st_gid,
                stat.st_mtime,
                stat.st_mtime_nsec
            ));
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn a_copy_is_as_its_original() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        let mut deep = from.clone();
        for _ in 0..150 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("f"), "deep").unwrap();
        fs::hard_link(deep.join("f"), from.join("twin")).unwrap();
        fs::write(from.join("d/late"), "late").unwrap();
        fs::set_permissions(from.join("d/late"), fs::Permissions::from_mode(0o4751)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        let sparse = fs::File::create(from.join("sparse")).unwrap();
        sparse.write_all_at(b"end", 50 << 20).unwrap();
        rustix::fs::mkfifoat(CWD, from.join("pipe"), Mode::from_raw_mode(0o622)).unwrap();
        let to = dir.path().join("to");
        copy(&from, &to).unwrap();
        assert_eq!(shown(&to), shown(&from));
        assert!(fs::metadata(to.join("sparse")).unwrap().blocks() < 1_000);
        let parent = fs::File::open(dir.path()).unwrap();
        remove::remove(parent.as_fd(), c"to").unwrap();
    }
}
