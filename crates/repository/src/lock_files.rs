//! What says which versions a project depends on: lock files, and what they are made from.

use outrigger_beneath::Dir;
use sha2::{Digest, Sha256};

use crate::git::bounded;
use crate::hex::hex;
use crate::{Error, WorkTree, limits};

const NAMES: [&str; 33] = [
    "Cargo.lock",
    "Cargo.toml",
    "Gemfile",
    "Gemfile.lock",
    "Package.resolved",
    "Package.swift",
    "Pipfile",
    "Pipfile.lock",
    "build.gradle",
    "build.gradle.kts",
    "bun.lock",
    "bun.lockb",
    "composer.json",
    "composer.lock",
    "deno.lock",
    "go.mod",
    "go.sum",
    "gradle.lockfile",
    "mix.exs",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pom.xml",
    "pyproject.toml",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
    "uv.lock",
    "yarn.lock",
];

/// Names what the lock files and manifests say, from where a person works up to the top:
/// another name for other contents.
///
/// # Errors
/// If one can't be read, or has more than [`limits::LOCK_FILE_BYTES_MAX`].
pub fn lock_digest(tree: &WorkTree) -> Result<String, Error> {
    let opened = Dir::open(&tree.top).map_err(Error::directory(&tree.top))?;
    let mut hasher = Sha256::new();
    for path in tree.folders().flat_map(|folder| NAMES.map(|name| folder.join(name))) {
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
