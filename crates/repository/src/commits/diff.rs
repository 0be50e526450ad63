//! What a commit has that none of its parents has at the same path.
//!
//! Owns the walk through folders, and the look that each new name gets. Goes into no folder
//! that is as it was. What it has not got it wants, and goes on elsewhere meanwhile.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use outrigger_sandbox::EntryKind;

use super::answer::ObjectSet;
use super::object::{GitTreeEntry, ObjectId, ObjectKind, entries, is_plain_folder, mode};
use super::problem::CommitProblem;
use super::stored::StoredObjects;
use crate::names::folds_to_modules;
use crate::{Change, File, Grade, Hazard, limits};

/// The longest path that a kernel takes.
const PATH_BYTES: usize = 4_096;

/// What the commits have, so far.
#[derive(Debug)]
pub(super) struct TreeDiff<'a> {
    objects: &'a ObjectSet,
    stored: &'a StoredObjects,
    /// What the sandbox has to be asked for.
    pub(super) wanted: BTreeSet<ObjectId>,
    /// New folders, files and links.
    pub(super) reached: BTreeSet<ObjectId>,
    /// Of links with their targets; of files without what is in them.
    pub(super) changes: Vec<Change>,
    /// What no commit may have, whatever it holds.
    pub(super) refused: Vec<Hazard>,
    /// Folders that were read, of which most are asked for again.
    folders: HashMap<ObjectId, Folder<'a>>,
    /// Names that were looked at: few folders can be a tree without end.
    entries: u64,
}

type Folder<'a> = Rc<[GitTreeEntry<'a>]>;
type Names<'a> = HashMap<&'a [u8], GitTreeEntry<'a>>;

impl<'a> TreeDiff<'a> {
    pub(super) fn new(objects: &'a ObjectSet, stored: &'a StoredObjects) -> Self {
        let (wanted, reached) = (BTreeSet::new(), BTreeSet::new());
        let (changes, refused, folders) = (Vec::new(), Vec::new(), HashMap::new());
        Self { objects, stored, wanted, reached, changes, refused, folders, entries: 0 }
    }

    /// Compares a commit's folder with those of its parents.
    pub(super) fn compare(
        &mut self,
        tree: ObjectId,
        parents: Vec<ObjectId>,
    ) -> Result<(), CommitProblem> {
        let mut folders = vec![(String::new(), tree, parents)];
        while let Some((folder, tree, before)) = folders.pop() {
            if before.contains(&tree) {
                continue;
            }
            self.reached.insert(tree);
            let new = self.folder(tree)?;
            if let Some(new) = &new
                && !is_plain_folder(new)
            {
                return Err(CommitProblem::Tree(tree));
            }
            let mut old = Vec::new();
            for before in &before {
                old.push(self.folder(*before)?);
            }
            let old: Option<Vec<Folder<'a>>> = old.into_iter().collect();
            let (Some(new), Some(old)) = (new, old) else { continue };
            self.count(old.iter().map(|it| it.len()).sum::<usize>() + new.len() + 1)?;
            let old: Vec<Names<'a>> = old.iter().map(|it| by_name(it)).collect();
            for entry in new.iter() {
                let before: Vec<GitTreeEntry<'_>> =
                    old.iter().filter_map(|names| names.get(entry.name).copied()).collect();
                if before.iter().any(|it| (it.mode, it.id) == (entry.mode, entry.id)) {
                    continue;
                }
                let path = path(&folder, entry.name, tree)?;
                if entry.mode == mode::FOLDER {
                    let folders_before = before.iter().filter(|it| it.mode == mode::FOLDER);
                    folders.push((path, entry.id, folders_before.map(|it| it.id).collect()));
                } else {
                    self.change(path, before.first(), entry, tree)?;
                }
            }
            self.removed(&folder, &new, old.first());
        }
        Ok(())
    }

