//! A directory by its handle, and everything beneath it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawMode, RenameFlags, ResolveFlags, fstat, mkdirat,
    openat, openat2, readlinkat, renameat_with, statat, unlinkat,
};

use crate::Error;
use crate::temporary::unused;

/// A directory of the host. It stays the same one whatever its path becomes.
///
/// Paths are relative to it and plain: names and slashes, no `..`, not absolute. Errors
/// name the path as it was given.
#[derive(Debug)]
pub struct Dir(OwnedFd);

/// What is at a path. A link is itself, not what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: FileType,
    /// How long it is.
    pub bytes: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Which file it is, and when it and what is known of it last changed: another value
    /// says that its content may be another.
    pub version: FileVersion,
}

/// What tells a file from another, and from itself before it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileVersion {
    /// Its number on its file system.
    pub inode: u64,
    /// When its content changed, in seconds since 1970 and nanoseconds.
    pub modified: (i64, i64),
    /// When anything of it changed, in seconds since 1970 and nanoseconds.
    pub changed: (i64, i64),
}

impl Stat {
    /// Whether it is a regular file that anybody may execute.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.is_file() && self.mode & 0o111 != 0
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode as RawMode),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & 0o7777,
            version: FileVersion {
                inode: stat.st_ino,
                modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
                changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
            },
        }
    }
}

/// How a directory is held: it can be passed through, and need not be readable.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

