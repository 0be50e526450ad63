//! Trees that tools make and nobody writes, among the changes of a session.
//!
//! Owns how they are called. Judges by names alone, so it warns and refuses nothing: a
//! person may well keep what is in one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::Change;

/// Names of folders in which tools keep what they make.
const NAMES: [&str; 20] = [
    ".cache",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nuxt",
    ".pytest_cache",
    ".ruff_cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".venv",
    "__pycache__",
    "bower_components",
    "build",
    "coverage",
    "dist",
    "node_modules",
    "out",
    "target",
    "venv",
];

/// A folder that looks generated, and that is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedTree {
    /// The folder, relative to the workspace.
    pub path: String,
    /// How many files of it the changes have.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

impl fmt::Display for GeneratedTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, files, bytes } = self;
        let plural = if *files == 1 { "" } else { "s" };
        // A path could have anything in it, a line break too.
        let (path, kib) = (path.escape_debug(), bytes.div_ceil(1_024));
        write!(
            f,
            "{path}/ looks generated, and is in the changes with {files} file{plural}, {kib} KiB"
        )
    }
}

/// The generated trees among changes, by their paths. One that is in `dir` already is not
/// new, and whoever keeps it there knows.
#[must_use]
pub fn generated(dir: Option<&Path>, changes: &[Change]) -> Vec<GeneratedTree> {
    let mut trees: BTreeMap<&str, GeneratedTree> = BTreeMap::new();
    for change in changes {
        let Some(after) = change.after.as_ref().filter(|_| change.before.is_none()) else {
            continue;
        };
        let Some(path) = tree(&change.path) else { continue };
        let new = || GeneratedTree { path: path.to_owned(), files: 0, bytes: 0 };
        let found = trees.entry(path).or_insert_with(new);
        found.files += 1;
        found.bytes += after.contents.len() as u64;
    }
    let is_new = |tree: &GeneratedTree| {
        dir.is_none_or(|dir| dir.join(&tree.path).symlink_metadata().is_err())
    };
    trees.into_values().filter(is_new).collect()
}

/// The first folder of a path that is called like a generated one.
fn tree(path: &str) -> Option<&str> {
    let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    let mut named = folders.filter(|folder| {
        let name = folder.rsplit('/').next().unwrap_or_default();
        NAMES.contains(&name)
    });
    named.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;
    use expect_test::expect;
    use outrigger_sandbox::EntryKind;

    #[test]
    fn trees_that_are_new() {
        let file =
            || Some(File { kind: EntryKind::File, executable: false, contents: vec![b'x'; 2_000] });
        let change = |path: &str, before: Option<File>| Change {
            path: path.to_owned(),
            before,
            after: file(),
        };
        let changes = [
            change("src/main.rs", None),
            change("app/node_modules/a/node_modules/b.js", None),
            change("app/node_modules/c.js", None),
            change("target/debug/x", None),
            change("dist", None),
            change("build/known", file()),
        ];
        let told = |dir: Option<&Path>| {
            let trees = generated(dir, &changes);
            trees.iter().map(|tree| format!("{tree}\n")).collect::<String>()
        };
        expect![[r#"
            app/node_modules/ looks generated, and is in the changes with 2 files, 4 KiB
            target/ looks generated, and is in the changes with 1 file, 2 KiB
        "#]]
        .assert_eq(&told(None));
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("target")).unwrap();
        assert!(!told(Some(dir.path())).contains("target"));
    }
}
