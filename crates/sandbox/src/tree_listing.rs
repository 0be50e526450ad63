//! A whole tree of files in a sandbox, a page after the other.

use crate::{Error, FileOp, FileReply, ManifestEntry, Sandbox, limits};

/// Every file and link beneath a directory ([`FileOp::Manifest`]), sorted by path. Nothing where
/// that would be more than `files_max`.
///
/// # Errors
/// What the sandbox says; [`Error::Backend`] where it answers something else.
pub async fn list_tree(
    sandbox: &dyn Sandbox,
    root: &str,
    files_max: usize,
) -> Result<Option<Vec<ManifestEntry>>, Error> {
    let mut all: Vec<ManifestEntry> = Vec::new();
    loop {
        let op = FileOp::Manifest {
            root: root.to_owned(),
            after: all.last().map(|entry| entry.path.clone()),
            skip: Vec::new(),
            entries_max: limits::ENTRIES_MAX,
        };
        let FileReply::Manifest { entries, more } = sandbox.files(op).await? else {
            return Err(Error::Backend("the sandbox answers another question".to_owned()));
        };
        let none = entries.is_empty();
        all.extend(entries);
        if all.len() > files_max {
            return Ok(None);
        }
        if !more || none {
            return Ok(Some(all));
        }
    }
}
