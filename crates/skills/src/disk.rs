//! Folders of the host: reading one in, writing one out.
//!
//! Follows no link, takes no more than the limits, and shows a written folder only when it is
//! whole. Must never write into a folder that is there.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use crate::files::{File, Files, bad_path};
use crate::limits::{FILE_BYTES_MAX, FILES_MAX, PATH_NAMES_MAX, TOTAL_BYTES_MAX};
use crate::problem::{Problem, Reason};

/// Why a folder could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It holds what no skill may hold.
    #[error("this folder can't be a skill")]
    Problem(#[from] Problem),
    /// Where it would be written something is already.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// The file system did not do it.
    #[error("{doing} {path}")]
    Io {
        /// Reading or writing.
        doing: &'static str,
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::Io { doing, path: path.to_owned(), source: errno.into() }
}

/// The files of a folder, also of one that is no valid skill.
///
/// # Errors
///
/// If it can't be read, holds a link or another thing that is no file, or is too much.
pub fn read(folder: &Path) -> Result<Files, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    let opened = opened.map_err(io_error("reading", folder))?;
    let mut files = Files::new();
    let mut total = 0;
    let mut due = vec![(opened, String::new())];
    while let Some((opened, below)) = due.pop() {
        for name in names(&opened, folder)? {
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if let Some(reason) = bad_path(&path) {
                return Err(Problem::at(&path, reason).into());
            }
            match open(&opened, &name, &path, folder)? {
                Found::Folder(inner) => {
                    // The folders that are open at once are at most those of one path and
                    // their neighbours.
                    if due.len() > FILES_MAX || path.split('/').count() == PATH_NAMES_MAX {
                        return Err(too_much(&path, "folders", FILES_MAX));
                    }
                    due.push((inner, path));
                }
                Found::File(file) => {
                    total += file.bytes.len();
                    if files.len() == FILES_MAX {
                        return Err(too_much(".", "files of a skill", FILES_MAX));
                    }
                    if total > TOTAL_BYTES_MAX {
                        return Err(too_much(".", "bytes of a skill", TOTAL_BYTES_MAX));
                    }
                    files.insert(path, file);
                }
            }
        }
    }
    Ok(files)
}

fn too_much(path: &str, what: &'static str, max: usize) -> Error {
    Problem::at(path, Reason::TooMuch { what, max }).into()
}

/// The names in a folder, in their order.
fn names(opened: &OwnedFd, folder: &Path) -> Result<Vec<String>, Error> {
    let entries = Dir::read_from(opened).map_err(io_error("reading", folder))?;
    let mut out = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io_error("reading", folder))?;
        let name = entry.file_name();
        let text = name.to_str();
        let text = text.map_err(|_| Problem::at(&name.to_string_lossy(), Reason::BadPath))?;
        if !matches!(text, "." | "..") {
            out.push(text.to_owned());
        }
        if out.len() > FILES_MAX {
            return Err(too_much(".", "files of a skill", FILES_MAX));
        }
    }
    out.sort();
    Ok(out)
}

enum Found {
    Folder(OwnedFd),
    File(File),
}

fn open(opened: &OwnedFd, name: &str, path: &str, folder: &Path) -> Result<Found, Error> {
    let whole = folder.join(path);
    // A pipe must not be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let none = || Error::from(Problem::at(path, Reason::NoFile));
    let fd = match rustix::fs::openat(opened, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::LOOP | Errno::NXIO) => return Err(none()),
        Err(errno) => return Err(io_error("reading", &whole)(errno)),
    };
    let stat = rustix::fs::fstat(&fd).map_err(io_error("reading", &whole))?;
    match FileType::from_raw_mode(stat.st_mode as RawMode) {
        FileType::Directory => Ok(Found::Folder(fd)),
        FileType::RegularFile => {
            let mut bytes = Vec::new();
            let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX) + 1;
            std::fs::File::from(fd)
                .take(most)
                .read_to_end(&mut bytes)
                .map_err(|source| Error::Io { doing: "reading", path: whole, source })?;
            if bytes.len() > FILE_BYTES_MAX {
                return Err(too_much(path, "bytes of a file", FILE_BYTES_MAX));
            }
            Ok(Found::File(File { bytes, executable: stat.st_mode & 0o111 != 0 }))
        }
        _ => Err(none()),
    }
}

/// Writes files as a new folder, which appears at once and whole, or not at all. The
/// folder above must be there.
///
/// # Errors
///
/// If something is there already, a path is none of a skill's, or it can't be written; what was
/// begun is then taken away again.
pub fn write(files: &Files, folder: &Path) -> Result<(), Error> {
    let bad = |path: &String| bad_path(path).map(|reason| Problem::at(path, reason));
    if let Some(problem) = files.keys().find_map(bad) {
        return Err(problem.into());
    }
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| Error::Exists(folder.to_owned()))?;
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    let mut number = 0;
    let part = loop {
        let part = above
            .unwrap_or(Path::new("."))
            .join(format!(".{name}.{}.part{number}", std::process::id()));
        match rustix::fs::mkdir(&part, Mode::RWXU) {
            Ok(()) => break part,
            Err(Errno::EXIST) if number < FILES_MAX => number += 1,
            Err(errno) => return Err(io_error("writing", &part)(errno)),
        }
    };
    let done = fill(files, &part).and_then(|()| {
        let renamed = rustix::fs::renameat_with(CWD, &part, CWD, folder, RenameFlags::NOREPLACE);
        renamed.map_err(|errno| match errno {
            Errno::EXIST | Errno::NOTEMPTY => Error::Exists(folder.to_owned()),
            errno => io_error("writing", folder)(errno),
        })
    });
    if done.is_err() {
        // What can't be removed is a folder with a dot in front, which is no skill.
        let _ = std::fs::remove_dir_all(&part);
    }
    done
}

fn fill(files: &Files, part: &Path) -> Result<(), Error> {
    for (path, file) in files {
        let whole = part.join(path);
        let failed = |source| Error::Io { doing: "writing", path: whole.clone(), source };
        if let Some(above) = whole.parent() {
            std::fs::create_dir_all(above).map_err(failed)?;
        }
        let mode = Mode::from_raw_mode(if file.executable { 0o755 } else { 0o644 });
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&whole, flags, mode).map_err(|errno| failed(errno.into()))?;
        let mut opened = std::fs::File::from(opened);
        opened.write_all(&file.bytes).and_then(|()| opened.sync_all()).map_err(failed)?;
    }
    rustix::fs::chmodat(CWD, part, Mode::from_raw_mode(0o755), AtFlags::empty())
        .map_err(io_error("writing", part))
}
