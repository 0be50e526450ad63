//! Writes a session's changes back, all or nothing as far as a file system can.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use outrigger_beneath::{self as beneath, Dir, Draft};
use outrigger_sandbox::EntryKind;
use rustix::fs::FileType;

use crate::error::{Error, reason};
use crate::hazard::{Grade, hazards};
use crate::{Change, File};

/// Which hazards a person accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// None.
    Nothing,
    /// All that anybody may.
    Named,
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum PathState {
    Nothing,
    File(File),
    /// A directory, or what is no file at all.
    Other,
}

/// Writes changes into a directory.
///
/// Checks every file first: nothing is written if one of them is a hazard that nobody
/// accepts, is not as it was when the session began, or would not stay within the directory.
/// Deletions come first, so that a file can take the place of a directory and the other way
/// round. What is already as it is to be stays untouched; gives how many were written.
///
/// # Errors
/// If nothing was written, why; or which file could not be.
pub fn apply(dir: &Path, changes: &[Change], accept: Accept) -> Result<usize, Error> {
    let dir = &Dir::open(dir).map_err(Error::directory(dir))?;
    let mut refused = hazards(Some(dir), changes);
    refused.retain(|it| it.grade == Grade::Refused || accept == Accept::Nothing);
    if !refused.is_empty() {
        return Err(Error::Hazards(refused));
    }
    let (removed, written): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.after.is_none());
    let paths: BTreeSet<&str> = removed.iter().map(|change| change.path.as_str()).collect();
    let (mut changed, mut there) = (Vec::new(), BTreeSet::new());
    for change in changes {
        let found = if is_beneath_removed(dir, &change.path, &paths)? {
            PathState::Nothing
        } else {
            find(dir, change)?
        };
        let emptied = || change.before.is_none() && empties(dir, &change.path, &paths);
        if found.is(change.after.as_ref()) {
            there.insert(change.path.as_str());
        } else if !found.is(change.before.as_ref()) && !emptied() {
            changed.push(change.path.clone());
        }
    }
    if !changed.is_empty() {
        return Err(Error::Changed(changed));
    }
    // What has it already keeps its time, by which builds know what is new.
    let missing = |change: &&Change| !there.contains(change.path.as_str());
    for change in removed.into_iter().chain(written.into_iter().filter(missing)) {
        write(dir, change).map_err(|source| Error::Write { path: change.path.clone(), source })?;
    }
    Ok(changes.len() - there.len())
}

/// What of the changes is left to be written into a directory into which `written` was before. A
/// file that is as it was left then is taken as it is, and what was changed back since is changed
/// back there.
#[must_use]
pub fn since(dir: &Path, written: &[Change], changes: Vec<Change>) -> Vec<Change> {
    let Ok(dir) = Dir::open(dir) else { return changes };
    let is_as_left =
        |known: &Change| find(&dir, known).is_ok_and(|found| found.is(known.after.as_ref()));
    let mut left: BTreeMap<&str, &Change> =
        written.iter().filter(|known| is_as_left(known)).map(|it| (&*it.path, it)).collect();
    let mut rest = Vec::new();
    for mut change in changes {
        if let Some(known) = left.remove(change.path.as_str()) {
            change.before.clone_from(&known.after);
        }
        if change.before != change.after {
            rest.push(change);
        }
    }
    let undone = left.into_values().filter(|known| known.before != known.after);
    rest.extend(undone.cloned().map(Change::reversed));
    rest
}

/// How many of the changes a directory has already.
#[must_use]
pub fn already_there(dir: &Path, changes: &[Change]) -> usize {
    let Ok(dir) = Dir::open(dir) else { return 0 };
    let is_there =
        |change: &&Change| find(&dir, change).is_ok_and(|found| found.is(change.after.as_ref()));
    changes.iter().filter(is_there).count()
}

impl PathState {
    fn is(&self, file: Option<&File>) -> bool {
        match (self, file) {
            (Self::Nothing, None) => true,
            (Self::File(found), Some(file)) => found == file,
            _ => false,
        }
    }
}

