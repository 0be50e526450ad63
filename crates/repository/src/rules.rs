//! What a directory itself does not count as content: ignore files, as git has them.
//!
//! Owns which rule has the last word. Takes the text of rules, and opens nothing.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits;

/// The file of rules that a folder can have.
pub(crate) const NAME: &str = ".gitignore";

/// Rules of ignore files, by the folder whose they are.
#[derive(Debug, Default, Clone)]
pub struct Rules {
    /// Of the folders themselves. All paths begin at one top.
    folders: BTreeMap<PathBuf, Gitignore>,
    /// Of the top, and weaker than those of any folder; the stronger first.
    outer: Vec<Gitignore>,
    /// What no rule brings back.
    hidden: Option<PathBuf>,
}

impl Rules {
    /// The rules of every `.gitignore` in the archive that a workspace was filled from: what
    /// a build leaves behind is no change of anybody's. Rules that an agent wrote later hide
    /// nothing.
    ///
    /// # Errors
    /// A damaged archive.
    pub fn of_archive(archive: impl Read) -> io::Result<Self> {
        let mut rules = Self::default();
        for entry in tar::Archive::new(archive).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            let is_rules = path.file_name().is_some_and(|name| name == NAME);
            if !is_rules || entry.size() > limits::IGNORE_BYTES_MAX {
                continue;
            }
            let mut text = Vec::new();
            entry.read_to_end(&mut text)?;
            rules.add(path.parent().unwrap_or(Path::new("")), &text);
        }
        Ok(rules)
    }

    /// The rules that hold everywhere for whoever runs this: `core.excludesFile` of their own
    /// settings, or git's default for it. Not those of a repository's settings.
    #[must_use]
    pub fn of_user() -> Self {
        let (global, _) = GitignoreBuilder::new("/").build_global();
        Self { outer: vec![global], ..Self::default() }
    }

    /// These, and never the directory of this absolute path.
    #[must_use]
    pub fn without(self, hidden: PathBuf) -> Self {
        Self { hidden: Some(hidden), ..self }
    }

    /// These for paths that begin at a directory.
    pub(crate) fn at(mut self, top: &Path) -> Self {
        let hidden = self.hidden.as_deref().and_then(|hidden| hidden.strip_prefix(top).ok());
        self.hidden = hidden.map(|hidden| Path::new("/").join(hidden));
        self
    }

    /// Takes the rules of a folder.
    pub(crate) fn add(&mut self, folder: &Path, text: &[u8]) {
        let folder = Path::new("/").join(folder);
        self.folders.extend(parsed(&folder, text).map(|rules| (folder, rules)));
    }

    /// Takes rules of the top that are weaker than those of its folders, and stronger than
    /// what is known of such.
    pub(crate) fn add_outer(&mut self, text: &[u8]) {
        self.outer.splice(0..0, parsed(Path::new("/"), text));
    }

    /// Whether a path is left out, if what is above it is not.
    pub(crate) fn leaves_out(&self, path: &Path, is_dir: bool) -> bool {
        let path = Path::new("/").join(path);
        self.hidden.as_ref() == Some(&path)
            || self.last_word(&path, |rules| rules.matched(&path, is_dir))
    }

    /// Whether a new file of that path is left out.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        let path = Path::new("/").join(path);
        self.last_word(&path, |rules| rules.matched_path_or_any_parents(&path, false))
    }

    /// The nearest rules have it.
    fn last_word<'a, T>(&'a self, path: &Path, said: impl Fn(&'a Gitignore) -> Match<T>) -> bool {
        let near = path.ancestors().skip(1).filter_map(|folder| self.folders.get(folder));
        let mut said = near.chain(&self.outer).map(said).filter(|said| !said.is_none());
        matches!(said.next(), Some(Match::Ignore(_)))
    }
}

/// A line that is no rule is passed over, as git does.
fn parsed(folder: &Path, text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    let text = String::from_utf8_lossy(text);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        drop(builder.add_line(None, line));
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Rules;
    use std::path::Path;

    #[test]
    fn the_nearest_rule_has_the_last_word() {
        let mut rules = Rules::default();
        rules.add(Path::new(""), b"target/\n*.log\n/only-here\n");
        rules.add(Path::new("part"), b"!kept.log\n*.tmp\n");
        rules.add_outer(b"*.tmp\n");
        rules.add_outer(b"!a.tmp\n");
        for (path, covered) in [
            ("target/debug/a", true),
            ("part/target/a", true),
            ("src/target.rs", false),
            ("a.log", true),
            ("part/kept.log", false),
            ("part/other.log", true),
            ("part/deep/x.tmp", true),
            ("x.tmp", true),
            ("a.tmp", false),
            ("only-here", true),
            ("part/only-here", false),
        ] {
            assert_eq!(rules.covers(path), covered, "{path}");
        }
        rules.add(Path::new("part"), b"!data\n");
        let rules = rules.without("/top/part/data".into()).at(Path::new("/top"));
        assert!(rules.leaves_out(Path::new("part/data"), true));
        assert!(!rules.leaves_out(Path::new("data"), true));
        assert!(rules.leaves_out(Path::new("target"), true));
        assert!(!rules.leaves_out(Path::new("target"), false));
        assert!(!rules.leaves_out(Path::new("target/debug"), true), "what is above it is asked");
    }
}
