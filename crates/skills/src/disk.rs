//! Folders of the host: reading one in, writing one out.
//!
//! Follows no link, takes no more than the limits, and shows a written folder only when it is
//! whole. Must never write into a folder that is there.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use outrigger_beneath::{self as beneath, Dir, Draft};

use crate::files::{SkillFile, SkillFiles, bad_path};
use crate::limits::{FILE_BYTES_MAX, FILES_MAX, PATH_NAMES_MAX, TOTAL_BYTES_MAX};
use crate::problem::{Reason, SkillProblem};

/// Why a folder could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It holds what no skill may hold.
    #[error("this folder can't be a skill")]
    Problem(#[from] SkillProblem),
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

/// What the file system did not do, or would have had to follow a link for.
fn failed<'a>(doing: &'static str, folder: &'a Path) -> impl Fn(beneath::Error) -> Error + 'a {
    move |error| match error {
        beneath::Error::Link(path) | beneath::Error::NoFile { path, .. } => no_file(&path),
        beneath::Error::Outside(path) => {
            SkillProblem::at(&path.to_string_lossy(), Reason::BadPath).into()
        }
        beneath::Error::Io { path, source } => Error::Io { doing, path: folder.join(path), source },
    }
}

fn no_file(path: &Path) -> Error {
    SkillProblem::at(&path.to_string_lossy(), Reason::NoFile).into()
}

fn too_much(path: &str, what: &'static str, max: usize) -> Error {
    SkillProblem::at(path, Reason::TooMuch { what, max }).into()
}

/// The files of a folder, also of one that is no valid skill.
///
/// # Errors
/// If it can't be read, holds a link or another thing that is no file, or is too much.
pub fn read(folder: &Path) -> Result<SkillFiles, Error> {
    let top = Dir::open(folder).map_err(failed("reading", folder))?;
    let mut files = SkillFiles::new();
    let mut total = 0;
    let mut due = vec![String::new()];
    while let Some(below) = due.pop() {
        for name in names(&top, &below, folder)? {
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            if let Some(reason) = bad_path(&path) {
                return Err(SkillProblem::at(&path, reason).into());
            }
            let stat = top.stat(Path::new(&path)).map_err(failed("reading", folder))?;
            if stat.is_some_and(|stat| stat.is_dir()) {
                if due.len() > FILES_MAX || path.split('/').count() == PATH_NAMES_MAX {
                    return Err(too_much(&path, "folders", FILES_MAX));
                }
                due.push(path);
                continue;
            }
            let bytes = contents(&top, &path, folder)?;
            total += bytes.len();
            if files.len() == FILES_MAX {
                return Err(too_much(".", "files of a skill", FILES_MAX));
            }
            if total > TOTAL_BYTES_MAX {
                return Err(too_much(".", "bytes of a skill", TOTAL_BYTES_MAX));
            }
            let executable = stat.is_some_and(|stat| stat.is_executable());
            files.insert(path, SkillFile { bytes, executable });
        }
    }
    Ok(files)
}

/// The names in a folder, in their order.
fn names(top: &Dir, below: &str, folder: &Path) -> Result<Vec<String>, Error> {
    let below = Path::new(if below.is_empty() { "." } else { below });
    let opened = top.dir(below).map_err(failed("reading", folder))?;
    let mut out = Vec::new();
    for name in opened.names().map_err(failed("reading", folder))? {
        let name = name.map_err(failed("reading", folder))?;
        let text = name.into_string();
        out.push(text.map_err(|name| SkillProblem::at(&name.to_string_lossy(), Reason::BadPath))?);
        if out.len() > FILES_MAX {
            return Err(too_much(".", "files of a skill", FILES_MAX));
        }
    }
    out.sort();
    Ok(out)
}

fn contents(top: &Dir, path: &str, folder: &Path) -> Result<Vec<u8>, Error> {
    let file = top.file(Path::new(path)).map_err(failed("reading", folder))?;
    let mut bytes = Vec::new();
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX) + 1;
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|source| Error::Io { doing: "reading", path: folder.join(path), source })?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_much(path, "bytes of a file", FILE_BYTES_MAX));
    }
    Ok(bytes)
}

/// Writes files as a new folder, which appears at once and whole, or not at all. The
/// folder above must be there. Who may read them is left to the umask.
///
/// # Errors
/// If something is there already, a path is none of a skill's, or it can't be written; what was
/// begun is then taken away again.
pub fn write(files: &SkillFiles, folder: &Path) -> Result<(), Error> {
    let bad = |path: &String| bad_path(path).map(|reason| SkillProblem::at(path, reason));
    if let Some(problem) = files.keys().find_map(bad) {
        return Err(problem.into());
    }
    let exists = || Error::Exists(folder.to_owned());
    let around = Dir::around(folder).map_err(failed("writing", folder))?;
    let (above, name) = around.ok_or_else(exists)?;
    let mut number = 0;
    let part = loop {
        let (name, pid) = (name.display(), std::process::id());
        let part = PathBuf::from(format!(".{name}.{pid}.part{number}"));
        match above.make_dir(&part, 0o777) {
            Ok(()) => break part,
            Err(error) if is_taken(&error) && number < FILES_MAX => number += 1,
            Err(error) => return Err(failed("writing", folder)(error)),
        }
    };
    let done = above.dir(&part).map_err(failed("writing", folder)).and_then(|opened| {
        let done = fill(files, &opened, folder).and_then(|()| {
            let renamed = above.rename_new(&part, &name);
            renamed.map_err(|error| match error {
                error if is_taken(&error) => exists(),
                error => failed("writing", folder)(error),
            })
        });
        if done.is_err() {
            empty(files, &opened);
        }
        done
    });
    if done.is_err() {
        // What can't be removed is a folder with a dot in front, which is no skill.
        let _ = above.remove_dir(&part);
    }
    done
}

fn is_taken(error: &beneath::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

fn fill(files: &SkillFiles, part: &Dir, folder: &Path) -> Result<(), Error> {
    for (path, file) in files {
        let path = Path::new(path);
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            part.make_dirs(above, 0o777).map_err(failed("writing", folder))?;
        }
        let mut draft =
            Draft::begin(part, path, file.executable).map_err(failed("writing", folder))?;
        let written = draft.file().write_all(&file.bytes).and_then(|()| draft.file().sync_all());
        written.map_err(|source| Error::Io {
            doing: "writing",
            path: folder.join(path),
            source,
        })?;
        draft.put().map_err(failed("writing", folder))?;
    }
    Ok(())
}

/// Takes away what [`fill`] made, as far as it came.
fn empty(files: &SkillFiles, part: &Dir) {
    for path in files.keys().map(Path::new) {
        let _ = part.remove_file(path);
    }
    for path in files.keys().rev().map(Path::new) {
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            let _ = part.remove_dir(above);
        }
    }
}
