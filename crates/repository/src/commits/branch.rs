//! The branch that a session's commits get.
//!
//! Owns its name and its file. Takes git's own lock of it, and moves a branch only forward, and
//! only one on which nobody works. Must never write any other file of the repository.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use outrigger_beneath::{Dir, Draft};

use super::object::ObjectId;
use super::pack_file::io_error;
use super::problem::CommitProblem;
use crate::git::{Git, bounded};
use crate::{Error, limits};

/// What the branches of all sessions begin with.
const FAMILY: &str = "refs/heads/outrigger";

/// A branch with a session's commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its name, without `refs/heads/`.
    pub name: String,
    /// How it came to stand there.
    pub outcome: BranchOutcome,
}

/// How a branch came to stand where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchOutcome {
    /// It is new.
    Created,
    /// It was there, and went forward.
    Moved,
    /// It stood there already.
    Unchanged,
}

/// Makes the branch of a session at `tip`, or moves it there if `is_before` says of where it
/// stands that the tip has it. Where it is somebody else's by now, the next free name is taken.
pub(super) fn place(
    git: &Git,
    refs: &BTreeMap<String, Vec<u8>>,
    (session, tip): (&str, &ObjectId),
    is_before: impl Fn(&ObjectId) -> bool,
) -> Result<Branch, Error> {
    if refs.contains_key(FAMILY) {
        return Err(Error::Commits(CommitProblem::Taken(format!("outrigger/{session}"))));
    }
    let names = (2..=limits::BRANCH_NAMES_MAX).map(|number| format!("{session}-{number}"));
    for name in std::iter::once(session.to_owned()).chain(names) {
        let path = format!("{FAMILY}/{name}");
        let beneath = format!("{path}/");
        if refs.range(beneath.clone()..).next().is_some_and(|(it, _)| it.starts_with(&beneath)) {
            continue;
        }
        let branch = |outcome| Ok(Branch { name: format!("outrigger/{name}"), outcome });
        match stands(git, refs, &path) {
            BranchPlace::Free => {
                write(git, refs, (&path, tip), &BranchPlace::Free)?;
                return branch(BranchOutcome::Created);
            }
            BranchPlace::At(id) if id == *tip => return branch(BranchOutcome::Unchanged),
            BranchPlace::At(id) if is_before(&id) && !is_worked_on(git, &path)? => {
                write(git, refs, (&path, tip), &BranchPlace::At(id))?;
                return branch(BranchOutcome::Moved);
            }
            BranchPlace::At(_) | BranchPlace::Other => {}
        }
    }
    Err(Error::Commits(CommitProblem::Taken(format!("outrigger/{session}"))))
}

/// Where a branch stands.
#[derive(Debug, PartialEq, Eq)]
enum BranchPlace {
    Free,
    At(ObjectId),
    /// A folder, a link, or a name of another branch.
    Other,
}

fn stands(git: &Git, refs: &BTreeMap<String, Vec<u8>>, path: &str) -> BranchPlace {
    let packed = || match refs.get(path) {
        Some(value) => ObjectId::parse(value).map_or(BranchPlace::Other, BranchPlace::At),
        None => BranchPlace::Free,
    };
    match git.common.stat(Path::new(path)) {
        Ok(None) => packed(),
        Ok(Some(stat)) if stat.is_file() => {
            let file = git.common.file(Path::new(path)).ok();
            let text =
                file.and_then(|it| bounded(it, Path::new(path), limits::GIT_FILE_BYTES_MAX).ok());
            let id = text.and_then(|text| ObjectId::parse(text.trim_ascii_end()));
            id.map_or(BranchPlace::Other, BranchPlace::At)
        }
        Ok(Some(_)) | Err(_) => BranchPlace::Other,
    }
}

/// Whether a checkout stands on a branch.
fn is_worked_on(git: &Git, path: &str) -> Result<bool, Error> {
    let mut heads = vec![git.read(&git.own, "HEAD", limits::GIT_FILE_BYTES_MAX)?];
    heads.push(git.read(&git.common, "HEAD", limits::GIT_FILE_BYTES_MAX)?);
    if let Ok(trees) = git.common.dir(Path::new("worktrees")) {
        let failed = Error::unreadable(&git.common_place, Path::new("worktrees"));
        for name in trees.names().map_err(&failed)? {
            let name = PathBuf::from(name.map_err(&failed)?);
            let Ok(tree) = trees.dir(&name) else { continue };
            heads.push(git.read(&tree, "HEAD", limits::GIT_FILE_BYTES_MAX)?);
        }
    }
    let reference = format!("ref: {path}");
    Ok(heads.iter().flatten().any(|head| head.trim_ascii_end() == reference.as_bytes()))
}

/// Writes the file of a branch that stands where it was found, under git's own lock of it.
fn write(
    git: &Git,
    refs: &BTreeMap<String, Vec<u8>>,
    (path, tip): (&str, &ObjectId),
    before: &BranchPlace,
) -> Result<(), Error> {
    let failed =
        |source| Error::Write { path: git.common_place.join(path).display().to_string(), source };
    let (name, path, lock) = (path, Path::new(path), PathBuf::from(format!("{path}.lock")));
    let folder = path.parent().unwrap_or(Path::new("."));
    git.common.make_dirs(folder, 0o777).map_err(|error| failed(io_error(error)))?;
    let locked = Draft::begin(&git.common, &lock, false).and_then(Draft::put_new);
    locked.map_err(|error| failed(io_error(error)))?;
    let written = match stands(git, refs, name) == *before {
        true => put(&git.common, path, tip, before),
        false => Err(io::Error::other("it was moved meanwhile")),
    };
    // A lock that stays is told by git, with its path.
    let _ = git.common.remove_file(&lock);
    written.map_err(failed)
}

fn put(common: &Dir, path: &Path, tip: &ObjectId, before: &BranchPlace) -> io::Result<()> {
    let mut draft = Draft::begin(common, path, false).map_err(io_error)?;
    writeln!(draft.file(), "{tip}")?;
    draft.file().sync_all()?;
    match before {
        BranchPlace::Free => draft.put_new(),
        BranchPlace::At(_) | BranchPlace::Other => draft.put(),
    }
    .map_err(io_error)
}
