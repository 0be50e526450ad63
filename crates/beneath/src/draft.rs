//! A file that is there whole or not at all.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::{Dir, Error, limits};

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
    pub(crate) fn begin(
        parent: Dir,
        name: PathBuf,
        path: &Path,
        executable: bool,
    ) -> Result<Self, Error> {
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
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_put {
            // What can't be removed has a name that says whose it is.
            let _ = unlinkat(&self.parent, &self.temporary, AtFlags::empty());
        }
    }
}

/// Makes something under a name that nobody uses.
pub(crate) fn unused<T>(
    mut make: impl FnMut(&Path) -> Result<T, Errno>,
) -> Result<(PathBuf, T), Errno> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut tries = 0;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!(".outrigger-{}-{count}.tmp", std::process::id()));
        match make(&name) {
            // Left by a dead process that had the same number.
            Err(Errno::EXIST) if tries < limits::DRAFT_NAMES_MAX => tries += 1,
            made => return made.map(|made| (name, made)),
        }
    }
}
