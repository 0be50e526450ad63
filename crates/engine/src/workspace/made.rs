//! What commands made in a sandbox, beside what it was filled with.

use outrigger_repository::File;
use outrigger_sandbox::{EntryKind, ManifestEntry, Sandbox};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use super::Error;
use super::changes::{blocking, download, each, manifest};

/// Where programs keep what is no project's own.
const HOME: &str = "/home/agent";
const WORKSPACE: &str = "/workspace";

/// A sandbox that was filled, before commands run in it.
#[derive(Debug)]
pub struct FilledSandbox {
    filled: BTreeSet<String>,
    home: BTreeMap<String, ManifestEntry>,
}

/// A file or a link that commands made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFile {
    /// Absolute.
    pub path: String,
    /// Its size, or that of its target.
    pub bytes: u64,
    entry: ManifestEntry,
}

impl FilledSandbox {
    /// Looks at a sandbox that was filled with an archive.
    ///
    /// # Errors
    /// A damaged archive, or the sandbox's.
    pub async fn look(sandbox: &dyn Sandbox, archive: Box<dyn Read + Send>) -> Result<Self, Error> {
        let filled = blocking(archive, paths).await?;
        Ok(Self { filled, home: manifest(sandbox, HOME, &[]).await? })
    }

    /// What is new in the workspace but for the directories in `skip`, and what is new or
    /// another in the home directory, sorted by path. What was filled in counts as it was.
    ///
    /// # Errors
    /// The sandbox's.
    pub async fn made(
        &self,
        sandbox: &dyn Sandbox,
        skip: &[String],
    ) -> Result<Vec<MadeFile>, Error> {
        let home = manifest(sandbox, HOME, &[]).await?;
        let other = home.into_values().filter(|entry| self.home.get(&entry.path) != Some(entry));
        let work = manifest(sandbox, ".", skip).await?;
        let new = work.into_values().filter(|entry| !self.filled.contains(&entry.path));
        let file = |top: &str, entry: ManifestEntry| MadeFile {
            path: format!("{top}/{}", entry.path),
            bytes: entry.bytes,
            entry,
        };
        let made = other.map(|entry| file(HOME, entry));
        let made = made.chain(new.map(|entry| file(WORKSPACE, entry)));
        // What a program waits at is nothing without it.
        Ok(made.filter(|made| made.entry.kind != EntryKind::Other).collect())
    }

    /// Where in the workspace that is: of each the highest folder in which nothing was
    /// filled, or the file itself.
    #[must_use]
    pub fn folders(&self, made: &[MadeFile]) -> BTreeSet<String> {
        let paths = made.iter().filter_map(|file| file.path.strip_prefix(WORKSPACE));
        let paths = paths.map(|path| path.trim_start_matches('/'));
        paths.map(|path| topmost(path, &self.filled).to_owned()).collect()
    }
}

impl MadeFile {
    /// What it holds.
    ///
    /// # Errors
    /// One that is too large, or the sandbox's.
    pub async fn read(&self, sandbox: &dyn Sandbox) -> Result<File, Error> {
        download(sandbox, &self.path, &self.entry).await
    }
}

/// The files and links of an archive.
fn paths(archive: impl Read) -> Result<BTreeSet<String>, Error> {
    let mut paths = BTreeSet::new();
    each(archive, |path, _, _, _| {
        paths.insert(path);
        Ok(())
    })?;
    Ok(paths)
}

/// The highest folder above a path in which nothing was filled, or the path.
fn topmost<'a>(path: &'a str, filled: &BTreeSet<String>) -> &'a str {
    let is_new = |folder: &str| {
        let inside = format!("{folder}/");
        filled.range(inside.clone()..).next().is_none_or(|it| !it.starts_with(&inside))
    };
    let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders.find(|folder| is_new(folder)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_named_by_its_highest_new_folder() {
        let filled = BTreeSet::from(["src/a.rs", "src.md", "web/app/x"].map(str::to_owned));
        for (path, expected) in [
            ("built", "built"),
            ("src/built", "src/built"),
            ("sr/c/d", "sr"),
            ("web/node_modules/dep/index.js", "web/node_modules"),
        ] {
            assert_eq!(topmost(path, &filled), expected);
        }
    }
}
