//! The whole that a directory is a part of.

use std::path::{Path, PathBuf};

use crate::git::{Git, index};
use crate::{Error, limits};

/// What is copied of a repository, and where in it a person works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkTree {
    /// Its top directory, absolute and without links.
    pub top: PathBuf,
    /// Where in it a person works; empty at the top.
    pub prefix: PathBuf,
}

impl WorkTree {
    /// A directory by itself, whatever it lies in.
    #[must_use]
    pub fn alone(dir: &Path) -> Self {
        Self { top: dir.to_owned(), prefix: PathBuf::new() }
    }

    /// That of a directory, which is absolute and without links. One in which nothing is
    /// tracked merely lies beneath a repository and stands by itself; so does one in a home
    /// directory that is a repository, of which nobody means the whole.
    ///
    /// # Errors
    /// If the repository is damaged.
    pub fn of(dir: &Path, home: &Path) -> Result<Self, Error> {
        let Some(git) = Git::find(dir)? else { return Ok(Self::alone(dir)) };
        let prefix = dir.strip_prefix(&git.top).unwrap_or(Path::new(""));
        if prefix.as_os_str().is_empty() || home.starts_with(&git.top) {
            return Ok(Self::alone(dir));
        }
        let Some(bytes) = git.index()? else { return Ok(Self::alone(dir)) };
        let mut is_tracked = false;
        let visited = index::each(&bytes, |path, _| {
            is_tracked |= path.starts_with(prefix);
            Ok(())
        });
        let visited: Result<(), Error> =
            visited.map_err(|source| Error::Index { path: git.index_path(), source })?;
        visited?;
        // Where commands begin is told as text.
        match prefix.to_str().filter(|text| is_tracked && text.len() <= limits::PREFIX_BYTES_MAX) {
            Some(prefix) => Ok(Self { top: git.top.clone(), prefix: PathBuf::from(prefix) }),
            None => Ok(Self::alone(dir)),
        }
    }

    /// Where the person works.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.top.join(&self.prefix)
    }

    /// The directories that are written into when changes are written back: its own, and where
    /// its repository keeps what all worktrees share.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        let git = Git::find(&self.top).ok().flatten();
        let common =
            git.filter(Git::is_of_top).and_then(|git| std::fs::canonicalize(git.common_place).ok());
        let beside = common.filter(|common| !common.starts_with(&self.top));
        std::iter::once(self.top.clone()).chain(beside).collect()
    }

    /// The directories from where the person works up to the top, by their paths in it.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.prefix.ancestors()
    }
}
