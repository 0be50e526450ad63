//! What is kept and configured here, against a directory in which it lies.
//!
//! Owns that what an agent changed is never written back over it: what a person trusts, what the
//! rules are and what the sessions did would be whatever a sandbox says.

use outrigger_repository::Change;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// An error if a change of the directory would reach what is kept or configured here.
pub(crate) fn stay_untouched(paths: &Paths, dir: &Path, changes: &[Change]) -> Outcome {
    // One that was named can lie among other files.
    let usual = paths.config_places().iter().filter_map(|file| file.parent());
    let usual = usual.filter(|_| paths.named_config().is_none());
    let ours = std::iter::once(paths.data()).chain(usual).chain(paths.named_config());
    let within: Vec<PathBuf> = ours.filter_map(|path| beneath(dir, path)).collect();
    let reached = changes
        .iter()
        .map(|change| Path::new(&change.path))
        .find(|path| within.iter().any(|ours| path.starts_with(ours) || ours.starts_with(path)));
    match reached {
        None => Ok(()),
        Some(path) => {
            let text = format!(
                "{} is part of what outrigger keeps or is configured by, and nothing of that is written back",
                path.display()
            );
            Err(Failure::new(Kind::Denied, text)
                .hint("All changes are in the patch. Name a directory with --dir in which neither the data directory nor the configuration lies."))
        }
    }
}

/// Where a path lies in a directory, if it does.
fn beneath(dir: &Path, path: &Path) -> Option<PathBuf> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (dir, path) = (real(dir), real(path));
    path.strip_prefix(&dir).ok().map(Path::to_owned)
}
