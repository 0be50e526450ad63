//! What the harness may not read: the files in which keys are kept.
//!
//! Owns the list of them. It is no wall around everything that is secret: what a person keeps
//! elsewhere is read like any other file.

use std::path::{Path, PathBuf};

use crate::paths::Paths;

/// Where programs keep keys and tokens in a home directory, those that this program has no use
/// for. Settings of package managers, which may hold some too, say where registries are.
const OF_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".pypirc",
    ".password-store",
    ".vault-token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/op",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".mozilla",
    ".terraform.d/credentials.tfrc.json",
];

/// The host's own.
const OF_HOST: &[&str] = &["/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers"];

/// Where processes are, each with its environment.
const PROCESSES: &str = "/proc";

/// What is not read: where programs keep keys, other processes, and what belongs to the gate and
/// the spawner.
pub(super) fn unreadable(home: &Path, paths: &Paths) -> Vec<PathBuf> {
    let homes = [home, Path::new("/root")].into_iter().filter(|home| home.is_absolute());
    let of_homes = homes.flat_map(|home| OF_HOME.iter().map(|name| home.join(name)));
    // Of the data directory the harness has its own folder, as another rule says.
    let others = [paths.data().to_owned(), paths.gate(), paths.sandboxes()];
    let others = others.into_iter().chain([Path::new(PROCESSES).join("1")]);
    let all = of_homes.chain(OF_HOST.iter().map(PathBuf::from)).chain(others);
    all.map(|path| std::fs::canonicalize(&path).unwrap_or(path)).collect()
}

/// The directory, or what is in it around what is kept: the fewest places whose contents are
/// everything else. What is made later beside what is kept is not among them, and the space of a
/// file beside it that is deleted is free when this process ends: a rule holds on to it.
pub(super) fn around(dir: &Path, kept: &[PathBuf]) -> Vec<PathBuf> {
    if kept.iter().any(|kept| dir.starts_with(kept)) {
        return Vec::new();
    }
    if !kept.iter().any(|kept| kept.starts_with(dir)) {
        return vec![dir.to_owned()];
    }
    // A directory that can't be read holds nothing that is.
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let readable = entries.filter(|entry| {
        // A link allows nothing: what it leads to may be kept.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let name = entry.file_name();
        let is_process =
            dir == Path::new(PROCESSES) && name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        !is_link && !is_process
    });
    readable.flat_map(|entry| around(&entry.path(), kept)).collect()
}