    /// What is in a folder, if that is known yet.
    pub(super) fn folder(&mut self, id: ObjectId) -> Result<Option<Folder<'a>>, CommitProblem> {
        if let Some(known) = self.folders.get(&id) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(object) = self.objects.get(&id) else {
            self.want(id)?;
            return Ok(None);
        };
        let is_folder = object.kind == ObjectKind::Tree;
        let found = entries(&object.contents).filter(|_| is_folder);
        let found: Folder<'a> = found.ok_or(CommitProblem::Tree(id))?.into();
        self.folders.insert(id, Rc::clone(&found));
        Ok(Some(found))
    }

    fn count(&mut self, entries: usize) -> Result<(), CommitProblem> {
        self.entries += entries as u64;
        if self.entries > limits::TREE_ENTRIES_MAX {
            let most = limits::TREE_ENTRIES_MAX;
            return Err(CommitProblem::TooMuch { most, what: "names in folders" });
        }
        Ok(())
    }

    pub(super) fn want(&mut self, id: ObjectId) -> Result<(), CommitProblem> {
        self.objects.can_be_asked(&id)?;
        self.wanted.insert(id);
        Ok(())
    }

    /// Takes note of what is at a path and is no folder.
    fn change(
        &mut self,
        path: String,
        before: Option<&GitTreeEntry<'_>>,
        entry: &GitTreeEntry<'_>,
        folder: ObjectId,
    ) -> Result<(), CommitProblem> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let why = match entry.mode {
            mode::SUBMODULE => Some("it is a submodule, whose files are another repository's"),
            mode::FILE | mode::PROGRAM | mode::LINK if folds_to_modules(name) => {
                Some("git fetches from where it says, and puts that where it says")
            }
            mode::FILE | mode::PROGRAM | mode::LINK => None,
            _ => return Err(CommitProblem::Tree(folder)),
        };
        if let Some(why) = why {
            self.refused.push(Hazard { path, why: why.to_owned(), grade: Grade::Refused });
            return Ok(());
        }
        let contents = match self.objects.get(&entry.id) {
            Some(object) if object.kind != ObjectKind::Blob => {
                return Err(CommitProblem::Tree(folder));
            }
            Some(object) => {
                self.reached.insert(entry.id);
                Some(&object.contents)
            }
            None if entry.mode != mode::LINK && self.stored.has(&entry.id) => None,
            None => return self.want(entry.id),
        };
        if self.changes.len() >= limits::COMMIT_CHANGES_MAX {
            let most = limits::COMMIT_CHANGES_MAX as u64;
            return Err(CommitProblem::TooMuch { most, what: "changed files" });
        }
        let mut after = file(entry);
        if let Some(target) = contents.filter(|_| entry.mode == mode::LINK) {
            after.contents.clone_from(target);
        }
        self.changes.push(Change { path, before: before.map(file), after: Some(after) });
        Ok(())
    }

    /// Takes note of what the first parent has and the commit has not.
    fn removed(&mut self, folder: &str, new: &[GitTreeEntry<'_>], old: Option<&Names<'_>>) {
        let names: HashSet<&[u8]> = new.iter().map(|entry| entry.name).collect();
        for entry in old.into_iter().flat_map(HashMap::values) {
            if entry.mode != mode::FOLDER && !names.contains(entry.name) {
                let path = join(folder, &String::from_utf8_lossy(entry.name));
                self.changes.push(Change { path, before: Some(file(entry)), after: None });
            }
        }
    }
}

fn by_name<'a>(entries: &[GitTreeEntry<'a>]) -> Names<'a> {
    entries.iter().map(|entry| (entry.name, *entry)).collect()
}

fn file(entry: &GitTreeEntry<'_>) -> File {
    let kind = if entry.mode == mode::LINK { EntryKind::Link } else { EntryKind::File };
    File { kind, executable: entry.mode == mode::PROGRAM, contents: Vec::new() }
}

fn path(folder: &str, name: &[u8], tree: ObjectId) -> Result<String, CommitProblem> {
    let name = std::str::from_utf8(name).map_err(|_| CommitProblem::Name(tree))?;
    let path = join(folder, name);
    if path.len() > PATH_BYTES {
        return Err(CommitProblem::TooMuch { most: PATH_BYTES as u64, what: "bytes in a path" });
    }
    Ok(path)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
