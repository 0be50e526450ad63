//! Which files of a directory are its content: in a git repository what is tracked, changed,
//! or untracked and not ignored; elsewhere everything that is not ignored. Lock files always.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outrigger_beneath::{self as beneath, Dir, words};
use rustix::fs::FileType;

use crate::error::reason;
use crate::git::index::{self, IndexEntryKind};
use crate::git::{Git, bounded};
use crate::lock_files::is_lock_file;
use crate::rules::{self, Rules};
use crate::{DependencyPolicy, Error, TooLarge, dependencies, limits, names};

/// What is said of another repository in it.
const NESTED: &str = "a submodule or nested repository is not copied";

/// The content of a directory.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    dir: &'a Path,
    policy: DependencyPolicy<'a>,
    pub(crate) paths: BTreeSet<PathBuf>,
    /// What is not of it, and why, where a person would not expect that.
    pub(crate) left_out: BTreeMap<PathBuf, String>,
    /// Folders of what it depends on, of which nothing is taken.
    pub(crate) dependencies: BTreeSet<PathBuf>,
    /// Folders of what Python compiled of it, of which nothing is taken either.
    pub(crate) caches: BTreeSet<PathBuf>,
    /// Other repositories in it, of which nothing is looked at.
    submodules: BTreeSet<PathBuf>,
    files_max: u64,
}

/// Lists a directory. `dir` is its path, absolute and without links.
///
/// Looks at no more than may be copied: a home directory has millions of files.
pub(crate) fn list<'a>(
    dir: &'a Path,
    opened: &Dir,
    user: &Rules,
    files_max: u64,
    policy: DependencyPolicy<'a>,
) -> Result<Listing<'a>, Error> {
    let mut listing = Listing {
        dir,
        policy,
        paths: BTreeSet::new(),
        left_out: BTreeMap::new(),
        dependencies: BTreeSet::new(),
        caches: BTreeSet::new(),
        submodules: BTreeSet::new(),
        files_max,
    };
    let git = Git::find(dir)?;
    let top = git.as_ref().map_or(Path::new("/"), |git| &git.top);
    let below = dir.strip_prefix(top).unwrap_or(Path::new(""));
    let knows = match &git {
        Some(git) => listing.take_tracked(git, below, opened)?,
        None => false,
    };
    // One that merely lies somewhere beneath a repository, for example in a home directory
    // that is one, is not its part.
    let is_part = git.as_ref().is_some_and(|git| git.top == dir) || knows;
    let rules = from_above(top, below, git.as_ref(), user)?;
    listing.walk(opened, below, rules, is_part)?;
    if listing.caches.len() > limits::CACHES_MAX {
        listing.caches.clear();
    }
    Ok(listing)
}

/// The rules of the directories above. Who names a directory that is itself ignored by them
/// means it all the same.
fn from_above(top: &Path, below: &Path, git: Option<&Git>, user: &Rules) -> Result<Rules, Error> {
    let user = user.clone().at(top);
    let mut rules = user.clone();
    if let Some(text) = git.map(Git::excludes).transpose()?.flatten() {
        rules.add_outer(&text);
    }
    let mut folder = PathBuf::new();
    for part in below.components() {
        if let Ok(dir) = Dir::open(&top.join(&folder))
            && let Ok(file) = dir.file(Path::new(rules::NAME))
        {
            let path = top.join(&folder).join(rules::NAME);
            rules.add(&folder, &bounded(file, &path, limits::IGNORE_BYTES_MAX)?);
        }
        folder.push(part);
        if rules.leaves_out(&folder, true) {
            return Ok(user);
        }
    }
    Ok(rules)
}

