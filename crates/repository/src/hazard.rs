//! What of a session's changes does more than lie there, once it is in the directory.
//!
//! Owns the judgement, over all changes together and what stands there already. What a rule
//! is about stands in a table, not here. Must never open what it judges.

mod obeyed;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path};

use outrigger_beneath::Dir;
use outrigger_sandbox::EntryKind;

use crate::names::folds_to_git;
use crate::{Change, File};

/// Something that does more than lie there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hazard {
    /// Which path.
    pub path: String,
    /// What it does, in words.
    pub why: String,
    /// Whether a person may have it all the same.
    pub grade: Grade,
}

/// What becomes of a hazard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// It is never written back.
    Refused,
    /// It is written back when a person accepts it.
    Named,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A path could have anything in it, a line break too.
        write!(f, "{}: {}", self.path.escape_debug(), self.why)
    }
}

/// Everything in changes that does more than lie there, in the order of the changes. `dir`
/// is where they would be written, if it is there.
#[must_use]
pub fn hazards(dir: Option<&Dir>, changes: &[Change]) -> Vec<Hazard> {
    let judge = Judge::new(dir, changes);
    changes.iter().filter_map(|change| judge.hazard(change)).collect()
}

struct Judge<'a> {
    dir: Option<&'a Dir>,
    /// What is written, and every folder above it; in small letters, as some file systems
    /// have them.
    written: BTreeSet<String>,
    removed: BTreeSet<&'a str>,
    /// Folders that git would take for repositories afterwards.
    repositories: BTreeSet<&'a str>,
}

impl<'a> Judge<'a> {
    fn new(dir: Option<&'a Dir>, changes: &'a [Change]) -> Self {
        let (written, removed): (Vec<&Change>, Vec<&Change>) =
            changes.iter().partition(|change| change.after.is_some());
        let (written, removed) = (|| paths(&written), paths(&removed));
        let mut judge = Self {
            dir,
            written: written().flat_map(within).map(str::to_lowercase).collect(),
            removed: removed.collect(),
            repositories: BTreeSet::new(),
        };
        let above: BTreeSet<&str> = written().flat_map(folders).collect();
        judge.repositories = above.into_iter().filter(|it| judge.is_repository(it)).collect();
        judge
    }

    fn hazard(&self, change: &Change) -> Option<Hazard> {
        let after = change.after.as_ref()?;
        let path = &change.path;
        let hazard = |why: String, grade| Some(Hazard { path: path.clone(), why, grade });
        let plain = |part| matches!(part, Component::Normal(_));
        if path.is_empty() || !Path::new(path).components().all(plain) {
            return hazard("it is no path beneath the directory".to_owned(), Grade::Refused);
        }
        if path.split(['/', '\\']).any(folds_to_git) {
            let why = "git, or a file system, takes a part of its name for `.git`";
            return hazard(why.to_owned(), Grade::Refused);
        }
        if let Some(folder) = folders(path).find(|folder| self.repositories.contains(folder)) {
            let folder = if folder.is_empty() { "the directory" } else { folder };
            let why = format!(
                "`{}` would be a repository by its shape, whose settings git obeys",
                folder.escape_debug()
            );
            return hazard(why, Grade::Refused);
        }
        if let Some(why) = leads(path, after) {
            return hazard(why, Grade::Refused);
        }
        if let Some(why) = obeyed::by(Path::new(path)) {
            return hazard(why.to_owned(), Grade::Named);
        }
        let was_executable = change.before.as_ref().is_some_and(|before| before.executable);
        if after.executable && !was_executable {
            return hazard(
                "it may be executed, which it could not before".to_owned(),
                Grade::Named,
            );
        }
        None
    }

    /// Whether git would take a folder for a repository, once the changes are there: by its
    /// parts alone, of which some may be in the folder that `commondir` names.
    fn is_repository(&self, folder: &str) -> bool {
        let has = |part| self.has(folder, part);
        has("head") && (has("commondir") || has("objects") && has("refs"))
    }

    /// Whether a folder has something of that name afterwards.
    fn has(&self, folder: &str, part: &str) -> bool {
        let join = |name: &str| match folder {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        if self.written.contains(&join(part).to_lowercase()) {
            return true;
        }
        let upper = part.to_uppercase();
        [part, &upper].into_iter().map(join).any(|path| {
            let stands = self.dir.and_then(|dir| dir.stat(Path::new(&path)).ok().flatten());
            stands.is_some() && !self.removed.contains(path.as_str())
        })
    }
}

fn paths<'a>(changes: &[&'a Change]) -> impl Iterator<Item = &'a str> {
    changes.iter().map(|change| change.path.as_str())
}

/// A path and the folders above it, but for the top.
fn within(path: &str) -> impl Iterator<Item = &str> {
    folders(path).filter(|folder| !folder.is_empty()).chain([path])
}

/// The folders above a path, the top first, which is empty.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.match_indices('/').map(|(at, _)| &path[..at]);
    std::iter::once("").chain(inner)
}

/// Where a link leads that may not be: out of the directory, or into a repository's own data.
fn leads(path: &str, after: &File) -> Option<String> {
    if after.kind != EntryKind::Link {
        return None;
    }
    let target = String::from_utf8_lossy(&after.contents);
    let told = target.escape_debug();
    if leads_out(Path::new(path), &target) {
        return Some(format!("it links to `{told}`, which may be outside the directory"));
    }
    let into_git = target.split(['/', '\\']).any(folds_to_git);
    into_git.then(|| format!("it links to `{told}`, into what git keeps"))
}

