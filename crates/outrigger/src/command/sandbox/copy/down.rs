//! Out of a sandbox.
//!
//! What comes is hostile: names are checked part by part, everything is made in a
//! directory that was made for it here, links last, and nothing is ever followed.

use outrigger_sandbox::{
    EntryKind, Error, FileErrorKind, FileOp, FileReply, ManifestEntry, Sandbox, limits as door,
};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinSet;

use super::super::failed;
use super::{Count, astray, found};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

pub(super) async fn copy(
    sandbox: Arc<dyn Sandbox>,
    from: &str,
    to: &Path,
    count: Arc<Count>,
) -> Outcome {
    let into = to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/");
    let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = if matches!(name, "" | "." | "..") { "workspace" } else { name };
    let target = if into { to.join(plain(name)?) } else { to.to_owned() };
    match found(&*sandbox, from).await? {
        None => {
            let text = format!("there is nothing at {from} in the sandbox");
            Err(Failure::new(Kind::NotFound, text))
        }
        Some(EntryKind::Directory) => directory(&sandbox, from, &target, &count).await,
        // A link is followed by the sandbox, as far as it stays inside.
        Some(_) => file(&*sandbox, from, &target, false, &count).await,
    }
}

fn here(path: &Path, error: &std::io::Error) -> Failure {
    let kind = match error.kind() {
        std::io::ErrorKind::AlreadyExists => Kind::Conflict,
        std::io::ErrorKind::NotFound => Kind::NotFound,
        _ => Kind::Storage,
    };
    Failure::new(kind, format!("{}: {error}", path.display()))
}

/// A name of one part that means nothing else.
fn plain(name: &str) -> Outcome<&str> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name && !name.contains('\0') => Ok(name),
        _ => Err(Failure::new(Kind::Denied, format!("the sandbox gave `{name}` for a name"))),
    }
}

/// A path of plain parts beneath a directory.
fn beneath(root: &Path, path: &str) -> Outcome<PathBuf> {
    path.split('/').try_fold(root.to_owned(), |dir, part| Ok(dir.join(plain(part)?)))
}

async fn directory(
    sandbox: &Arc<dyn Sandbox>,
    from: &str,
    to: &Path,
    count: &Arc<Count>,
) -> Outcome {
    // New, so that no link of somebody else's stands in it.
    fs::create_dir(to)
        .map_err(|error| here(to, &error).hint("Name a directory that is not there yet."))?;
    let entries = manifest(&**sandbox, from).await?;
    count.total(entries.iter().map(|entry| entry.bytes).sum());
    let (mut links, mut fetching) = (Vec::new(), JoinSet::new());
    for entry in entries {
        let target = beneath(to, &entry.path)?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|error| here(parent, &error))?;
        }
        match entry.kind {
            EntryKind::Directory => {
                fs::create_dir_all(&target).map_err(|error| here(&target, &error))?;
            }
            EntryKind::Link => links.push((target, entry.target.unwrap_or_default())),
            _ => {
                if fetching.len() >= limits::COPIES_AT_ONCE_MAX
                    && let Some(fetched) = fetching.join_next().await
                {
                    fetched.map_err(|error| Failure::from_error(Kind::Storage, &error))??;
                }
                let (sandbox, count) = (Arc::clone(sandbox), Arc::clone(count));
                let from = format!("{}/{}", from.trim_end_matches('/'), entry.path);
                fetching.spawn(async move {
                    file(&*sandbox, &from, &target, entry.executable, &count).await
                });
            }
        }
    }
    while let Some(fetched) = fetching.join_next().await {
        fetched.map_err(|error| Failure::from_error(Kind::Storage, &error))??;
    }
    for (path, target) in links {
        std::os::unix::fs::symlink(&target, &path).map_err(|error| here(&path, &error))?;
        count.file();
    }
    Ok(())
}

async fn manifest(sandbox: &dyn Sandbox, root: &str) -> Outcome<Vec<ManifestEntry>> {
    let mut all: Vec<ManifestEntry> = Vec::new();
    loop {
        let op = FileOp::Manifest {
            root: root.to_owned(),
            after: all.last().map(|entry| entry.path.clone()),
            entries_max: door::ENTRIES_MAX,
        };
        match sandbox.files(op).await.map_err(|error| failed(&error))? {
            FileReply::Manifest { entries, more } => {
                let none = entries.is_empty();
                all.extend(entries);
                if !more || none {
                    return Ok(all);
                }
            }
            _ => return Err(astray()),
        }
        if all.len() > limits::COPIED_FILES_MAX {
            let max = limits::COPIED_FILES_MAX;
            return Err(Failure::new(Kind::Usage, format!("more than {max} files at once"))
                .hint("Pack them with tar in the sandbox, and copy the archive."));
        }
    }
}

/// Writes a file beside its name and renames it, so that it is there whole or not at all.
async fn file(
    sandbox: &dyn Sandbox,
    from: &str,
    to: &Path,
    executable: bool,
    count: &Count,
) -> Outcome {
    let temporary = to.with_file_name(format!(".{}", super::super::fresh("outrigger-cp")));
    let fetched = fetch(sandbox, from, &temporary, executable, count).await;
    let placed =
        fetched.and_then(|()| fs::rename(&temporary, to).map_err(|error| here(to, &error)));
    if placed.is_err() {
        drop(fs::remove_file(&temporary));
    }
    placed
}

async fn fetch(
    sandbox: &dyn Sandbox,
    from: &str,
    to: &Path,
    executable: bool,
    count: &Count,
) -> Outcome {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let mut file: File = opened.map_err(|error| here(to, &error))?;
    let mut offset = 0;
    loop {
        let (path, bytes_max) = (from.to_owned(), door::FILE_CHUNK_BYTES_MAX);
        let reply = sandbox.files(FileOp::Read { path, offset, bytes_max }).await;
        let (bytes, total) = match reply {
            Ok(FileReply::Bytes { bytes, total_bytes }) => (bytes, total_bytes),
            Ok(_) => return Err(astray()),
            Err(Error::File(error)) if error.kind == FileErrorKind::IsDirectory => {
                let text = format!("{from} is a link to a directory");
                return Err(Failure::new(Kind::Usage, text).hint("Name the directory itself."));
            }
            Err(error) => return Err(failed(&error)),
        };
        file.write_all(&bytes).map_err(|error| here(to, &error))?;
        offset += bytes.len() as u64;
        count.piece(bytes.len());
        if bytes.is_empty() || offset >= total {
            break;
        }
    }
    // As a new file of one's own would have them.
    let mode = if executable { 0o755 } else { 0o644 };
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(|error| here(to, &error))?;
    count.file();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for path in ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a/./b", "a\0b"] {
            assert!(beneath(Path::new("/d"), path).is_err(), "{path:?}");
        }
        assert_eq!(beneath(Path::new("/d"), "a/-rf").ok(), Some(PathBuf::from("/d/a/-rf")));
    }
}
