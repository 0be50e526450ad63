//! Where a git repository keeps what it knows of a directory.
//!
//! Owns finding it: a `.git` that is a folder, a link to one, or a file that names one, as
//! worktrees and submodules have. Reads of its files the index, the excludes and, of the settings,
//! the addresses of remotes. Wherever a hostile `.git` leads, what is read there says only which files of
//! the directory itself go into a workspace. Must never run a program.

pub(crate) mod index;
pub(crate) mod inside;
pub(crate) mod remotes;

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use outrigger_beneath::Dir;
use rustix::fs::FileType;

pub use self::index::IndexProblem;
use crate::{Error, limits};

/// A repository that a directory is in.
#[derive(Debug)]
pub(crate) struct Git {
    /// Its top directory.
    pub(crate) top: PathBuf,
    /// What it keeps for this checkout.
    pub(crate) own: Dir,
    /// What it keeps for all of them.
    pub(crate) common: Dir,
    /// Where its own is, for a person.
    place: PathBuf,
    /// Where the other is.
    pub(crate) common_place: PathBuf,
}

impl Git {
    /// The nearest repository at or above a directory.
    pub(crate) fn find(dir: &Path) -> Result<Option<Self>, Error> {
        for top in dir.ancestors() {
            // What can't be looked at, above what can, is nobody's repository.
            let Ok(here) = Dir::open(top) else { continue };
            let Ok(Some(stat)) = here.stat(Path::new(".git")) else { continue };
            let place = match stat.kind {
                FileType::Directory | FileType::Symlink => top.join(".git"),
                FileType::RegularFile => named(&here, top)?,
                _ => continue,
            };
            let Ok(own) = Dir::open(&place) else {
                return Err(Error::GitDir { path: top.join(".git"), named: place });
            };
            let head = Path::new("HEAD");
            // As git judges: without this it is a folder of that name.
            if own.stat(head).map_err(Error::unreadable(&place, head))?.is_none() {
                continue;
            }
            let (common, common_place) = common(&own, &place)?;
            return Ok(Some(Self { top: top.to_owned(), own, common, place, common_place }));
        }
        Ok(None)
    }

    /// Whether what it keeps lies in the directory itself, or is a repository that has the
    /// directory as one of its worktrees. A hostile `.git` can name what is neither.
    pub(crate) fn is_of_top(&self) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let (own, common) = (real(&self.place), real(&self.common_place));
        let top = real(&self.top).map(|top| top.join(".git"));
        if own == top && own.is_some() {
            return own == common;
        }
        let Some((own, common)) = own.zip(common) else { return false };
        let Ok(Some(named)) = self.read(&self.own, "gitdir", limits::GIT_FILE_BYTES_MAX) else {
            return false;
        };
        // Only who may write into the repository puts anything there.
        own.parent() == Some(common.join("worktrees").as_path())
            && real(&own.join(path(named.trim_ascii_end()))) == top
    }

    /// Whether what it keeps lies where a repository above keeps those of its submodules.
    pub(crate) fn is_submodule(&self) -> bool {
        let (Ok(own), Ok(top)) =
            (std::fs::canonicalize(&self.place), std::fs::canonicalize(&self.top))
        else {
            return false;
        };
        let mut above = top.ancestors().skip(1);
        above.any(|folder| own.starts_with(folder.join(".git/modules")))
    }

    /// The index. A repository to which nothing was added has none.
    pub(crate) fn index(&self) -> Result<Option<Vec<u8>>, Error> {
        self.read(&self.own, "index", limits::INDEX_BYTES_MAX)
    }

    /// Where it is.
    pub(crate) fn index_path(&self) -> PathBuf {
        self.place.join("index")
    }

    /// Rules that are not in the repository itself. They hide what nobody else should see,
    /// so that not to read them would show it.
    pub(crate) fn excludes(&self) -> Result<Option<Vec<u8>>, Error> {
        self.read(&self.common, "info/exclude", limits::IGNORE_BYTES_MAX)
    }

    /// A file of it, as far as it is no longer than that.
    pub(crate) fn read(
        &self,
        dir: &Dir,
        path: &str,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        match dir.file(Path::new(path)) {
            Ok(file) => bounded(file, &self.place.join(path), bytes_max).map(Some),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(Error::unreadable(&self.place, Path::new(path))(error)),
        }
    }
}

/// The folder that a file called `.git` names.
fn named(here: &Dir, top: &Path) -> Result<PathBuf, Error> {
    let file = top.join(".git");
    let text = line(here, Path::new(".git"), top)?;
    let nothing = || Error::GitDir { path: file.clone(), named: PathBuf::new() };
    let named = top.join(path(text.strip_prefix(b"gitdir: ").ok_or_else(nothing)?));
    plain(file, named)
}

/// A place as everybody can find it: git writes `..` where worktrees and submodules are named.
fn plain(path: PathBuf, named: PathBuf) -> Result<PathBuf, Error> {
    std::fs::canonicalize(&named).map_err(|_| Error::GitDir { path, named })
}

fn common(own: &Dir, place: &Path) -> Result<(Dir, PathBuf), Error> {
    let name = Path::new("commondir");
    let found = own.stat(name).map_err(Error::unreadable(place, name))?;
    if found.is_none() {
        let opened = Dir::open(place).map_err(Error::unreadable(place, Path::new("")))?;
        return Ok((opened, place.to_owned()));
    }
    let named = plain(place.join(name), place.join(path(&line(own, name, place)?)))?;
    match Dir::open(&named) {
        Ok(opened) => Ok((opened, named)),
        Err(_) => Err(Error::GitDir { path: place.join(name), named }),
    }
}

/// A file of one line.
fn line(dir: &Dir, name: &Path, place: &Path) -> Result<Vec<u8>, Error> {
    let file = dir.file(name).map_err(Error::unreadable(place, name))?;
    let mut text = bounded(file, &place.join(name), limits::GIT_FILE_BYTES_MAX)?;
    text.truncate(text.trim_ascii_end().len());
    Ok(text)
}

/// All of a file, if that is no more than so much.
pub(crate) fn bounded(file: File, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::TooLong { path: path.to_owned(), bytes_max });
    }
    Ok(bytes)
}

/// A path out of a file, which need not be text.
fn path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