/// Whether a link at a path of a directory may lead out of it. It may go up only at its
/// beginning: after a name, which may be a link itself, `..` leads anywhere.
#[must_use]
pub fn leads_out(path: &Path, target: &str) -> bool {
    let mut above = path.components().count().saturating_sub(1);
    let mut named = false;
    !Path::new(target).components().all(|part| match part {
        Component::Normal(_) => {
            named = true;
            true
        }
        Component::CurDir => true,
        Component::ParentDir if named || above == 0 => false,
        Component::ParentDir => {
            above -= 1;
            true
        }
        Component::RootDir | Component::Prefix(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn written(path: &str, executable: bool) -> Change {
        let file = File { kind: EntryKind::File, executable, contents: b"x".to_vec() };
        Change { path: path.to_owned(), before: None, after: Some(file) }
    }

    fn linked(path: &str, target: &str) -> Change {
        let contents = target.as_bytes().to_vec();
        let file = File { kind: EntryKind::Link, executable: false, contents };
        Change { path: path.to_owned(), before: None, after: Some(file) }
    }

    fn check(changes: &[Change], expected: &Expect) {
        let told = hazards(None, changes).into_iter().map(|it| format!("{:?} {it}\n", it.grade));
        expected.assert_eq(&told.collect::<String>());
    }

    #[test]
    fn ordinary_files_are_no_hazard() {
        let names = [
            "src/main.rs",
            "Makefile",
            "package.json",
            "build.rs",
            "setup.py",
            ".gitignore",
            ".editorconfig",
            "AGENTS.md",
            "docs/HEAD",
            "a/objects/x",
            "a/refs/y",
            "conftest.py",
            ".github/CODEOWNERS",
            "config.toml",
            "src/.config/x",
            "mise.md",
            "x.path",
            "Cargo.lock",
        ];
        let mut changes: Vec<_> = names.map(|name| written(name, false)).into();
        changes.push(linked("bin/tool", "../lib/tool.js"));
        let mut script = written("run.sh", true);
        script.before = script.after.clone();
        changes.push(script);
        check(&changes, &expect![""]);
    }

    #[test]
    fn what_is_run_by_itself_is_named_and_what_git_obeys_refused() {
        check(
            &[
                written("sub/.ENVRC", false),
                written(".vscode/tasks.json", false),
                written("run.sh", true),
                written("a/.GIT/config", false),
                written("b/.git\u{200d}/x", false),
                written("odd\nname/.npmrc", false),
                linked("l", "../x"),
                linked("m", ".git/config"),
                linked("n/o", "../p"),
            ],
            &expect![[r#"
                Named sub/.ENVRC: direnv runs it when a shell enters the folder
                Named .vscode/tasks.json: an editor obeys it, and it can name programs that the editor runs
                Named run.sh: it may be executed, which it could not before
                Refused a/.GIT/config: git, or a file system, takes a part of its name for `.git`
                Refused b/.git\u{200d}/x: git, or a file system, takes a part of its name for `.git`
                Named odd\nname/.npmrc: a package manager obeys it, and it can name programs, or another source of packages
                Refused l: it links to `../x`, which may be outside the directory
                Refused m: it links to `.git/config`, into what git keeps
            "#]],
        );
    }

    #[test]
    fn a_folder_with_the_shape_of_a_repository_is_refused_whole() {
        check(
            &[
                written("a/HEAD", false),
                written("a/Objects/x", false),
                linked("a/refs", "elsewhere"),
                written("a/deep/file", false),
                written("b/head", false),
                written("b/commondir", false),
                written("c/HEAD", false),
                written("c/refs/x", false),
            ],
            &expect![[r#"
                Refused a/HEAD: `a` would be a repository by its shape, whose settings git obeys
                Refused a/Objects/x: `a` would be a repository by its shape, whose settings git obeys
                Refused a/refs: `a` would be a repository by its shape, whose settings git obeys
                Refused a/deep/file: `a` would be a repository by its shape, whose settings git obeys
                Refused b/head: `b` would be a repository by its shape, whose settings git obeys
                Refused b/commondir: `b` would be a repository by its shape, whose settings git obeys
            "#]],
        );
    }

    #[test]
    fn what_stands_there_already_is_a_part_of_the_shape() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("half/objects")).unwrap();
        std::fs::create_dir_all(root.path().join("half/refs")).unwrap();
        let dir = Dir::open(root.path()).unwrap();
        let changes = [written("half/HEAD", false)];
        assert_eq!(hazards(Some(&dir), &changes)[0].grade, Grade::Refused);
        assert_eq!(hazards(None, &changes), []);
        std::fs::write(root.path().join("half/HEAD"), "").unwrap();
        let more = hazards(Some(&dir), &[written("half/config", false)]);
        assert_eq!(more[0].grade, Grade::Refused, "it is one already");
        let gone = Change { path: "half/HEAD".to_owned(), before: None, after: None };
        assert_eq!(hazards(Some(&dir), &[gone, written("half/config", false)]), []);
    }
}
