//! What a directory depends on and does not count as its content: folders that a package
//! manager or a compiler filled.
//!
//! Owns which folders those are, by the file beside them that says so, and how they become
//! one archive. They are brought into a sandbox as they are: not copied into a workspace,
//! compared, or written back.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_beneath::{Dir, Stat};
use rustix::fs::FileType;
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::layer::LayerBuilder;
use crate::{Error, TooLarge, limits};

/// Folders of what a project depends on, each with the files beside which it is one.
const FOLDERS: [(&str, &[&str]); 12] = [
    ("node_modules", &["package.json"]),
    (".yarn", &["package.json"]),
    (".venv", PYTHON),
    ("venv", PYTHON),
    ("env", PYTHON),
    (".tox", PYTHON),
    ("target", &["Cargo.toml"]),
    ("vendor", &["composer.json", "Gemfile", "go.mod"]),
    (".bundle", &["Gemfile"]),
    ("deps", &["mix.exs"]),
    ("_build", &["mix.exs"]),
    (".build", &["Package.swift"]),
];

const PYTHON: &[&str] = &[
    "pyproject.toml",
    "requirements.txt",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    "uv.lock",
    "poetry.lock",
];

/// A virtual environment of Python says so by this file.
const VENV: &str = "pyvenv.cfg";

/// Whether a folder beside these names holds what they depend on.
pub(crate) fn is_one(folder: &str, opened: &Dir, beside: &BTreeSet<OsString>) -> bool {
    let by_name = FOLDERS.iter().find(|(name, _)| *name == folder);
    let Some((_, manifests)) = by_name else { return false };
    let is_there = |name: &&str| beside.contains(OsStr::new(name));
    let is_venv = || matches!(opened.stat(&Path::new(folder).join(VENV)), Ok(Some(_)));
    manifests.iter().any(is_there) && (!matches!(folder, ".venv" | "venv" | "env") || is_venv())
}

/// Whether a folder beside these names is where Python keeps what it compiled of them.
pub(crate) fn is_cache(folder: &str, beside: &BTreeSet<OsString>) -> bool {
    let is_source = |name: &OsString| name.as_encoded_bytes().ends_with(b".py");
    folder == "__pycache__" && beside.iter().any(is_source)
}

/// What becomes of the folders of what a directory depends on.
#[derive(Debug, Clone, Copy)]
pub enum DependencyPolicy<'a> {
    /// They are named, and not taken; so are these, by their paths from the directory.
    Apart(&'a [PathBuf]),
    /// They are content like all else, if no rule leaves them out.
    Content,
}

/// Folders of what a directory depends on, which come along together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyFolders {
    /// Their paths from the directory.
    pub paths: Vec<PathBuf>,
    /// Files and links in them.
    pub files: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// Names what is in them, as far as the file system tells: another one for other content.
    pub version: String,
}

/// One thing in a folder.
#[derive(Clone)]
struct FolderEntry {
    path: PathBuf,
    stat: Stat,
}

impl DependencyFolders {
    /// Looks at folders beneath a directory, and reads no file of them.
    ///
    /// # Errors
    /// If one can't be read, or has more than [`limits::DEPENDENCY_FILES_MAX`] files.
    pub fn measure(dir: &Path, paths: &[PathBuf]) -> Result<Self, Error> {
        let opened = Dir::open(dir).map_err(Error::directory(dir))?;
        let mut hasher = Sha256::new();
        let (mut files, mut bytes) = (0, 0u64);
        let entries = paths.iter().map(|path| entries(dir, &opened, path));
        for FolderEntry { path, stat } in entries.collect::<Result<Vec<_>, _>>()?.concat() {
            hasher.update(path.as_os_str().as_encoded_bytes());
            hasher.update(format!("\0{:o} {:?}", stat.mode, stat.kind));
            // What a program leaves in a folder changes the folder's times as well.
            if !stat.is_dir() {
                files += 1;
                bytes = bytes.saturating_add(stat.bytes);
                hasher.update(format!(" {} {:?}\n", stat.bytes, stat.version));
            }
        }
        Ok(Self { paths: paths.to_vec(), files, bytes, version: hex(hasher.finalize()) })
    }

    /// Packs them into a tar archive, uncompressed and at its beginning, in which they stand in
    /// `top` and belong to the user `owner`. Times and rights are kept, special files left
    /// out.
    ///
    /// # Errors
    /// If a file can't be read.
    pub fn archive(
        &self,
        dir: &Path,
        top: &Path,
        owner: u64,
        scratch: &Path,
    ) -> Result<File, Error> {
        let opened = Dir::open(dir).map_err(Error::directory(dir))?;
        let mut layer = LayerBuilder::begin(scratch, top, owner).map_err(Error::Archive)?;
        // Each comes before what is in it.
        let above: BTreeSet<&Path> = self.paths.iter().flat_map(|path| path.ancestors()).collect();
        for path in above {
            layer.folder(path, 0o755, (0, 0)).map_err(Error::Archive)?;
        }
        for path in &self.paths {
            for entry in entries(dir, &opened, path)? {
                entry.add(&mut layer, dir, &opened)?;
            }
        }
        layer.end().map_err(Error::Archive)
    }
}

impl FolderEntry {
    fn add<W: io::Write>(
        &self,
        layer: &mut LayerBuilder<'_, W>,
        dir: &Path,
        opened: &Dir,
    ) -> Result<(), Error> {
        let Self { path, stat } = self;
        let (mode, modified) = (stat.mode & 0o755, stat.version.modified);
        let added = match stat.kind {
            FileType::Directory => layer.folder(path, mode | 0o700, modified),
            FileType::RegularFile => {
                let file = opened.file(path).map_err(Error::unreadable(dir, path))?;
                let meta = file.metadata();
                let meta = meta.map_err(|source| Error::Read { path: path.clone(), source })?;
                match layer.file(path, (mode, modified), (file, meta.len())) {
                    Ok(1..) => return Err(Error::Shorter(path.clone())),
                    added => added.map(drop),
                }
            }
            FileType::Symlink => {
                let target = opened.read_link(path).map_err(Error::unreadable(dir, path))?;
                layer.link(path, &target, modified)
            }
            _ => Ok(()),
        };
        added.map_err(Error::Archive)
    }
}

/// Everything in a folder, each directory before what is in it, sorted by path.
fn entries(dir: &Path, opened: &Dir, top: &Path) -> Result<Vec<FolderEntry>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = Error::unreadable(dir, &folder);
        let (here, names) = opened
            .dir(&folder)
            .and_then(|here| Ok((here.names()?.collect::<Result<Vec<_>, _>>()?, here)))
            .map(|(names, here)| (here, names))
            .map_err(unreadable)?;
        for name in names {
            let path = folder.join(&name);
            let Ok(Some(stat)) = here.stat(Path::new(&name)) else { continue };
            if stat.is_dir() {
                folders.push(path.clone());
            }
            found.push(FolderEntry { path, stat });
            if found.len() as u64 > limits::DEPENDENCY_FILES_MAX {
                return Err(Error::TooLarge(TooLarge::Files(limits::DEPENDENCY_FILES_MAX)));
            }
        }
    }
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
