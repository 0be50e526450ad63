//! The files of the repository, as git lists them.
//!
//! Owns reading them: the rules get text as values, so that their tests need no
//! disk. Must never look at what git ignores.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::limits::TEXT_BYTES_MAX;

/// Why the files can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Git could not be started.
    #[error("cannot run git: is it installed?")]
    Start(#[source] std::io::Error),
    /// Git ran and refused.
    #[error("`git ls-files` failed: {0}")]
    List(String),
    /// A listed file can't be read.
    #[error("cannot read {path}")]
    Read {
        /// The file, relative to the root.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Text files by path, relative to the root of the repository.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Tracked files, and untracked ones that are not ignored. Binary files and
    /// files above the limit are left out: no rule speaks of them.
    pub(crate) fn load(root: &Path) -> Result<Self, Error> {
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(root)
            .output()
            .map_err(Error::Start)?;
        if !listed.status.success() {
            return Err(Error::List(String::from_utf8_lossy(&listed.stderr).trim().to_owned()));
        }
        let mut files = BTreeMap::new();
        for name in listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let path = String::from_utf8_lossy(name).into_owned();
            let on_disk = root.join(&path);
            // A file that is deleted but not yet committed is listed all the same.
            let Ok(meta) = on_disk.symlink_metadata() else { continue };
            if !meta.is_file() || meta.len() > TEXT_BYTES_MAX as u64 {
                continue;
            }
            let bytes = std::fs::read(&on_disk)
                .map_err(|source| Error::Read { path: path.clone(), source })?;
            if let Ok(text) = String::from_utf8(bytes)
                && !text.contains('\0')
            {
                files.insert(path, text);
            }
        }
        Ok(Self { files })
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files, by path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(owned).collect() }
    }
}