impl Dir {
    /// Opens the directory that a person named, through whatever links they did.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(path: &Path) -> Result<Self, Error> {
        openat(CWD, path, HANDLE, Mode::empty()).map(Self).map_err(Error::of(path))
    }

    /// Opens the directory in which something stands that a person named, and gives its
    /// name there. What is named need not be there. `None`: it is a directory by how it is
    /// written (`/`, `.`, `x/..`).
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn around(path: &Path) -> Result<Option<(Self, PathBuf)>, Error> {
        let Some(name) = path.file_name() else { return Ok(None) };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let dir = Self::open(parent.unwrap_or(Path::new(".")))?;
        Ok(Some((dir, PathBuf::from(name))))
    }

    /// A directory beneath this one.
    ///
    /// # Errors
    /// If there is none, or a link is on the way.
    pub fn dir(&self, path: &Path) -> Result<Self, Error> {
        let plain = plain(path)?;
        openat2(&self.0, plain, HANDLE, Mode::empty(), BENEATH).map(Self).map_err(Error::of(path))
    }

    /// The directory beneath this one, made with what is missing of the way to it. `mode` is
    /// cut by the umask.
    ///
    /// # Errors
    /// If it can't be made, or a link or a file is on the way.
    pub fn make_dirs(&self, path: &Path, mode: u32) -> Result<Self, Error> {
        match self.dir(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            found => return found,
        }
        let mut made = PathBuf::new();
        for part in plain(path)?.components() {
            made.push(part);
            match self.make_dir(&made, mode) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
        }
        self.dir(path)
    }

    /// Makes one new directory. `mode` is cut by the umask.
    ///
    /// # Errors
    /// If something is there already, or it can't be made.
    pub fn make_dir(&self, path: &Path, mode: u32) -> Result<(), Error> {
        let (parent, name) = self.parent(path)?;
        mkdirat(&parent.0, name, Mode::from_raw_mode(mode)).map_err(Error::of(path))
    }

    /// What is at a path; a link itself.
    ///
    /// # Errors
    /// If a link is on the way. `Ok(None)`: nothing is there.
    pub fn stat(&self, path: &Path) -> Result<Option<Stat>, Error> {
        let stat = self.parent(path).and_then(|(parent, name)| {
            statat(&parent.0, name, AtFlags::SYMLINK_NOFOLLOW).map_err(Error::of(path))
        });
        match stat {
            Ok(stat) => Ok(Some(Stat::of(&stat))),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file to be read. Nothing else is opened, not even to look at it:
    /// opening a device or a FIFO does something.
    ///
    /// # Errors
    /// If there is none, or it is no regular file.
    pub fn file(&self, path: &Path) -> Result<File, Error> {
        let (parent, name) = self.parent(path)?;
        let check = |stat: &rustix::fs::Stat| match Stat::of(stat).kind {
            FileType::RegularFile => Ok(()),
            kind => Err(Error::NoFile { path: path.to_owned(), kind }),
        };
        let found = statat(&parent.0, name, AtFlags::SYMLINK_NOFOLLOW);
        check(&found.map_err(Error::of(path))?)?;
        // Something else may stand there by now: it is neither followed nor waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&parent.0, name, OFlags::RDONLY | flags, Mode::empty());
        let opened = opened.map_err(Error::of(path))?;
        check(&fstat(&opened).map_err(Error::of(path))?)?;
        Ok(File::from(opened))
    }

    /// The target of a link, which need not be one that exists.
    ///
    /// # Errors
    /// If there is no link.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, Error> {
        let (parent, name) = self.parent(path)?;
        let target = readlinkat(&parent.0, name, Vec::new()).map_err(Error::of(path))?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// The names in this directory, without `.` and `..`, as the kernel has them: in no
    /// order, and as many as there are. Who does not trust it counts them.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn names(&self) -> Result<impl Iterator<Item = Result<OsString, Error>> + use<>, Error> {
        let here = Path::new(".");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.0, here, flags, Mode::empty()).map_err(Error::of(here))?;
        let entries = rustix::fs::Dir::new(opened).map_err(Error::of(here))?;
        let names = entries.map(move |entry| {
            let entry = entry.map_err(Error::of(here))?;
            Ok(OsString::from_vec(entry.file_name().to_bytes().to_vec()))
        });
        let itself = |name: &OsString| matches!(name.as_encoded_bytes(), b"." | b"..");
        Ok(names.filter(move |name| !name.as_ref().is_ok_and(itself)))
    }

    /// Makes a link, in place of a file or link that stands there.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn link(&self, target: &Path, path: &Path) -> Result<(), Error> {
        let (parent, name) = self.parent(path)?;
        let temporary = unused(|temporary| rustix::fs::symlinkat(target, &parent.0, temporary));
        let (temporary, ()) = temporary.map_err(Error::of(path))?;
        let placed = rustix::fs::renameat(&parent.0, &temporary, &parent.0, name);
        if placed.is_err() {
            // What can't be taken away again is a link that nobody was told of.
            let _ = unlinkat(&parent.0, &temporary, AtFlags::empty());
        }
        placed.map_err(Error::of(path))
    }

    /// Gives something another name, where nothing is yet.
    ///
    /// # Errors
    /// If something is there, or it can't be done.
    pub fn rename_new(&self, from: &Path, to: &Path) -> Result<(), Error> {
        let ((old, from), (new, name)) = (self.parent(from)?, self.parent(to)?);
        renameat_with(&old.0, from, &new.0, name, RenameFlags::NOREPLACE).map_err(Error::of(to))
    }

    /// Removes a file, or a link itself. That it is gone already is no error.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn remove_file(&self, path: &Path) -> Result<(), Error> {
        self.unlink(path, AtFlags::empty())
    }

    /// Removes an empty directory. That it is gone already is no error.
    ///
    /// # Errors
    /// If it can't be removed, or is not empty.
    pub fn remove_dir(&self, path: &Path) -> Result<(), Error> {
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, path: &Path, flags: AtFlags) -> Result<(), Error> {
        let removed = self
            .parent(path)
            .and_then(|(parent, name)| unlinkat(&parent.0, name, flags).map_err(Error::of(path)));
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Makes changes of names in this directory durable.
    ///
    /// # Errors
    /// If the disk says so.
    pub fn sync(&self) -> Result<(), Error> {
        let here = Path::new(".");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.0, here, flags, Mode::empty());
        opened.and_then(rustix::fs::fsync).map_err(Error::of(here))
    }

    /// The directory in which a path stands, and its name there.
    pub(crate) fn parent<'a>(&self, path: &'a Path) -> Result<(Self, &'a OsStr), Error> {
        let outside = || Error::Outside(path.to_owned());
        let name = plain(path)?.file_name().ok_or_else(outside)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let opened = openat2(&self.0, parent, HANDLE, Mode::empty(), BENEATH);
        Ok((Self(opened.map_err(Error::of(path))?), name))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A path of names alone, or `.` itself. The kernel would refuse the others as well; here
/// it is told what is wrong with them.
fn plain(path: &Path) -> Result<&Path, Error> {
    let named = path.components().all(|part| matches!(part, Component::Normal(_)));
    let fine = named && !path.as_os_str().is_empty() || path == Path::new(".");
    if fine { Ok(path) } else { Err(Error::Outside(path.to_owned())) }
}
