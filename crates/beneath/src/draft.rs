//! A file that is there whole or not at all.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat,
};

use crate::temporary::unused;
use crate::{Dir, Error};

/// A file that has no name of its own yet. Dropped without [`Draft::put`], it is gone.
#[derive(Debug)]
pub struct Draft {
    parent: Dir,
    /// Its name so far, beside the one that it gets.
    temporary: PathBuf,
    name: PathBuf,
    /// As the caller wrote it, for errors.
    path: PathBuf,
    file: File,
    is_put: bool,
}

impl Draft {
    /// Begins a file beneath a directory. It has the permissions of the regular file that
    /// stands at its path, else those of a new one; it may be executed by whoever may read
    /// it, or by nobody.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn begin(dir: &Dir, path: &Path, executable: bool) -> Result<Self, Error> {
        let (parent, name) = dir.parent(path)?;
        let name = PathBuf::from(name);
        let kept = parent.stat(&name)?.filter(|stat| stat.kind == FileType::RegularFile);
        // The umask takes away from a new one.
        let new = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let opened = unused(|temporary| openat(&parent, temporary, flags, new));
        let (temporary, opened) = opened.map_err(Error::of(path))?;
        let (file, path) = (File::from(opened), path.to_owned());
        let draft = Self { parent, temporary, name, path, file, is_put: false };
        if let Some(kept) = kept {
            let readers = (kept.mode & 0o444) >> 2;
            let mode = if executable { kept.mode | readers } else { kept.mode & !0o111 };
            let set = draft.file.set_permissions(Permissions::from_mode(mode & 0o777));
            set.map_err(|source| Error::Io { path: draft.path.clone(), source })?;
        }
        Ok(draft)
    }

    /// What is written to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name, in place of a file, link or FIFO that stands there.
    ///
    /// # Errors
    /// If it can't be renamed; then it is gone.
    pub fn put(mut self) -> Result<(), Error> {
        let placed = renameat(&self.parent, &self.temporary, &self.parent, &self.name);
        self.is_put = placed.is_ok();
        placed.map_err(Error::of(&self.path))
    }

    /// Gives it its name, where nothing is yet.
    ///
    /// # Errors
    /// If something is there, or it can't be renamed; then it is gone.
    pub fn put_new(mut self) -> Result<(), Error> {
        let (from, to, flags) = (&self.temporary, &self.name, RenameFlags::NOREPLACE);
        let placed = renameat_with(&self.parent, from, &self.parent, to, flags);
        self.is_put = placed.is_ok();
        placed.map_err(Error::of(&self.path))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_put {
            // What can't be removed has a name that says whose it is.
            let _ = unlinkat(&self.parent, &self.temporary, AtFlags::empty());
        }
    }
}
