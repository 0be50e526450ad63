//! What says which versions a project depends on: lock files, and what they are made from.

use outrigger_beneath::Dir;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;

use crate::git::bounded;
use crate::hex::hex;
use crate::{Error, WorkTree, limits};

/// Written by a package manager.
const LOCK_FILES: [&str; 18] = [
    "Cargo.lock",
    "Gemfile.lock",
    "Package.resolved",
    "Pipfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "deno.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

/// Written by people.
const MANIFESTS: [&str; 15] = [
    "Cargo.toml",
    "Gemfile",
    "Package.swift",
    "Pipfile",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "go.mod",
    "mix.exs",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
];

/// Whether a file of that name is one that a package manager writes and reads again.
pub(crate) fn is_lock_file(name: &OsStr) -> bool {
    LOCK_FILES.iter().any(|lock_file| name == *lock_file)
}

/// Names what the lock files and manifests say, from where a person works up to the top:
/// another name for other contents.
///
/// # Errors
/// If one can't be read, or has more than [`limits::LOCK_FILE_BYTES_MAX`].
pub fn lock_digest(tree: &WorkTree) -> Result<String, Error> {
    let opened = Dir::open(&tree.top).map_err(Error::directory(&tree.top))?;
    let mut hasher = Sha256::new();
    let names = || LOCK_FILES.iter().chain(&MANIFESTS);
    for path in tree.folders().flat_map(|folder| names().map(move |name| folder.join(name))) {
        // One through a link is not the project's own.
        let file = match opened.file(&path) {
            Ok(file) => file,
            Err(error) if error.is_absent() => continue,
            Err(outrigger_beneath::Error::NoFile { .. }) => continue,
            Err(error) => return Err(Error::unreadable(&tree.top, &path)(error)),
        };
        let contents = bounded(file, &tree.top.join(&path), limits::LOCK_FILE_BYTES_MAX)?;
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.update(format!("\0{}\0", contents.len()));
        hasher.update(contents);
    }
    Ok(hex(hasher.finalize()))
}
