//! Packs a directory's content into a tar archive.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use outrigger_beneath::{self as beneath, Dir, words};
use rustix::fs::FileType;

use crate::dependencies::DependencyPolicy;
use crate::error::{Error, TooLarge};
use crate::listing::{self, Listing};
use crate::modified;
use crate::rules::Rules;
use crate::scratch::nameless;

/// How much of a directory may be copied.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// All files together.
    pub bytes_max: u64,
    /// Files and links; and folders, whatever is in them.
    pub files_max: u64,
}

/// An archive of a directory.
#[derive(Debug)]
pub struct DirectoryArchive {
    /// The archive, at its beginning. The file has no name.
    pub archive: File,
    /// Files and links in it.
    pub files: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// Whether the history of a repository is behind them.
    pub has_history: bool,
    /// Folders of what the directory depends on, by their paths in it; none of them is in
    /// the archive. Those that come along together stand together.
    pub dependencies: Vec<Vec<PathBuf>>,
}

/// Packs the content of a directory: in a git repository what is tracked, changed, or
/// untracked and not ignored, elsewhere what is not ignored. Nothing of what is read there
/// is run, and nothing is read through a link.
///
/// `dir` is absolute and without links. `scratch` is where the archive is built. `user` are
/// the rules of whoever asks, `policy` says what becomes of what the directory depends on.
///
/// # Errors
/// If the directory can't be read, is too large, or its repository is damaged.
pub fn pack(
    dir: &Path,
    scratch: &Path,
    user: &Rules,
    limits: Limits,
    policy: DependencyPolicy<'_>,
) -> Result<DirectoryArchive, Error> {
    let opened = Dir::open(dir).map_err(Error::directory(dir))?;
    drop(opened.names().map_err(Error::directory(dir))?);
    let Listing { paths, left_out, dependencies, caches, .. } =
        listing::list(dir, &opened, user, limits.files_max, policy)?;
    measure(&opened, &paths, limits)?;
    let left_out = left_out.iter().map(|(path, why)| format!("{}: {why}", path.display()));
    let packed = archive(dir, (&opened, &paths), left_out.collect(), limits, scratch)?;
    let mut dependencies: Vec<_> = dependencies.into_iter().map(|path| vec![path]).collect();
    if !caches.is_empty() {
        dependencies.push(caches.into_iter().collect());
    }
    Ok(DirectoryArchive { dependencies, ..packed })
}

/// Archives some paths of a directory.
pub(crate) fn archive<'a>(
    path: &Path,
    (dir, paths): (&Dir, impl IntoIterator<Item = &'a PathBuf>),
    left_out: Vec<String>,
    limits: Limits,
    scratch: &Path,
) -> Result<DirectoryArchive, Error> {
    let builder = tar::Builder::new(nameless(scratch).map_err(Error::Archive)?);
    let size = Size { limits, files: 0, bytes: 0 };
    let mut packing = ArchiveBuilder { path, dir, builder, size, left_out };
    for path in paths {
        packing.add(path)?;
    }
    let ArchiveBuilder { builder, size: Size { files, bytes, .. }, left_out, .. } = packing;
    let finished = builder.into_inner().and_then(|mut archive| {
        archive.rewind()?;
        Ok(archive)
    });
    let archive = finished.map_err(Error::Archive)?;
    Ok(DirectoryArchive {
        archive,
        files,
        bytes,
        left_out,
        has_history: false,
        dependencies: Vec::new(),
    })
}

/// The paths of what [`pack`] would copy, relative to the directory, in order; those that are
/// no text are left out.
///
/// # Errors
/// If the directory can't be read, has too many files, or its repository is damaged.
pub fn files(dir: &Path, user: &Rules, files_max: u64) -> Result<Vec<String>, Error> {
    let opened = Dir::open(dir).map_err(Error::directory(dir))?;
    let policy = DependencyPolicy::Apart(&[]);
    let Listing { paths, .. } = listing::list(dir, &opened, user, files_max, policy)?;
    Ok(paths.into_iter().filter_map(|path| path.into_os_string().into_string().ok()).collect())
}

/// Checks the limits before anything is copied, which takes its time.
fn measure<'a>(
    dir: &Dir,
    paths: impl IntoIterator<Item = &'a PathBuf>,
    limits: Limits,
) -> Result<(), Error> {
    let mut size = Size { limits, files: 0, bytes: 0 };
    let found = paths.into_iter().filter_map(|path| dir.stat(path).ok().flatten());
    found.filter(beneath::Stat::is_file).try_for_each(|stat| size.count(stat.bytes))
}

/// How much it is so far.
struct Size {
    limits: Limits,
    files: u64,
    bytes: u64,
}

impl Size {
    fn count(&mut self, bytes: u64) -> Result<(), Error> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let Limits { bytes_max, files_max } = self.limits;
        if self.bytes > bytes_max {
            return Err(Error::TooLarge(TooLarge::Bytes(bytes_max)));
        }
        if self.files > files_max {
            return Err(Error::TooLarge(TooLarge::Files(files_max)));
        }
        Ok(())
    }
}

struct ArchiveBuilder<'a> {
    path: &'a Path,
    dir: &'a Dir,
    builder: tar::Builder<File>,
    size: Size,
    left_out: Vec<String>,
}

impl ArchiveBuilder<'_> {
    fn add(&mut self, path: &Path) -> Result<(), Error> {
        let Some(name) = path.to_str() else {
            self.left_out.push(format!("{}: the name is no UTF-8", path.display()));
            return Ok(());
        };
        // What is gone by now is as if it had been gone before.
        let Ok(Some(stat)) = self.dir.stat(path) else { return Ok(()) };
        match stat.kind {
            FileType::Symlink => self.add_link(path, name),
            FileType::RegularFile => self.add_file(path, name),
            kind => {
                self.left_out.push(format!("{name}: {} is not copied", words(kind)));
                Ok(())
            }
        }
    }

    fn add_link(&mut self, path: &Path, name: &str) -> Result<(), Error> {
        let target = self.dir.read_link(path).map_err(Error::unreadable(self.path, path))?;
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        self.size.count(0)?;
        self.builder.append_link(&mut header, name, target).map_err(Error::Archive)
    }

    fn add_file(&mut self, path: &Path, name: &str) -> Result<(), Error> {
        let file = self.dir.file(path).map_err(Error::unreadable(self.path, path))?;
        let unreadable = |source| Error::Read { path: path.to_owned(), source };
        let meta = file.metadata().map_err(unreadable)?;
        self.size.count(meta.len())?;
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(meta.len());
        let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions());
        header.set_mode(if mode & 0o111 == 0 { 0o644 } else { 0o755 });
        let modified = (MetadataExt::mtime(&meta), MetadataExt::mtime_nsec(&meta));
        modified::set(&mut self.builder, &mut header, modified).map_err(Error::Archive)?;
        // A file that grows meanwhile is cut.
        let mut contents = file.take(meta.len());
        self.builder.append_data(&mut header, name, &mut contents).map_err(Error::Archive)?;
        if contents.limit() > 0 {
            return Err(Error::Shorter(path.to_owned()));
        }
        Ok(())
    }
}