impl Listing<'_> {
    /// Takes what is tracked beneath the directory and there. Whether anything is tracked.
    fn take_tracked(&mut self, git: &Git, below: &Path, dir: &Dir) -> Result<bool, Error> {
        let Some(bytes) = git.index()? else { return Ok(false) };
        let mut any = false;
        let visited = index::each(&bytes, |path, kind| {
            let Ok(path) = path.strip_prefix(below) else { return Ok(()) };
            any = true;
            // Through a link nothing is tracked: there, git has it as deleted.
            let Ok(Some(stat)) = dir.stat(path) else { return Ok(()) };
            match (kind, stat.kind) {
                (IndexEntryKind::Submodule, FileType::Directory) => {
                    self.left_out.insert(path.to_owned(), NESTED.to_owned());
                    self.submodules.insert(path.to_owned());
                    Ok(())
                }
                // What took its place is walked.
                (_, FileType::Directory) => Ok(()),
                _ => self.take(path.to_owned()),
            }
        });
        visited.map_err(|source| Error::Index { path: git.index_path(), source })??;
        Ok(any)
    }

    fn take(&mut self, path: PathBuf) -> Result<(), Error> {
        self.paths.insert(path);
        if self.paths.len() as u64 > self.files_max {
            return Err(Error::TooLarge(TooLarge::Files(self.files_max)));
        }
        Ok(())
    }

    /// Takes everything that no rule leaves out. `below` is where the rules see the
    /// directory, `is_part` whether it is a repository, in which another one is left out.
    fn walk(
        &mut self,
        dir: &Dir,
        below: &Path,
        mut rules: Rules,
        is_part: bool,
    ) -> Result<(), Error> {
        let (mut folders, mut seen) = (vec![PathBuf::new()], 0);
        while let Some(folder) = folders.pop() {
            seen += 1;
            if seen > self.files_max {
                return Err(Error::TooLarge(TooLarge::Folders(self.files_max)));
            }
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            let entries = dir.dir(here).and_then(|opened| Ok((opened.names()?, opened)));
            let (entries, opened) = match entries {
                Ok(entries) => entries,
                // Like git, which warns of what it may not look into.
                Err(error) if is_part => {
                    self.left_out.insert(folder, reason(&error));
                    continue;
                }
                Err(error) => return Err(Error::unreadable(self.dir, &folder)(error)),
            };
            let is_other = || matches!(opened.stat(Path::new(".git")), Ok(Some(_)));
            if is_part && !folder.as_os_str().is_empty() && is_other() {
                self.left_out.insert(folder, NESTED.to_owned());
                continue;
            }
            self.take_rules(&opened, &folder, below, &mut rules)?;
            let names = entries.collect::<Result<BTreeSet<_>, _>>();
            let names = names.map_err(Error::unreadable(self.dir, &folder))?;
            for name in &names {
                if name.to_str().is_some_and(names::is_git) {
                    continue;
                }
                let path = folder.join(name);
                let stat = match opened.stat(Path::new(name)) {
                    Ok(Some(stat)) => stat,
                    Ok(None) => continue,
                    Err(error) => return Err(Error::unreadable(self.dir, &path)(error)),
                };
                if stat.is_dir() && self.is_dependency(&path, &opened, &names) {
                    self.dependencies.insert(path);
                    continue;
                }
                if stat.is_dir() && self.is_cache(&path, &names) {
                    self.caches.insert(path);
                    continue;
                }
                // Libraries ignore theirs: without it other versions would be looked for than
                // those that come along.
                let stays = self.takes_dependencies() && is_lock_file(name);
                if !stays && rules.leaves_out(&below.join(&path), stat.is_dir()) {
                    continue;
                }
                match stat.is_dir() {
                    true if self.submodules.contains(&path) => {}
                    true => folders.push(path),
                    false => self.take(path)?,
                }
            }
        }
        Ok(())
    }

    /// Whether a folder holds what those beside it depend on. What is tracked in one is of
    /// the content.
    fn is_dependency(&self, path: &Path, opened: &Dir, beside: &BTreeSet<OsString>) -> bool {
        let DependencyPolicy::Apart(include) = self.policy else { return false };
        let name = path.file_name().and_then(|name| name.to_str());
        let is_one = include.iter().any(|included| included == path)
            || name.is_some_and(|name| dependencies::is_one(name, opened, beside));
        is_one && !self.has_tracked(path)
    }

    /// Whether a folder holds what Python compiled of the files beside it.
    fn is_cache(&self, path: &Path, beside: &BTreeSet<OsString>) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        self.takes_dependencies()
            && name.is_some_and(|name| dependencies::is_cache(name, beside))
            && !self.has_tracked(path)
    }

    fn takes_dependencies(&self) -> bool {
        matches!(self.policy, DependencyPolicy::Apart(_))
    }

    fn has_tracked(&self, folder: &Path) -> bool {
        let mut next = self.paths.range(folder.to_owned()..);
        next.next().is_some_and(|next| next.starts_with(folder))
    }

    /// The rules of one folder. Like git, it takes none through a link.
    fn take_rules(
        &mut self,
        opened: &Dir,
        folder: &Path,
        below: &Path,
        rules: &mut Rules,
    ) -> Result<(), Error> {
        let name = Path::new(rules::NAME);
        match opened.file(name) {
            Ok(file) => {
                let path = self.dir.join(folder).join(name);
                rules.add(&below.join(folder), &bounded(file, &path, limits::IGNORE_BYTES_MAX)?);
            }
            Err(error) if error.is_absent() => {}
            Err(beneath::Error::NoFile { kind, .. }) => {
                let why = format!("it is {}, whose rules are not read", words(kind));
                self.left_out.insert(folder.join(name), why);
            }
            Err(error) => return Err(Error::unreadable(self.dir, &folder.join(name))(error)),
        }
        Ok(())
    }
}