/// Whether what stands above a path, in place of a directory, is itself removed.
fn is_beneath_removed(dir: &Dir, path: &str, removed: &BTreeSet<&str>) -> Result<bool, Error> {
    let elsewhere = |why| Error::Elsewhere { path: path.to_owned(), why };
    for (at, _) in path.match_indices('/') {
        let above = &path[..at];
        let found = dir.stat(Path::new(above));
        let found = found.map_err(|_| elsewhere("a part of its path is a link"))?;
        if found.is_some_and(|stat| !stat.is_dir()) {
            return match removed.contains(above) {
                true => Ok(true),
                false => Err(elsewhere("a part of its path is a link or a file")),
            };
        }
    }
    Ok(false)
}

/// Whether a path is a directory of which nothing is left after the removals.
fn empties(dir: &Dir, path: &str, removed: &BTreeSet<&str>) -> bool {
    let Ok(names) = dir.dir(Path::new(path)).and_then(|opened| opened.names()?.collect()) else {
        return false;
    };
    let names: Vec<std::ffi::OsString> = names;
    names.iter().all(|name| {
        let Some(inner) = name.to_str().map(|name| format!("{path}/{name}")) else { return false };
        match dir.stat(Path::new(&inner)) {
            Ok(Some(stat)) if stat.is_dir() => empties(dir, &inner, removed),
            Ok(Some(_)) => removed.contains(inner.as_str()),
            Ok(None) | Err(_) => false,
        }
    })
}

/// What is at the path of a change, read as far as it can be one of its sides.
fn find(dir: &Dir, change: &Change) -> Result<PathState, Error> {
    let failed = |source| Error::Write { path: change.path.clone(), source };
    let at = Path::new(&change.path);
    let Some(stat) = dir.stat(at).map_err(|error| failed(io_error(error)))? else {
        return Ok(PathState::Nothing);
    };
    let (kind, contents) = match stat.kind {
        FileType::Symlink => {
            let target = dir.read_link(at).map_err(|error| failed(io_error(error)))?;
            (EntryKind::Link, target.into_os_string().into_encoded_bytes())
        }
        FileType::RegularFile if change.has_length(stat.bytes) => {
            let mut contents = Vec::new();
            let mut file = dir.file(at).map_err(|error| failed(io_error(error)))?;
            file.read_to_end(&mut contents).map_err(failed)?;
            (EntryKind::File, contents)
        }
        _ => return Ok(PathState::Other),
    };
    Ok(PathState::File(File { kind, executable: stat.is_executable(), contents }))
}

fn write(dir: &Dir, change: &Change) -> io::Result<()> {
    let path = Path::new(&change.path);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Some(after) = &change.after else {
        dir.remove_file(path).or_else(unless_absent).map_err(io_error)?;
        // Git knows no empty directories, so those that a deletion leaves go as well.
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            if dir.remove_dir(above).is_err() {
                break;
            }
        }
        return Ok(());
    };
    if let Some(parent) = parent {
        dir.make_dirs(parent, 0o777).map_err(io_error)?;
    }
    match after.kind {
        EntryKind::Link => dir.link(Path::new(OsStr::from_bytes(&after.contents)), path),
        EntryKind::File | EntryKind::Directory | EntryKind::Other => {
            let mut draft = Draft::begin(dir, path, after.executable).map_err(io_error)?;
            draft.file().write_all(&after.contents)?;
            draft.file().sync_all()?;
            draft.put()
        }
    }
    .map_err(io_error)
}

fn unless_absent(error: beneath::Error) -> Result<(), beneath::Error> {
    if error.is_absent() { Ok(()) } else { Err(error) }
}

fn io_error(error: beneath::Error) -> io::Error {
    match error {
        beneath::Error::Io { source, .. } => source,
        other => io::Error::new(io::ErrorKind::InvalidInput, reason(&other)),
    }
}
