//! What comes out of a sandbox, as it is made here.
//!
//! It is hostile: everything is made beneath one handle, links last, and nothing is ever followed.
//! Only a regular file is replaced.

use outrigger_beneath::{self as beneath, Dir, Draft, words};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::count::Count;
use crate::exit::{Failure, Kind, Outcome};

/// What something of a sandbox is to be here.
pub(crate) struct CopyTarget {
    path: PathBuf,
    /// The folder in which it is to be.
    dir: Dir,
    name: PathBuf,
}

impl CopyTarget {
    /// In a directory that is there it has the name that it has in the sandbox.
    pub(crate) fn new(from: &str, to: &Path) -> Outcome<Self> {
        let into = to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/");
        let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let name = if matches!(name, "" | "." | "..") { "workspace" } else { name };
        let path = if into { to.join(name) } else { to.to_owned() };
        let around = Dir::around(&path).map_err(|error| here(Path::new(""), &error))?;
        let (dir, name) = around.ok_or_else(|| {
            let text = format!("{} names no file", path.display());
            Failure::new(Kind::Usage, text)
        })?;
        Ok(Self { path, dir, name })
    }

    /// The path of the folder in which it is to be.
    fn above(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// A new directory, so that nothing of somebody else's stands in it.
    pub(crate) fn directory(&self) -> Outcome<CopiedTree> {
        let made = self.dir.make_dir(&self.name, 0o777);
        made.map_err(|error| {
            here(self.above(), &error).hint("Name a directory that is not there yet.")
        })?;
        let root = self.dir.dir(&self.name).map_err(|error| here(self.above(), &error))?;
        Ok(CopiedTree { root: Arc::new(root), path: self.path.clone() })
    }

    /// A file, written beside its name. Nothing may stand there but a regular file.
    pub(crate) fn file(&self, executable: bool) -> Outcome<CopiedFile> {
        let stat = self.dir.stat(&self.name).map_err(|error| here(self.above(), &error))?;
        if let Some(stat) = stat.filter(|stat| !stat.is_file()) {
            let text = format!("{} is {}", self.path.display(), words(stat.kind));
            return Err(Failure::new(Kind::Conflict, text)
                .hint("Only a file is replaced. Name another one, or `-` for standard output."));
        }
        CopiedFile::begin((&self.dir, self.above()), &self.name, executable)
    }
}

/// A directory that came out of a sandbox.
#[derive(Clone)]
pub(crate) struct CopiedTree {
    root: Arc<Dir>,
    path: PathBuf,
}

impl CopiedTree {
    /// A directory in it, with those above.
    pub(crate) fn folder(&self, path: &Path) -> Outcome {
        let made = self.root.make_dirs(path, 0o777);
        made.map(drop).map_err(|error| here(&self.path, &error))
    }

    /// A file in it.
    pub(crate) fn file(&self, path: &Path, executable: bool) -> Outcome<CopiedFile> {
        CopiedFile::begin((&self.root, &self.path), path, executable)
    }

    /// Links, once all else is there: those that lead out are left out, and given.
    pub(crate) fn link(
        &self,
        links: Vec<(PathBuf, String, String)>,
        count: &Count,
    ) -> Outcome<Vec<String>> {
        let mut left_out = Vec::new();
        for (path, target, inside) in links {
            if outrigger_repository::leads_out(&path, &target) {
                left_out.push(format!(
                    "{inside}: a link to {target}, which leads out of the directory"
                ));
                continue;
            }
            let linked = self.root.link(Path::new(&target), &path);
            linked.map_err(|error| here(&self.path, &error))?;
            count.file();
        }
        Ok(left_out)
    }
}

/// A file that comes out of a sandbox: there whole or not at all.
pub(crate) struct CopiedFile {
    draft: Draft,
    above: PathBuf,
    path: PathBuf,
}

impl CopiedFile {
    fn begin((dir, above): (&Dir, &Path), path: &Path, executable: bool) -> Outcome<Self> {
        let draft = Draft::begin(dir, path, executable).map_err(|error| here(above, &error))?;
        Ok(Self { draft, above: above.to_owned(), path: path.to_owned() })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome {
        self.draft.file().write_all(bytes).map_err(|error| {
            let path = self.above.join(&self.path);
            Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
        })
    }

    pub(crate) fn put(self) -> Outcome {
        self.draft.put().map_err(|error| here(&self.above, &error))
    }
}

/// What the host said of something beneath a folder.
fn here(above: &Path, error: &beneath::Error) -> Failure {
    let kind = match error {
        beneath::Error::Outside(path) => {
            let text = format!("the sandbox gave `{}` for a name", path.display());
            return Failure::new(Kind::Denied, text);
        }
        beneath::Error::Link(_) | beneath::Error::NoFile { .. } => Kind::Conflict,
        beneath::Error::Io { source, .. } => match source.kind() {
            io::ErrorKind::AlreadyExists => Kind::Conflict,
            io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Storage,
        },
    };
    match error {
        beneath::Error::Io { path, source } => {
            Failure::new(kind, format!("{}: {source}", above.join(path).display()))
        }
        error => Failure::from_error(kind, error),
    }
}
